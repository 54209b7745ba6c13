from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from fsdil_methods.towers.conec_lora import (
    ConecLoRA,
    cosine_logits,
    noisy,
    row_scales,
    scaled_gradient,
    surest,
)
from tiny_world import copied
from tower_world import BLOCKS, CLASSES, QUICK, WIDTH, TowerWorld, random_batch

from fsdil_bench.adapters import BlockAdapter, TowerShape, image_tokens

RANK, SHARED = 3, BLOCKS // 2
HEADS = ["stochastic", "text"]


def build(world: TowerWorld, **config: Any) -> Any:
    # The small text tower reads the letter that comes last in the alphabet: in longer sentences it
    # is the same for all classes.
    return world.method(ConecLoRA, **(QUICK | {"rank": RANK, "templates": ("{}",)} | config))


def test_untrained_updates_leave_features_as_they_are(tower_world: TowerWorld) -> None:
    method = build(tower_world, base_epochs=0)
    method.learn(tower_world.domain(0))
    assert not method.weights["domains.0.up.own"].any()
    images = random_batch().images
    tokens = image_tokens(method.visual, images, [BlockAdapter()] * BLOCKS).tokens
    plain = method.visual.ln_post(tokens[:, 0])
    torch.testing.assert_close(method._features(images, 0), plain.detach())


def test_updates_start_from_orthonormal_rows(tower_world: TowerWorld) -> None:
    start = build(tower_world)._start(0)
    down = torch.cat([start["down.shared"], start["down.own"]])
    assert down.shape == (BLOCKS, 2, RANK, WIDTH)
    torch.testing.assert_close(down @ down.mT, torch.eye(RANK).expand(BLOCKS, 2, RANK, RANK))


@pytest.mark.parametrize("head", HEADS)
def test_nothing_of_an_earlier_domain_changes(tower_world: TowerWorld, head: str) -> None:
    method = build(tower_world, head=head)
    seen: dict[str, torch.Tensor] = {}
    for t in range(3):
        method.learn(tower_world.domain(t))
        now = {k: v for k, v in copied(method).items() if k.startswith("domains.")}
        assert all(torch.equal(now[key], value) for key, value in seen.items())
        assert set(now) > set(seen)
        seen = now
    assert not any(name.startswith("proxy.") for name in copied(method))


@pytest.mark.parametrize("head", HEADS)
def test_with_the_true_domain_nothing_is_forgotten(tower_world: TowerWorld, head: str) -> None:
    outcome = tower_world.run(build(tower_world, head=head))
    oracle = outcome.oracle_matrix
    assert [row[0] for row in oracle] == [oracle[0][0]] * 3
    assert oracle[1][1] == oracle[2][1]
    assert outcome.routing[0] == 100


def test_predictions_have_no_noise(tower_world: TowerWorld) -> None:
    method = tower_world.learn(build(tower_world))
    first = tower_world.predict(method)
    torch.manual_seed(1)
    assert tower_world.predict(method) == first


@pytest.mark.parametrize("head", HEADS)
def test_the_distillation_starts_without_a_gradient(tower_world: TowerWorld, head: str) -> None:
    """Its value is the entropy of what is taught, not zero."""
    method = tower_world.learn(build(tower_world, head=head), upto=1)
    method.add(method._start(1), "domains.1.")
    if head == "stochastic":
        means = method.weights["domains.0.head.mu"]
        method.add({"proxy.mu": means.clone(), "proxy.sigma": torch.zeros_like(means)})
    images = random_batch().images
    ups = method.weights["domains.1.up.shared"].requires_grad_()
    loss = method.distilled(images, 1)
    (gradient,) = torch.autograd.grad(loss, ups)
    assert gradient.abs().max() < 1e-6
    assert float(loss.detach()) > 0.01
    with torch.no_grad():
        moved = ups + 0.3 * torch.randn(ups.shape, generator=torch.Generator().manual_seed(0))
    method.weights["domains.1.up.shared"] = moved.requires_grad_()
    further = method.distilled(images, 1)
    assert further > loss
    (gradient,) = torch.autograd.grad(further, moved)
    assert gradient.abs().max() > 1e-5


def test_the_distillation_reads_the_lower_blocks_alone(tower_world: TowerWorld) -> None:
    method = tower_world.learn(build(tower_world), upto=2)
    means = method.weights["domains.1.head.mu"]
    method.add({"proxy.mu": means, "proxy.sigma": torch.zeros_like(means)})
    images, softened = random_batch().images, []
    for t in (1, 0):
        tokens = image_tokens(method.visual, images, method.adapters(t), depth=SHARED).tokens
        f = method.visual.ln_post(tokens[:, 0])
        softened.append(8 * F.normalize(f, dim=1) @ F.normalize(means, dim=1).T)
    new, old = softened
    wanted = -(old.softmax(1) * new.log_softmax(1)).sum(1).mean()
    torch.testing.assert_close(method.distilled(images, 1), wanted)


