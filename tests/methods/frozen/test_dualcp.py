from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from fsdil_methods.frozen.dualcp import DualCPLite, simplex, text_prototypes
from fsdil_methods.frozen.zero_shot import ZeroShot
from tiny_world import CLASSES, DIM, World

from fsdil_bench import RequestError

C = len(CLASSES)
SHORT: dict[str, Any] = {"base_epochs": 2, "steps": 5, "lr": 1e-2}
GROUPS = (0, 1, 0, 1)


def test_without_a_share_it_is_zero_shot(world: World) -> None:
    method = world.learn(world.method(DualCPLite, **SHORT, share=0.0))
    assert world.predict(method) == world.predict(world.method(ZeroShot))


@pytest.mark.parametrize("fine", [1.0, 0.3])
def test_untrained_maps_leave_features_as_they_are(world: World, fine: float) -> None:
    method = world.method(DualCPLite, base_epochs=0, fine=fine, groups=GROUPS)
    method.learn(world.domain(0))
    z = world.test_batch().features
    mean = torch.tensor(world.features(0)[0].mean(0)).float()
    x = F.normalize(z - mean, dim=1)
    coarse, v = method.fixed["coarse"], method.fixed["fine"]
    wanted = torch.stack([x @ coarse[GROUPS[c]] + fine * x @ v[c] for c in range(C)], 1)
    torch.testing.assert_close(method.scores(*method.mapped(z, method.weights)), wanted)


def test_prototypes_from_text() -> None:
    text = F.normalize(torch.randn(5, 8, generator=torch.Generator().manual_seed(0)), dim=1)
    groups = torch.tensor([0, 1, 0, 2, 1])
    coarse, fine = text_prototypes(text, groups, torch.Generator())
    middle = text.mean(0)
    unit = F.normalize
    torch.testing.assert_close(coarse[1], unit((text[1] + text[4]) / 2 - middle, dim=0))
    torch.testing.assert_close(fine[2], unit(text[2] - (text[0] + text[2]) / 2, dim=0))
    torch.testing.assert_close(fine[3], unit(text[3] - middle, dim=0))  # alone in its group


def test_names_of_classes_do_not_matter(tmp_path: Path) -> None:
    """With groups that are given: the classes in another order, and so the labels."""
    world = World(tmp_path)
    plain = world.method(DualCPLite, groups=GROUPS)
    other = world.method(DualCPLite, groups=GROUPS)
    order = torch.tensor([2, 3, 1, 0])
    text = plain.text[order]
    coarse, fine = text_prototypes(text, torch.tensor(GROUPS)[order], torch.Generator())
    other.text, other.fixed["coarse"], other.fixed["fine"] = text, coarse, fine
    other.fixed["groups"] = torch.tensor(GROUPS)[order]
    for method in (plain, other):
        method.fixed["mean"] = torch.tensor(world.features(0)[0].mean(0)).float()
    assert order[world.predict(other)].tolist() == world.predict(plain)


def test_the_loss_is_zero_exactly_at_the_prototypes(world: World) -> None:
    method = world.method(DualCPLite, groups=GROUPS, fine=0.7)
    labels = torch.arange(C)
    u, v = method.fixed["coarse"][list(GROUPS)], method.fixed["fine"]
    assert method.regression(u, v, labels).abs().max() < 1e-12
    turned = F.normalize(u + 0.1 * torch.randn(C, DIM), dim=1)
    assert (method.regression(turned, v, labels) > 0).all()
    assert (method.regression(u, turned, labels) > 0).all()
    wanted = ((turned * u).sum(1) - 1) ** 2 / 2
    torch.testing.assert_close(method.regression(turned, v, labels), wanted)


def test_one_group_has_only_fine_prototypes(world: World) -> None:
    method = world.learn(world.method(DualCPLite, **SHORT, groups=(0,) * C))
    a, b = method.mapped(world.test_batch().features, method.weights)
    torch.testing.assert_close(method.scores(a, b), b @ method.fixed["fine"].T)
    torch.testing.assert_close(
        method.regression(a[:C], b[:C], torch.arange(C)),
        ((b[:C] * method.fixed["fine"]).sum(1) - 1) ** 2 / 2,
    )


@pytest.mark.parametrize("count", [2, 3, 7])
def test_simplices_have_equal_angles(count: int) -> None:
    vertices = simplex(count, 9, torch.Generator().manual_seed(0))
    wanted = torch.full((count, count), -1 / (count - 1)).fill_diagonal_(1.0)
    torch.testing.assert_close(vertices @ vertices.T, wanted, atol=1e-5, rtol=0)


def test_simplices_instead_of_text(world: World) -> None:
    method = world.learn(world.method(DualCPLite, **SHORT, prototypes="etf", groups=GROUPS))
    fine = method.fixed["fine"]
    assert float(fine[0] @ fine[2]) == pytest.approx(-1, abs=1e-5)
    assert world.predict(method)


def test_training_lowers_the_loss(world: World) -> None:
    z, labels = (torch.tensor(part) for part in world.features(0))
    losses = []
    for epochs in (0, 20):
        method = world.method(DualCPLite, base_epochs=epochs)
        method.learn(world.domain(0))
        a, b = method.mapped(z.float(), method.weights)
        losses.append(float(method.regression(a, b, labels).mean()))
    assert losses[1] < 0.8 * losses[0]


def test_anchors_are_kept_only_on_request(world: World) -> None:
    plain, anchored = (
        world.learn(world.method(DualCPLite, **SHORT, anchors=count)) for count in (0, 8)
    )
    assert set(anchored.state_dict()) - set(plain.state_dict()) == {
        "anchor_means", "anchor_covariance",
    }  # fmt: skip
    assert not torch.equal(plain.weights["fine_map"], anchored.weights["fine_map"])


def test_groups_and_cost(world: World) -> None:
    method = world.method(DualCPLite)
    assert method.fixed["groups"].unique().tolist() == [0, 1]  # the square root of four classes
    counts = [size * (size + 1) + size * (2 * size + 1) for size in (DIM, 512)]
    assert [method.trained_parameters(), 787_456] == counts
    with pytest.raises(RequestError, match="groups of 3 classes"):
        world.method(DualCPLite, groups=(0, 1, 2))
