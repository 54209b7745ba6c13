from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from fsdil_methods.prompts.asp import ASP, divergence, nearest_to_mean, to_anchors, two_layers
from tiny_world import copied
from tower_world import BLOCKS, CLASSES, DIM, WIDTH, TowerWorld, random_batch

from fsdil_bench.adapters import BlockAdapter, image_tokens

SMALL: dict[str, Any] = {
    "base_epochs": 2, "batch_size": 16, "hidden": 8, "prompt_length": 2, "lr": 0.05,
}  # fmt: skip


def close(one: torch.Tensor, other: torch.Tensor) -> bool:
    return torch.allclose(one, other, rtol=1e-4, atol=1e-4 * float(other.abs().max()))


def test_a_later_domain_trains_nothing(tower_world: TowerWorld) -> None:
    method = tower_world.method(ASP, **SMALL)
    method.learn(tower_world.domain(0))
    assert method.trained_parameters() > 0
    for t in (1, 2):
        before = copied(method)
        method.learn(tower_world.domain(t))
        assert method.trained_parameters() == 0
        changed = {n for n in before if not torch.equal(before[n], method.weights[n])}
        assert changed == {"average", "prototypes"}
        assert torch.equal(method.weights["prototypes"][:t], before["prototypes"])


def test_all_is_trained_in_the_base_domain(tower_world: TowerWorld) -> None:
    method = tower_world.method(ASP, **SMALL)
    before = copied(method)
    method.learn(tower_world.domain(0))
    now = method.state_dict()
    assert before.keys() == now.keys()
    assert not any(torch.equal(before[name], now[name]) for name in before)


def test_with_the_average_alone_the_encoder_does_not_matter(tower_world: TowerWorld) -> None:
    for share, matters in ((1.0, False), (0.8, True)):
        method = tower_world.learn(tower_world.method(ASP, **SMALL, average_share=share), 1)
        before = method.features(random_batch())
        method.weights["mean.1.bias"] = method.weights["mean.1.bias"] + 1
        assert torch.equal(method.features(random_batch()), before) != matters


def test_the_divergence_is_that_of_normal_distributions() -> None:
    zeros, ones = torch.zeros(2, 3, 4, 5), torch.ones(2, 3, 4, 5)
    assert float(divergence(zeros, ones)) == 0
    mu, std = torch.randn(2, 3, 4, 5), torch.rand(2, 3, 4, 5) + 0.1
    normal = torch.distributions.Normal
    each = torch.distributions.kl_divergence(normal(mu, std), normal(0.0, 1.0))
    assert torch.allclose(divergence(mu, std), each.sum((2, 3)).mean())


def test_features_in_testing_have_no_noise(tower_world: TowerWorld) -> None:
    method = tower_world.learn(tower_world.method(ASP, **SMALL, noise=100.0), 2)
    assert torch.equal(method.features(random_batch()), method.features(random_batch()))


def test_noise_counts_in_training(tower_world: TowerWorld) -> None:
    states = [
        copied(tower_world.learn(tower_world.method(ASP, **SMALL, noise=noise), 1))
        for noise in (0.0, 1.0)
    ]
    assert not torch.equal(states[0]["invariant"], states[1]["invariant"])


def test_prompts_are_deep_and_made_as_described(tower_world: TowerWorld) -> None:
    """Each image alone: tokens of every block replace those of the block before."""
    method = tower_world.learn(tower_world.method(ASP, **SMALL), 2)
    batch, w = random_batch(), method.weights
    whole = method.features(batch)
    for i in range(len(batch)):
        adapters = []
        for b in range(BLOCKS):
            h = torch.cat([w["invariant"][b, 0], batch.features[i]])
            hidden = w["mean.0.weight"] @ h + w["mean.0.bias"]
            mu = (w["mean.1.weight"] @ hidden + w["mean.1.bias"]).view(2, WIDTH)
            tokens = torch.cat([w["invariant"][b], 0.8 * w["average"][b] + 0.2 * mu])
            adapters.append(BlockAdapter(tokens=tokens))
        tokens = image_tokens(method.visual, batch.images[i : i + 1], adapters).tokens
        assert close(whole[i : i + 1], method.visual.ln_post(tokens[:, 0]))