def test_gradients_are_scaled_by_the_previous_rows() -> None:
    previous = torch.tensor([[[3.0, 4.0], [0.0, 0.0], [0.0, 1.0]]])
    scales = row_scales(previous)
    assert scales.flatten().tolist() == [2.5, 0.0, 0.5]
    weight = torch.ones(1, 3, 2, requires_grad=True)
    out = scaled_gradient(weight, scales)
    assert torch.equal(out, weight)
    (out * torch.arange(6).view(1, 3, 2)).sum().backward()
    assert weight.grad is not None
    assert torch.equal(weight.grad, scales * torch.arange(6).view(1, 3, 2))


@pytest.mark.parametrize(("threshold", "wanted"), [(0.0, [1, 0]), (0.7, [0, 0]), (1.1, [0, 1])])
def test_which_depth_decides(threshold: float, wanted: list[int]) -> None:
    """None: the first. Some: the first that is sure. More than can be: the surest."""
    first = [[0.4, 0.6], [0.8, 0.2]]
    second = [[0.9, 0.1], [0.05, 0.95]]
    assert surest(torch.tensor([first, second]), threshold).tolist() == wanted


def test_depths_are_quarters(tower_world: TowerWorld) -> None:
    """Of twelve blocks: after 2, 5, 8 and 11."""
    method = build(tower_world)
    assert method.depths == [0, 1, 3, 4]  # of five blocks
    assert [round(12 * k / 4) - 1 for k in range(1, 5)] == [2, 5, 8, 11]
    images = random_batch().images
    for depth, found in zip(method.depths, method.depth_features(images), strict=True):
        tokens = image_tokens(method.visual, images, depth=depth + 1).tokens
        torch.testing.assert_close(found, tokens[:, 1:].mean(1))


def test_the_noise_of_the_classifier() -> None:
    mu, sigma = torch.zeros(200, 300), torch.full((200, 300), 4.0)
    drawn = noisy(mu, sigma, torch.Generator().manual_seed(0))
    assert float(drawn.std()) == pytest.approx(float(torch.log(torch.tensor(2.0))), rel=0.02)
    f, rows = torch.randn(3, 5), torch.randn(2, 5)
    wanted = 16 * F.cosine_similarity(f[:, None], rows, dim=-1)
    torch.testing.assert_close(cosine_logits(f, rows), wanted)


def test_heads_are_class_means_after_training(tower_world: TowerWorld) -> None:
    method = tower_world.learn(build(tower_world))
    domain = tower_world.domain(2)
    features = method._features(domain.images(), 2)
    means = torch.stack([features[domain.labels == c].mean(0) for c in range(CLASSES)])
    torch.testing.assert_close(method.weights["domains.2.head.mu"], means)


@pytest.mark.parametrize("head", HEADS)
def test_training_lowers_the_loss(tower_world: TowerWorld, head: str) -> None:
    losses = []
    for epochs in (0, 15):
        method = build(tower_world, head=head, base_epochs=epochs, augment=False, lr=3e-3)
        domain = tower_world.domain(0)
        method.learn(domain)
        features = method._features(domain.images(), 0)
        losses.append(float(F.cross_entropy(method._logits_of(features, 0), domain.labels)))
    assert losses[1] < 0.95 * losses[0]


def test_cost(tower_world: TowerWorld) -> None:
    method = build(tower_world)
    outcome = tower_world.run(method)
    ups, own_downs = BLOCKS * 2 * WIDTH * RANK, (BLOCKS - SHARED) * 2 * RANK * WIDTH
    trained = ups + own_downs + 2 * CLASSES * WIDTH
    selectors = [4 * count * (WIDTH + 1) for count in (0, 2, 3)]
    assert outcome.trained_parameters == [trained + each for each in selectors]
    stored = sum(v.numel() for k, v in copied(method).items() if k.startswith("domains.2."))
    assert stored == 2 * ups + CLASSES * WIDTH


def test_sizes_at_vit_b16(tower_world: TowerWorld) -> None:
    method = build(tower_world, rank=8)
    method.shape, method.shared = TowerShape(blocks=12, width=768, heads=12), 6
    sizes = {part: tensor.numel() for part, tensor in method._start(0).items()}
    assert sum(sizes.values()) == 294_912
    assert sum(sizes.values()) - sizes["down.shared"] == 221_184
