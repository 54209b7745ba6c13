from __future__ import annotations

import numpy as np
import pytest
import torch
from fsdil_methods.frozen import ranpac
from fsdil_methods.frozen.ranpac import RIDGES, RanPAC, best_ridge
from tiny_world import CLASSES, World

C = len(CLASSES)


@pytest.mark.parametrize("balanced", [False, True])
def test_it_is_batch_ridge(world: World, balanced: bool) -> None:
    method = world.learn(world.method(RanPAC, projection_size=30, balanced=balanced))
    z, labels = world.seen()
    h = np.maximum(z @ method.projection.numpy(), 0)
    sizes = [len(world.domain(t)) for t in range(3)]
    each = np.repeat(1 / np.array(sizes) if balanced else np.ones(3), sizes)
    # Ridge as least squares on weighted rows with sqrt(r) I appended.
    ridge = float(method.ridge)
    rows = np.concatenate([np.sqrt(each)[:, None] * h, np.sqrt(ridge) * np.eye(30)])
    wanted = np.concatenate([np.sqrt(each)[:, None] * np.eye(C)[labels], np.zeros((30, C))])
    expected = np.linalg.lstsq(rows, wanted, rcond=None)[0]
    np.testing.assert_allclose(method.weights.numpy(), expected, rtol=1e-5, atol=1e-8)
    tests = np.concatenate([world.features(t, "test")[0] for t in range(3)])
    scores = np.maximum(tests @ method.projection.numpy(), 0) @ expected
    assert world.predict(method) == scores.argmax(1).tolist()


def test_order_does_not_matter(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = world.method(RanPAC, projection_size=30), world.method(RanPAC, projection_size=30)
    for t in (0, 1, 2):
        one.learn(world.domain(t))
    monkeypatch.setattr(ranpac, "_CHUNK", 7)  # nor how many images are projected at once
    for t in (2, 1, 0):
        other.learn(world.domain(t, reversed(range(len(world.domain(t))))))
    np.testing.assert_allclose(one.gram.numpy(), other.gram.numpy(), rtol=1e-12)
    np.testing.assert_allclose(one.targets.numpy(), other.targets.numpy(), rtol=1e-12)


def test_the_projection_follows_from_the_seed(world: World) -> None:
    one, same = world.method(RanPAC, projection_size=30), world.method(RanPAC, projection_size=30)
    other = World(world.folder / "other", seed=world.seed + 1).method(RanPAC, projection_size=30)
    assert torch.equal(one.projection, same.projection)
    assert not torch.equal(one.projection, other.projection)
    assert set(one.state_dict()) == {"gram", "targets", "ridge"}


@pytest.mark.parametrize("noise", [0.3, 1, 3, 6, 12])
def test_the_ridge_is_the_best_on_held_out_images(noise: float) -> None:
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(12, 3))
    h, held = rng.normal(size=(15, 12)), rng.normal(size=(30, 12))
    y = h @ truth + noise * rng.normal(size=(15, 3))
    held_y = held @ truth + noise * rng.normal(size=(30, 3))

    def error(ridge: float) -> float:
        fit = np.linalg.solve(h.T @ h + ridge * np.eye(12), h.T @ y)
        return float(np.square(held @ fit - held_y).mean())

    sums = (h.T @ h, h.T @ y, held.T @ held, held.T @ held_y)
    chosen = best_ridge(*(torch.from_numpy(value) for value in sums))
    assert chosen == min(RIDGES, key=error)
    assert RIDGES[0] < chosen < RIDGES[-1]


def test_the_ridge_is_chosen_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    method = world.learn(world.method(RanPAC, projection_size=30), upto=1)
    chosen = float(method.ridge)
    monkeypatch.setattr(ranpac, "best_ridge", lambda *sums: pytest.fail("chosen again"))
    method.learn(world.domain(1))
    assert float(method.ridge) == chosen == method.diagnostics()["ridge"]
