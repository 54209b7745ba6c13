from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from fsdil_methods.frozen import rapf
from fsdil_methods.frozen.rapf import RAPF, adapted, fused, hinge, joined, similar_pairs
from fsdil_methods.frozen.zero_shot import ZeroShot
from tiny_world import CLASSES, DIM, World

C = len(CLASSES)
SHORT: dict[str, Any] = {"base_epochs": 2, "steps": 5, "lr": 1e-2}


def matrices(count: int, seed: int = 0) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(6, 6, generator=generator).double() for _ in range(count)]


def test_untrained_it_is_zero_shot(world: World) -> None:
    template = ("a good photo of a {}.",)
    method = world.learn(world.method(RAPF, base_epochs=0, steps=0))
    assert torch.equal(method.adapter, torch.eye(DIM))
    assert world.predict(method) == world.predict(world.method(ZeroShot, templates=template))


def test_the_random_start_is_that_of_a_linear_layer(world: World) -> None:
    method = world.method(RAPF, init="random")
    assert method.adapter.abs().max() <= DIM**-0.5
    assert abs(float(method.adapter.std()) - DIM**-0.5 / 3**0.5) < 0.02


def test_fusion_is_the_formula() -> None:
    old, new = matrices(2)
    u, s, vh = np.linalg.svd(old.numpy())
    moved, kept = u.T @ new.numpy(), np.diag(s) @ vh
    change = np.abs(moved - kept)
    mask = np.minimum(change / change.max() + 0.3, 1)
    wanted = u @ (mask * moved + (1 - mask) * kept)
    np.testing.assert_allclose(fused(old, new, 0.3), wanted, atol=1e-12)


def test_the_ends_of_fusion() -> None:
    """The whole bias is the new adapter; a mask of zeros would be the old one."""
    old, new = matrices(2)
    torch.testing.assert_close(fused(old, new, 1.0), new)
    basis = torch.linalg.svd(old)[0]
    far = old + basis @ torch.diag(torch.tensor([1e3, 0, 0, 0, 0, 0]).double())
    # Where nothing changed in the basis the mask is zero, and the old values stay.
    torch.testing.assert_close((basis.T @ fused(old, far, 0.0))[1:], (basis.T @ old)[1:])
    assert fused(old, old.clone(), 0.2) is old


def test_signs_of_singular_vectors_do_not_matter() -> None:
    old, new = matrices(2)
    basis = torch.linalg.svd(old)[0]
    flipped = basis * torch.tensor([1, -1, 1, -1, -1, 1])
    torch.testing.assert_close(joined(basis, old, new, 0.2), joined(flipped, old, new, 0.2))


def test_the_identity_is_its_own_basis() -> None:
    (new,) = matrices(1)
    old = torch.eye(6).double()
    change = (new - old).abs()
    mask = (change / change.max() + 0.2).clamp(max=1)
    torch.testing.assert_close(fused(old, new, 0.2), mask * new + (1 - mask) * old)


def test_the_hinge_is_zero_beyond_the_margin() -> None:
    own, other = torch.eye(4)[:2], torch.eye(4)[2:]
    assert hinge(own, own, other) == 0
    torch.testing.assert_close(hinge(other, own, other), torch.tensor(1.1))
    torch.testing.assert_close(hinge((own + other) / 2, own, other), torch.tensor(0.1))


def test_pairs_of_similar_classes() -> None:
    text = F.normalize(torch.tensor([[1.0, 0.0], [1.0, 0.1], [1.0, 0.3], [-1.0, 0.0]]), dim=1)
    near = [
        (i, j)
        for i in range(4)
        for j in range(4)
        if i != j and float((text[i] - text[j]).norm()) < 0.25
    ]
    assert sorted(map(tuple, similar_pairs(text, 0.25, 5).tolist())) == near
    assert sorted(map(tuple, similar_pairs(text, 9.0, 1).tolist())) == [
        (0, 1), (1, 0), (2, 1), (3, 2),
    ]  # fmt: skip


def test_one_domain_has_neither_replay_nor_fusion(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("draw", "fused", "hinge"):
        monkeypatch.setattr(rapf, name, lambda *_: pytest.fail("in the base domain"))
    method = world.method(RAPF, **SHORT, threshold=9.0)
    method.learn(world.domain(0))
    with pytest.raises(pytest.fail.Exception):
        method.learn(world.domain(1))


def test_replayed_features_are_of_the_stored_cells(world: World) -> None:
    method = world.learn(world.method(RAPF, **SHORT), upto=2)
    generator = torch.Generator().manual_seed(0)
    narrow = torch.zeros_like(method.covariances)
    replay = rapf._Replay(method.means, method.counts, narrow, generator)
    drawn, labels = replay.any_class(200)
    nearest = torch.cdist(drawn, method.means.flatten(0, 1)).min(1)
    assert nearest.values.max() < 1e-3
    assert torch.equal(nearest.indices % C, labels)
    assert set((nearest.indices // C).tolist()) == {0, 1}
    wanted = torch.tensor([2, 0, 2])
    found = torch.cdist(replay.of_classes(wanted), method.means.flatten(0, 1)).argmin(1)
    assert torch.equal(found % C, wanted)


def test_training_lowers_the_loss(world: World) -> None:
    z, labels = (torch.tensor(part) for part in world.features(0))
    losses = []
    for epochs in (0, 10):
        method = world.method(RAPF, base_epochs=epochs, lr=1e-2)
        method.learn(world.domain(0))
        logits = world.backbone.logit_scale * adapted(z.float(), method.adapter) @ method.text.T
        losses.append(float(F.cross_entropy(logits, labels)))
    assert losses[1] < 0.9 * losses[0]


def test_cost(world: World) -> None:
    method = world.learn(world.method(RAPF, **SHORT))
    assert method.trained_parameters() == DIM * DIM  # 262,144 at d = 512
    assert method.covariances.shape == (3, DIM, DIM)
