from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from fsdil_methods.frozen.zero_shot import ZeroShot
from fsdil_methods.towers.duct import DUCT, merge, transport_plan, unit_means
from fsdil_methods.towers.finetune import FineTune
from tiny_world import World, copied, same

FAST: dict[str, Any] = {"lr": 1e-2, "batch_size": 16, "steps": 4}
HEADS = ["text", "cosine"]


def clip(world: World) -> dict[str, torch.Tensor]:
    return dict(world.backbone.model.visual.named_parameters())


def tower(method: Any) -> dict[str, torch.Tensor]:
    return {k: v.detach().clone() for k, v in method.tower.named_parameters()}


@pytest.mark.parametrize("head", HEADS)
def test_without_a_share_the_tower_is_clip(world: World, head: str) -> None:
    method = world.learn(world.method(DUCT, **FAST, head=head, merge=0.0, merge_base=0.0))
    assert same(tower(method), clip(world))
    if head == "text":
        assert world.predict(method) == world.predict(world.method(ZeroShot))


def test_the_whole_share_of_one_domain_is_finetune(world: World) -> None:
    options: dict[str, Any] = {"head": "text", "merge_base": 1.0, "similarity": False}
    method = world.method(DUCT, **FAST, **options)
    method.learn(world.domain(0))
    other = world.method(FineTune, **FAST)
    other.learn(world.domain(0))
    for name, weight in tower(method).items():
        torch.testing.assert_close(weight, other.tower.get_parameter(name).detach())


def test_every_domain_starts_from_clip_and_changes_add_up(world: World) -> None:
    options: dict[str, Any] = {"head": "text", "similarity": False, "merge": 0.3}
    method = world.learn(world.method(DUCT, **FAST, **options, merge_base=0.6))
    wanted = {k: v.clone() for k, v in clip(world).items()}
    for t in range(3):
        other = world.method(FineTune, **FAST)
        other.learn(world.domain(t))
        for name, weight in other.tower.named_parameters():
            share = 0.3 if t else 0.6
            wanted[name] += share * (weight.detach() - clip(world)[name])
    for name, weight in tower(method).items():
        torch.testing.assert_close(weight, wanted[name], atol=1e-5, rtol=1e-4)


def test_the_order_of_changes_does_not_matter() -> None:
    generator = torch.Generator().manual_seed(0)
    start, *tuned = ({"w": torch.randn(5, generator=generator).double()} for _ in range(4))
    found = []
    for order in ((0, 1, 2), (2, 0, 1)):
        merged = start
        for i in order:
            now = {"w": tuned[i]["w"].clone()}
            merge(now, merged, start, 0.1 * (i + 1))
            merged = now
        found.append(merged["w"])
    torch.testing.assert_close(*found)


def test_the_share_follows_the_similarity_of_class_means(world: World) -> None:
    method = world.method(DUCT, **FAST, head="text", merge_base=0.5)
    method.learn(world.domain(0))
    other = world.method(FineTune, **FAST)
    other.learn(world.domain(0))
    domain = world.domain(0)
    tuned = world.backbone.embed_with(other.tower, domain.images())
    cosines = [
        F.cosine_similarity(*(z[domain.labels == c].mean(0) for z in (domain.features(), tuned)), 0)
        for c in range(4)
    ]
    share = 0.5 * float(torch.stack(cosines).mean())
    assert method.diagnostics()["share"] == pytest.approx(share, abs=1e-4)
    assert share < 0.4999


def test_rows_start_from_text_and_class_means(world: World) -> None:
    method = world.learn(world.method(DUCT, base_epochs=0, steps=0, transport_share=0.0))
    torch.testing.assert_close(method.rows[0], method.text)
    z, labels = (torch.tensor(part) for part in world.features(1))
    means = F.normalize(torch.stack([z[labels == c].mean(0) for c in range(4)]), dim=1)
    wanted = F.normalize(method.text + means, dim=1)
    torch.testing.assert_close(method.rows[1], wanted.float())
    assert world.predict(method)


def test_without_transport_earlier_rows_stay(world: World) -> None:
    method = world.learn(world.method(DUCT, **FAST, transport_share=0.0), upto=2)
    before = method.rows.clone()
    method.learn(world.domain(2))
    assert torch.equal(method.rows[:2], before)


def test_the_plan_is_a_transport() -> None:
    generator = torch.Generator().manual_seed(0)
    plan = transport_plan(torch.rand(6, 6, generator=generator))
    torch.testing.assert_close(plan.sum(0), torch.full((6,), 1 / 6).double(), atol=1e-5, rtol=0)
    torch.testing.assert_close(plan.sum(1), torch.full((6,), 1 / 6).double(), atol=1e-5, rtol=0)
    cost = 100 * torch.rand(6, 6, generator=generator)
    assert torch.isfinite(transport_plan(cost)).all()


def test_identical_domains_are_matched_class_by_class() -> None:
    means = F.normalize(torch.randn(6, 32, generator=torch.Generator().manual_seed(0)), dim=1)
    plan = transport_plan(torch.cdist(means, means))
    torch.testing.assert_close(6 * plan, torch.eye(6).double(), atol=1e-6, rtol=0)


@pytest.mark.parametrize("kind", ["barycentric", "paper", "identity"])
def test_earlier_rows_follow(world: World, kind: str) -> None:
    method = world.learn(world.method(DUCT, **FAST, transport=kind, transport_share=0.3), upto=1)
    before = method.rows[0].clone()
    method.learn(world.domain(1))
    newest = F.normalize(method.rows[1], dim=1)
    if kind != "identity":
        plan = transport_plan(torch.cdist(method.means[1], method.means[0])).float()
        newest = (4 if kind == "barycentric" else 1) * plan.T @ newest
    wanted = 0.7 * F.normalize(before, dim=1) + 0.3 * newest
    torch.testing.assert_close(method.rows[0], wanted)


def test_the_best_row_of_a_class_decides(world: World) -> None:
    method = world.learn(world.method(DUCT, **FAST))
    z = method.embed(world.test_batch())
    rows = F.normalize(method.rows, dim=-1).flatten(0, 1)
    assert world.predict(method) == ((z @ rows.T).argmax(1) % 4).tolist()


def test_buffers_stay_as_they_are() -> None:
    layer, other = torch.nn.BatchNorm1d(3), torch.nn.BatchNorm1d(3)
    layer.num_batches_tracked.fill_(7)
    with torch.no_grad():
        layer.weight.fill_(3.0)
    start = {k: v.detach().clone() for k, v in other.named_parameters()}
    merge(dict(layer.named_parameters()), start, start, 0.5)
    assert layer.num_batches_tracked == 7
    assert layer.weight.tolist() == [2.0] * 3


@pytest.mark.parametrize("head", HEADS)
def test_cost(world: World, head: str) -> None:
    method = world.learn(world.method(DUCT, **FAST, head=head), upto=2)
    weights = sum(weight.numel() for weight in clip(world).values())
    rows = method.text.numel()
    assert method.trained_parameters() == weights + (rows if head == "cosine" else 0)
    held = sum(value.numel() for name, value in copied(method).items() if "tower" not in name)
    assert held == (4 * rows if head == "cosine" else 0)


def test_unit_means() -> None:
    z = torch.tensor([[3.0, 0.0], [0.0, 4.0], [1.0, 0.0]])
    found = unit_means(z, torch.tensor([0, 1, 1]), 3)
    torch.testing.assert_close(
        found, torch.tensor([[1.0, 0.0], [1 / 17**0.5, 4 / 17**0.5], [0, 0]])
    )