def test_the_average_is_that_of_all_images_and_moves_slowly(tower_world: TowerWorld) -> None:
    method = tower_world.learn(tower_world.method(ASP, **SMALL, average_keep=0.75), 1)
    averages = [method.weights["average"]]
    method.learn(tower_world.domain(1))
    averages.append(method.weights["average"])
    means = [method.specific(tower_world.domain(t).features())[0].mean(1) for t in range(2)]
    assert close(averages[0], means[0])
    assert close(averages[1], 0.75 * averages[0] + 0.25 * means[1])


def test_anchors() -> None:
    features = torch.tensor([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0], [3.0, -1.0]])
    labels = torch.tensor([0, 0, 0, 1])
    anchors = nearest_to_mean(features, labels, 2)
    assert anchors.tolist() == [[1, 1], [3, -1]]
    half = 1 - 2**-0.5
    found = to_anchors(features, anchors, labels)
    assert float(found) == pytest.approx((half + 0 + half) / 3 / 2, abs=1e-6)
    assert float(to_anchors(features[:2], anchors, labels[:2])) == pytest.approx(half / 2, abs=1e-6)


def test_anchors_pull(tower_world: TowerWorld) -> None:
    far = []
    for weight in (0.0, 30.0):
        config = SMALL | {"base_epochs": 6, "anchor_weight": weight, "lr": 0.01}
        method = tower_world.learn(tower_world.method(ASP, **config), 1)
        features, labels = (
            method.plain_features(tower_world.domain(0)),
            tower_world.domain(0).labels,
        )
        far.append(float(to_anchors(features, nearest_to_mean(features, labels, 4), labels)))
    assert far[1] < far[0]


def test_a_spread_starts_small(tower_world: TowerWorld) -> None:
    method = tower_world.method(ASP, **SMALL)
    _, std = method.specific(random_batch().features)
    assert float(std.min()) > 0
    assert float(std.max()) < F.softplus(torch.tensor(-3.0))


def test_prototypes_are_class_means(tower_world: TowerWorld) -> None:
    method = tower_world.learn(tower_world.method(ASP, **SMALL), 1)
    domain = tower_world.domain(0)
    features = method.plain_features(domain)
    for c in range(CLASSES):
        mean = features[domain.labels == c].mean(0)
        found = method.weights["prototypes"][0, c]
        assert torch.allclose(F.cosine_similarity(found, mean, dim=0), torch.tensor(1.0))


@pytest.mark.parametrize(("mode", "kept"), [("domain-max", 3), ("running", 1), ("overwrite", 1)])
def test_what_is_trained_and_kept(tower_world: TowerWorld, mode: str, kept: int) -> None:
    method = tower_world.method(ASP, **SMALL, prototypes=mode)
    method.learn(tower_world.domain(0))
    encoder = 2 * ((WIDTH + DIM) * 8 + 8 + 8 * 2 * WIDTH + 2 * WIDTH)
    invariant, head = BLOCKS * 2 * WIDTH, CLASSES * WIDTH
    assert method.trained_parameters() == invariant + encoder + head + 1
    for t in (1, 2):
        method.learn(tower_world.domain(t))
    stored = sum(value.numel() for value in method.state_dict().values())
    assert stored == 2 * invariant + encoder + 1 + kept * head


def test_the_published_encoder_has_as_many_numbers() -> None:
    """With the class token of ViT-B/16 as its input, as in the paper."""
    one = two_layers(1536, 256, 3 * 768, torch.Generator())
    assert sum(value.numel() for value in one.values()) == 985_600
    assert 12 * 3 * 768 + 2 * 985_600 == 1_998_848
