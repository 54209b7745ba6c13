from __future__ import annotations

import numpy as np
import pytest
from fsdil_methods.frozen.ncm import NearestClassMean
from fsdil_methods.frozen.zero_shot import ZeroShot
from tiny_world import CLASSES, World

from fsdil_bench import RequestError


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def means(z: np.ndarray, labels: np.ndarray) -> np.ndarray:
    return np.stack([z[labels == c].mean(0) for c in range(len(CLASSES))])


def test_running_is_the_mean_of_all_images(world: World) -> None:
    method = world.learn(world.method(NearestClassMean))
    np.testing.assert_allclose(method.prototypes()[0].numpy(), unit(means(*world.seen())))


def test_running_does_not_depend_on_any_order(world: World) -> None:
    forward, backward = world.method(NearestClassMean), world.method(NearestClassMean)
    for t in (0, 1, 2):
        forward.learn(world.domain(t))
    for t in (2, 1, 0):
        backward.learn(world.domain(t, reversed(range(len(world.domain(t))))))
    np.testing.assert_allclose(
        forward.prototypes().numpy(), backward.prototypes().numpy(), rtol=1e-12
    )


def test_an_image_seen_again_counts_again(world: World) -> None:
    method = world.learn(world.method(NearestClassMean), upto=1)
    z, labels = world.features(0)
    count, mean = (labels == labels[0]).sum(), means(z, labels)[labels[0]]
    for _ in range(2):
        method.learn(world.domain(0, [0]))
    expected = mean + 2 / (count + 2) * (z[0] - mean)
    np.testing.assert_allclose(method.prototypes()[0, labels[0]].numpy(), unit(expected))
    untouched = (labels[0] + 1) % len(CLASSES)
    np.testing.assert_allclose(
        method.prototypes()[0, untouched].numpy(), unit(means(z, labels)[untouched])
    )


def test_balanced_is_the_mean_of_domain_means(world: World) -> None:
    method = world.learn(world.method(NearestClassMean, mode="balanced"))
    expected = unit(np.mean([means(*world.features(t)) for t in range(3)], axis=0))
    np.testing.assert_allclose(method.prototypes()[0].numpy(), expected)
    running = world.learn(world.method(NearestClassMean))
    assert np.abs(running.prototypes()[0].numpy() - expected).max() > 1e-3


def test_domain_max_asks_every_domain(world: World) -> None:
    method = world.learn(world.method(NearestClassMean, mode="domain-max"))
    prototypes = np.stack([unit(means(*world.features(t))) for t in range(3)])
    np.testing.assert_allclose(method.prototypes().numpy(), prototypes)
    z = np.concatenate([world.features(t, "test")[0] for t in range(3)])
    expected = np.stack([z @ p.T for p in prototypes]).max(0).argmax(1)
    assert world.predict(method) == expected.tolist()
    assert expected.tolist() != (z @ prototypes[0].T).argmax(1).tolist()


def test_text_mix(world: World) -> None:
    method = world.learn(world.method(NearestClassMean, text_mix=0.3))
    text = world.method(ZeroShot).text.double().numpy()
    expected = unit(0.3 * text + 0.7 * unit(means(*world.seen())))
    np.testing.assert_allclose(method.prototypes()[0].numpy(), expected)


@pytest.mark.parametrize("mode", ["running", "balanced", "domain-max"])
def test_text_alone_is_zero_shot(world: World, mode: str) -> None:
    method = world.learn(world.method(NearestClassMean, mode=mode, text_mix=1.0))
    zero_shot = world.predict(world.method(ZeroShot))
    assert world.predict(method) == zero_shot
    assert world.predict(world.learn(world.method(NearestClassMean))) != zero_shot


def test_text_mix_needs_a_text_tower(world: World) -> None:
    blind = World(world.folder / "blind", text=False)
    with pytest.raises(RequestError, match=r"text_mix = 0.5 needs a text tower"):
        blind.method(NearestClassMean, text_mix=0.5)
