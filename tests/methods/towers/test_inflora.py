from __future__ import annotations

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from fsdil_methods.towers.free_directions import Directions
from fsdil_methods.towers.inflora import InfLoRA
from tiny_world import copied
from tower_world import BLOCKS, QUICK, TOKENS, TRAINED_HEAD, WIDTH, TowerWorld, random_batch

from fsdil_bench.adapters import BlockAdapter, image_tokens, tower_blocks

SMALL: dict[str, Any] = QUICK | {"rank": 3, "horizon": 3}


def close(one: torch.Tensor, other: torch.Tensor, tolerance: float = 1e-4) -> bool:
    return torch.allclose(one, other, rtol=tolerance, atol=tolerance * float(other.abs().max()))


def taken(known: Directions) -> torch.Tensor:
    inside = known.basis @ known.basis.T
    return torch.eye(WIDTH).double() - inside if known.are_free else inside


def test_moments_are_those_of_the_normed_tokens(tower_world: TowerWorld) -> None:
    method, domain = tower_world.method(InfLoRA, **SMALL), tower_world.domain(1)
    found = method.moments(domain, method.adapters())
    visual = method.visual
    for depth, block in enumerate(tower_blocks(visual)):
        x = block.ln_1(image_tokens(visual, domain.images(), depth=depth).tokens).flatten(0, 1)
        assert len(x) == 8 * TOKENS
        expected = (x[:, :, None] * x[:, None]).mean(0).double()
        assert close(found[depth], expected, 1e-5)


def test_at_most_so_many_images_are_measured(tower_world: TowerWorld) -> None:
    """60 images, of which 13 are asked for, in batches of 10."""
    method = tower_world.method(InfLoRA, **SMALL | {"measured_images": 13, "batch_size": 10})
    domain, served = tower_world.domain(0), []
    batches = domain.batches

    def counting(*arguments: Any, **options: Any) -> Any:
        assert options["augment"] is False
        for batch in batches(*arguments, **options):
            served.extend(batch.positions.tolist())
            yield batch

    domain.batches = counting  # type: ignore[method-assign]
    found = method.moments(domain, method.adapters())
    assert len(set(served)) == len(served) == 20
    assert served != sorted(served)
    few = tower_world.domain(0, served[:13]).images()
    x = tower_blocks(method.visual)[0].ln_1(image_tokens(method.visual, few, depth=0).tokens)
    assert close(found[0], (x.flatten(0, 1).T @ x.flatten(0, 1)).double() / (13 * TOKENS), 1e-5)


def test_the_base_domain_gets_the_strongest_directions(tower_world: TowerWorld) -> None:
    method = tower_world.method(InfLoRA, **SMALL)
    c = method.moments(tower_world.domain(0), method.adapters())
    for block, down in zip(c, method.new_updates(c)["down"].double(), strict=True):
        values, vectors = torch.linalg.eigh(block)  # C is symmetric: the same directions
        best = vectors[:, -3:]
        assert values[-4] < 0.99 * values[-3]
        assert close(3 * down.T @ down, best @ best.T)
        assert close(down.norm(dim=1), torch.full((3,), 1 / math.sqrt(3)).double())


def test_updates_are_free_of_taken_directions(tower_world: TowerWorld) -> None:
    method = tower_world.learn(tower_world.method(InfLoRA, **SMALL), 1)
    for t in (1, 2):
        known = method.directions()
        method.learn(tower_world.domain(t))
        for each, down in zip(known, method.weights[f"domains.{t}.down"].double(), strict=True):
            assert taken(each).trace() > 0.5
            assert (down @ taken(each)).abs().max() < 1e-6


def test_inputs_in_taken_directions_are_not_disturbed(tower_world: TowerWorld) -> None:
    """Keys and values of old inputs stay, those of others do not."""
    method = tower_world.learn(tower_world.method(InfLoRA, **SMALL | {"lr": 0.1}), 1)
    known = method.directions()
    method.learn(tower_world.domain(1))
    x = torch.randn(50, WIDTH, generator=torch.Generator().manual_seed(0))
    down = method.weights["domains.1.down"]
    for part in ("key", "value"):
        for each, d, up in zip(known, down, method.weights[f"domains.1.{part}"], strict=True):
            old = x @ taken(each).float()
            assert up.abs().max() > 0.1
            assert (old @ d.T @ up.T).abs().max() < 1e-5
            assert ((x - old) @ d.T @ up.T).abs().max() > 1e-2


@pytest.mark.parametrize("head", ["linear", "text"])
def test_an_update_starts_as_nothing(tower_world: TowerWorld, head: str) -> None:
    method = tower_world.learn(tower_world.method(InfLoRA, **SMALL | {"steps": 0}, head=head), 1)
    before = method.logits(method.features(random_batch()))
    method.learn(tower_world.domain(1))
    assert "domains.1.down" in method.weights
    assert not method.weights["domains.1.key"].any()
    assert close(method.logits(method.features(random_batch())), before)


