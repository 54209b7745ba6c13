from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from fsdil_methods import fsdil_methods
from fsdil_methods.frozen.tip_adapter import TipAdapter
from fsdil_methods.frozen.zero_shot import ZeroShot
from tiny_world import BASE, CLASSES, DIM, SHOTS, World, copied

FAST: dict[str, Any] = {"views": 2, "steps": 5}
N = len(CLASSES)


def test_without_the_cache_it_is_zero_shot(world: World) -> None:
    method = world.learn(world.method(TipAdapter, **FAST, alpha=0.0))
    assert world.predict(method) == world.predict(world.method(ZeroShot))


def test_the_formula(world: World) -> None:
    """On plain views, in NumPy."""
    method = world.learn(world.method(TipAdapter, views=0, base_images=BASE, alpha=1.5, beta=3.0))
    keys, labels = world.seen()
    z, _ = world.features(1, "test")
    text = method.text.double().numpy()
    affinity = np.exp(-3.0 * (1 - z @ keys.T))
    expected = 20.0 * z @ text.T + 1.5 * affinity @ np.eye(N)[labels]
    found = method.logits(torch.from_numpy(z).float())
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-4, atol=1e-4)


def test_a_key_asked_for_sharply_gives_its_label(world: World) -> None:
    method = world.learn(world.method(TipAdapter, **FAST, alpha=1e4, beta=1e5))
    for cache in method.caches:
        assert method.logits(cache.keys).argmax(1).tolist() == cache.labels.tolist()


def test_the_base_domain_is_capped(world: World) -> None:
    method = world.learn(world.method(TipAdapter, **FAST, base_images=3))
    base, *later = [cache.labels.bincount().tolist() for cache in method.caches]
    assert base == [3] * N
    assert later == [[SHOTS] * N] * 2


def test_or_gives_class_means(world: World) -> None:
    method = world.learn(world.method(TipAdapter, **FAST, base_keys="means"))
    z, labels = world.features(0)
    means = np.stack([z[labels == c].mean(0) for c in range(N)])
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    np.testing.assert_allclose(method.caches[0].keys.numpy(), means, rtol=1e-4, atol=1e-5)
    assert method.caches[0].labels.tolist() == list(range(N))
    assert len(method.caches[1].keys) == N * SHOTS


def test_a_key_is_the_mean_of_its_views(world: World) -> None:
    method = world.method(TipAdapter, views=3)
    domain = world.domain(1)
    method.learn(world.domain(0))
    method.learn(world.domain(1))
    views = [
        world.backbone.encode_image(domain.take(range(len(domain)), draw=draw).images)
        for draw in range(3)
    ]
    expected = F.normalize(torch.stack(views).mean(0), dim=-1)
    torch.testing.assert_close(method.caches[1].keys, expected)
    assert not views[0].allclose(views[1], atol=1e-3)


def test_only_the_keys_of_the_domain_are_trained(world: World) -> None:
    plain = world.learn(world.method(TipAdapter, **FAST))
    tuned = world.method(TipAdapter, **FAST, finetune=True)
    seen: dict[str, torch.Tensor] = {}
    for t in range(3):
        tuned.learn(world.domain(t))
        now = copied(tuned)
        assert all(torch.equal(now[name], value) for name, value in seen.items())
        assert not tuned.caches[t].keys.equal(plain.caches[t].keys)
        assert tuned.caches[t].labels.equal(plain.caches[t].labels)
        seen = now


def test_training_lowers_the_loss(world: World) -> None:
    losses = []
    for steps in (0, 50):
        method = world.method(TipAdapter, views=2, finetune=True, steps=steps, lr=0.01)
        method.learn(world.domain(0))
        domain = world.domain(0)
        losses.append(float(F.cross_entropy(method.logits(domain.features()), domain.labels)))
    assert losses[1] < 0.9 * losses[0]


@pytest.mark.parametrize("finetune", [False, True])
def test_cost(world: World, finetune: bool) -> None:
    method = world.method(TipAdapter, **FAST, finetune=finetune, base_images=3)
    outcome = world.run(method)
    sizes = [3 * N, SHOTS * N, SHOTS * N]
    assert outcome.trained_parameters == [size * DIM * finetune for size in sizes]
    assert outcome.state_bytes == [sum(sizes[: t + 1]) * (4 * DIM + 8) for t in range(3)]


def test_it_says_that_it_keeps_features() -> None:
    infos = {info.name: info for info in fsdil_methods()}
    for name in ("tip-adapter", "tip-adapter-f"):
        assert infos[name].keeps_features
        assert infos[name].exemplar_free, "of images, that is"
