from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from fsdil_methods.domain_prototypes import class_sums, similarity
from fsdil_methods.towers.fshil_lite import FSHILLite, draw_style, restyled
from tiny_world import copied
from tower_world import CLASSES, DIM, QUICK, WIDTH, TowerWorld, random_batch

from fsdil_bench.adapters import encode_image

SMALL: dict[str, Any] = QUICK | {"expert_blocks": 2, "rank": 3, "inner_steps": 2}
ALWAYS = SMALL | {"shift_limit": -100.0}


def plain(method: Any, images: torch.Tensor) -> torch.Tensor:
    return F.normalize(encode_image(method.visual, images), dim=1)


def test_an_untrained_template_is_clip(tower_world: TowerWorld) -> None:
    method = tower_world.learn(tower_world.method(FSHILLite, **SMALL | {"base_epochs": 0}), 1)
    assert not method.weights["template.up"].any()
    batch = random_batch()
    assert torch.allclose(method.features(batch), plain(method, batch.images), atol=1e-5)


def test_a_new_expert_is_a_copy_of_the_template(tower_world: TowerWorld) -> None:
    method = tower_world.learn(tower_world.method(FSHILLite, **ALWAYS | {"steps": 0}), 2)
    assert method.weights["template.up"].any()
    for t in range(2):
        for part in ("down", "up"):
            assert torch.equal(
                method.weights[f"domains.{t}.{part}"], method.weights[f"template.{part}"]
            )
    assert method.diagnostics()["experts"] == [2, 2]


def test_experts_of_earlier_domains_stay(tower_world: TowerWorld) -> None:
    method = tower_world.method(FSHILLite, **ALWAYS)
    for t in range(3):
        before = copied(method)
        method.learn(tower_world.domain(t))
        old = [name for name in before if name.startswith("domains.")]
        assert len(old) == 6 * t
        assert all(torch.equal(before[name], method.weights[name]) for name in old)
        assert torch.equal(method.weights["prototypes"][:t], before["prototypes"])
    assert not torch.equal(method.weights["domains.2.up"], method.weights["template.up"])
    assert method.trained_parameters() == 2 * 2 * 3 * WIDTH


def test_the_same_domain_again_needs_no_expert(tower_world: TowerWorld) -> None:
    """Its inputs are what they were when its detectors were fitted: before experts were there."""
    method = tower_world.learn(tower_world.method(FSHILLite, **SMALL | {"base_epochs": 0}), 1)
    means = method.mean_tokens(tower_world.domain(0), method.adapters())
    assert not method.looks_new(means).any()
    far = [each + 100 for each in means]
    assert method.looks_new(far).all()


def test_blocks_without_a_new_expert_use_the_old_ones(tower_world: TowerWorld) -> None:
    never = SMALL | {"shift_limit": 1e9}
    method = tower_world.learn(tower_world.method(FSHILLite, **never), 1)
    batch = random_batch()
    before = method.features(batch)
    method.learn(tower_world.domain(1))
    assert torch.equal(method.features(batch), before)
    assert method.trained_parameters() == 0
    assert method.diagnostics()["experts"] == [2, 0]


def test_only_prototypes_are_there_without_experts(tower_world: TowerWorld) -> None:
    method = tower_world.learn(tower_world.method(FSHILLite, **SMALL, experts=False))
    assert method.state_dict().keys() == {"prototypes", "accuracies", "judged"}
    batch = random_batch(30)
    assert torch.equal(method.features(batch), batch.features)
    logits = similarity(batch.features, method.weights["prototypes"])
    assert logits.shape == (30, CLASSES)
    assert torch.equal(method.predict(batch), logits.argmax(1))
    assert method.trained_parameters() == 0


def test_prototypes_grow_by_the_rule(tower_world: TowerWorld) -> None:
    method = tower_world.learn(tower_world.method(FSHILLite, **SMALL, experts=False), 1)
    domain = tower_world.domain(1)
    z, labels = domain.features(), domain.labels
    right = similarity(z, method.weights["prototypes"]).argmax(1) == labels
    usual = method.weights["accuracies"].clone()
    method.learn(tower_world.domain(1))
    for c in range(CLASSES):
        limit = max(0.9 * float(usual[c]), 0.5)
        row = method.weights["prototypes"][1, c]
        if float(right[labels == c].float().mean()) < limit:
            assert torch.allclose(row, z[labels == c].sum(0), atol=1e-5)
        else:
            assert not row.any()
    assert method.diagnostics()["prototypes"][0] == CLASSES
    assert method.weights["judged"].tolist() == [2] * CLASSES


@pytest.mark.parametrize(
    ("options", "count"), [({"drop": 1.0, "least_accuracy": 0.0}, 0), ({"least_accuracy": 0.5}, 4)]
)
def test_where_every_image_is_wrong(
    tower_world: TowerWorld, options: dict[str, float], count: int
) -> None:
    method = tower_world.method(FSHILLite, **SMALL, experts=False, **options)
    domain = tower_world.domain(1)
    sums = class_sums(domain.features(), domain.labels, CLASSES)
    method.weights["prototypes"] = (sums.mean(0) - sums)[None]  # each far from its own class
    method.grow(domain)
    assert method.diagnostics()["prototypes"][1] == count


def test_styles_are_linear_in_the_image() -> None:
    style = draw_style(torch.Generator().manual_seed(0))
    images = torch.randn(2, 3, 4, 4)
    found = restyled(images, style)
    grey = images.mean(1, keepdim=True).expand_as(images)
    mixed = (1 - style["grey"]) * images + style["grey"] * grey
    assert torch.allclose(found, mixed * style["gain"] + style["shift"], atol=1e-6)


def test_the_template_goes_part_of_the_way(tower_world: TowerWorld) -> None:
    """With a rate of zero it stays where it began."""
    still = tower_world.method(FSHILLite, **SMALL | {"outer_rate": 0.0})
    start = copied(still)
    still.learn(tower_world.domain(0))
    moved = tower_world.learn(tower_world.method(FSHILLite, **SMALL), 1)
    assert torch.equal(still.weights["template.up"], start["template.up"])
    assert moved.weights["template.up"].any()


def test_what_is_kept(tower_world: TowerWorld) -> None:
    method = tower_world.learn(tower_world.method(FSHILLite, **ALWAYS))
    template = 2 * 2 * 3 * WIDTH
    detector = 2 * (WIDTH + 3 * WIDTH + 2)
    stored = sum(value.numel() for value in method.state_dict().values())
    each = template + detector + 2 + CLASSES * DIM
    assert stored == template + 3 * each + 2 * CLASSES