def test_merged_and_unmerged_updates_are_the_same(tower_world: TowerWorld) -> None:
    """For features, and for the inputs that the next domain is measured by."""
    method = tower_world.learn(tower_world.method(InfLoRA, **SMALL))
    unmerged = [
        BlockAdapter(
            lora={
                short: (
                    torch.cat([method.weights[f"domains.{t}.down"][b] for t in range(3)]),
                    torch.cat([method.weights[f"domains.{t}.{part}"][b] for t in range(3)], 1),
                )
                for short, part in (("k", "key"), ("v", "value"))
            }
        )
        for b in range(BLOCKS)
    ]
    images = random_batch().images
    plain = method.encode(images, [])
    assert close(method.encode(images, method.adapters()), method.encode(images, unmerged))
    assert not close(method.encode(images, method.adapters()), plain, 1e-2)
    merged, other = (
        method.moments(tower_world.domain(1), adapters)
        for adapters in (method.adapters(), unmerged)
    )
    assert close(merged, other)


def test_a_step_trains_on_top_of_merged_updates(tower_world: TowerWorld) -> None:
    method = tower_world.learn(tower_world.method(InfLoRA, **SMALL))
    earlier = tower_world.method(InfLoRA, **SMALL)
    earlier.load_state_dict({k: v for k, v in method.weights.items() if "domains.2" not in k})
    images = random_batch().images
    stacked = method.with_update(earlier.adapters(), 2)
    assert close(method.encode(images, stacked), method.encode(images, method.adapters()))


def test_bases_stay_orthonormal_through_the_switch(tower_world: TowerWorld) -> None:
    method = tower_world.method(InfLoRA, **SMALL | {"protect": 0.999})
    kinds = []
    for t in range(3):
        method.learn(tower_world.domain(t))
        for known in method.directions():
            gram = known.basis.T @ known.basis
            assert torch.allclose(gram, torch.eye(len(gram)).double(), atol=1e-5)
            assert 2 * known.basis.shape[1] <= WIDTH
        kinds.append([known.are_free for known in method.directions()])
    switched = [a != b for a, b in zip(kinds[0], kinds[-1], strict=True)]
    assert any(switched), "otherwise this shows nothing"
    shown = method.diagnostics()
    assert shown["width"] == WIDTH
    for count, known in zip(shown["taken"], method.directions(), strict=True):
        assert count == pytest.approx(float(taken(known).trace()), abs=1e-3)


def test_the_protected_share_grows(tower_world: TowerWorld) -> None:
    """Where all directions are the same, shares are counts."""
    same = torch.eye(WIDTH).double().expand(BLOCKS, -1, -1)
    config = SMALL | {"protect": 0.25, "protect_last": 0.5, "horizon": 4}
    for t, expected in ((0, 8), (2, 12), (4, 16), (7, 16)):
        method = tower_world.method(InfLoRA, **config)
        method.protect(same, t)
        assert method.diagnostics()["taken"] == [expected] * BLOCKS


def test_heads_of_domains_compete(tower_world: TowerWorld) -> None:
    """The largest of all T C logits, by its class."""
    method = tower_world.learn(tower_world.method(InfLoRA, **SMALL, head="concat"))
    batch = random_batch(30)
    features = method.features(batch)
    logits = [
        F.linear(features, *(method.weights[f"domains.{t}.head.{k}"] for k in ("weight", "bias")))
        for t in range(3)
    ]
    assert torch.equal(method.predict(batch), torch.cat(logits, 1).argmax(1) % 4)
    before = copied(method)
    method.learn(tower_world.domain(1))  # any domain: only heads and updates of its number move
    heads = [name for name in before if ".head." in name and "domains.1" not in name]
    assert len(heads) == 4
    assert all(torch.equal(before[name], method.weights[name]) for name in heads)


def test_earlier_updates_stay_bit_identical(tower_world: TowerWorld) -> None:
    method = tower_world.method(InfLoRA, **SMALL)
    for t in range(3):
        before = copied(method)
        method.learn(tower_world.domain(t))
        old = [name for name in before if name.startswith("domains.")]
        assert len(old) == 3 * t
        assert all(torch.equal(before[name], method.weights[name]) for name in old)


def test_what_is_trained(tower_world: TowerWorld) -> None:
    ups, down = BLOCKS * 2 * WIDTH * 3, BLOCKS * 3 * WIDTH
    bases = BLOCKS * (WIDTH * (WIDTH // 2) + 2)
    for head, shared, own in (
        ("linear", TRAINED_HEAD, 0),
        ("concat", 0, TRAINED_HEAD),
        ("text", 0, 0),
    ):
        method = tower_world.method(InfLoRA, **SMALL, head=head)
        for t in range(3):
            method.learn(tower_world.domain(t))
            assert method.trained_parameters() == ups + shared + own
            stored = sum(value.numel() for value in method.state_dict().values())
            assert stored == bases + shared + (t + 1) * (ups + down + own)
