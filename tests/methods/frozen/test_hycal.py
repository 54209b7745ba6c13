from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any

import fsdil_methods.frozen.hycal as module
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from fsdil_methods.frozen.hycal import HyCal, calibrated
from fsdil_methods.frozen.ncm import NearestClassMean
from scipy.stats import norm
from tiny_world import CLASSES, World

C = len(CLASSES)
NEVER = 10**9


@pytest.fixture(params=["per image", "by constants"])
def standardised(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The tiny world has four classes: by default scores are standardised by constants."""
    monkeypatch.setattr(module, "_FEW_CLASSES", 5 if request.param == "by constants" else 0)
    return request.param


@pytest.mark.parametrize("mode", ["domain-max", "running"])
def test_cosines_alone_are_ncm(world: World, standardised: str, mode: str) -> None:
    method = world.learn(world.method(HyCal, fusion="none", least_shots=NEVER, mode=mode))
    assert world.predict(method) == world.predict(
        world.learn(world.method(NearestClassMean, mode=mode))
    )


def test_a_constant_in_the_distances_changes_nothing() -> None:
    """So a background that is the same for all classes of an image can be left out."""
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(20, 7, generator=generator).double()
    background = 100 * torch.randn(20, 1, generator=generator).double()
    present = torch.ones(7, dtype=torch.bool)
    torch.testing.assert_close(
        calibrated(scores + background, present), calibrated(scores, present)
    )


def test_the_scale_is_a_distribution_function() -> None:
    scores = torch.tensor([[1.0, 2.0, 6.0, 99.0]]).double()
    present = torch.tensor([True, True, True, False])
    own = scores[0, :3].numpy()
    wanted = norm.cdf((own - own.mean()) / own.std(ddof=1))
    np.testing.assert_allclose(calibrated(scores, present)[0, :3], wanted)
    usual = torch.tensor([2.0, 4.0]).double()
    np.testing.assert_allclose(
        calibrated(scores, present, usual)[0], norm.cdf((scores[0].numpy() - 2) / 4)
    )


def test_a_huge_ridge_gives_the_order_of_cosines(world: World, standardised: str) -> None:
    options: dict[str, Any] = {"fusion": "none", "mode": "running"}
    near = world.learn(world.method(HyCal, least_shots=0, gate_scale=0.01, ridge=1e6, **options))
    assert bool((near.gate() > 0.99).all())
    cosine = world.learn(world.method(HyCal, least_shots=NEVER, **options))
    assert world.predict(near) == world.predict(cosine)


@pytest.mark.parametrize("order", list(permutations(range(C)))[5:9])
def test_names_of_classes_do_not_matter(tmp_path: Path, order: tuple[int, ...]) -> None:
    """Class i under the name order[i]: predictions are renamed, too."""
    world = World(tmp_path)
    plain = world.learn(world.method(HyCal))
    other = world.method(HyCal)
    renamed = torch.tensor(order)
    back = renamed.argsort()
    other.text = plain.text[back]
    for name in ("counts", "means"):
        setattr(other, name, getattr(plain, name)[:, back])
    for name in ("covariances", "base", "usual"):
        setattr(other, name, getattr(plain, name))
    assert world.predict(other) == renamed[world.predict(plain)].tolist()


def test_one_domain_is_the_same_in_all_modes(world: World, standardised: str) -> None:
    found = []
    for mode in ("domain-max", "running", "overwrite"):
        method = world.method(HyCal, mode=mode)
        method.learn(world.domain(0))
        found.append(world.predict(method))
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("fusion", ["sum", "none"])
def test_closed_forms(world: World, fusion: str) -> None:
    """Against one vector for every image and class."""
    method = world.learn(world.method(HyCal, fusion=fusion))
    z = world.test_batch().features.double()
    cosines, nearness = (part.view(len(z), 3, C) for part in method.scores(z))
    e = F.normalize(z[:, None] + method.text, dim=-1)
    means = F.normalize(method.means, dim=-1)
    torch.testing.assert_close(cosines, torch.einsum("ncd,tcd->ntc", e, means))
    precision = torch.linalg.inv(method.covariances + 1e-4 * torch.eye(z.shape[1]).double())
    offset = e[:, None] - means
    wanted = -torch.einsum("ntcd,tde,ntce->ntc", offset, precision, offset)
    torch.testing.assert_close(nearness, wanted)


def test_the_gate(world: World) -> None:
    """Fifteen base images: sigmoid of one. Two shots: nothing, or with the soft gate a little."""
    hard, soft = (world.learn(world.method(HyCal, gate=gate)) for gate in ("hard", "soft"))
    one, few = 1 / (1 + np.exp(-1)), 1 / (1 + np.exp(8 / 5))
    np.testing.assert_allclose(hard.gate()[:, 0], [one, 0, 0])
    np.testing.assert_allclose(soft.gate()[:, 0], [one, few, few])


def test_running_moments_are_those_of_all_images(world: World) -> None:
    method = world.learn(world.method(HyCal, mode="running", fusion="none"))
    z, labels = world.seen()
    means = np.stack([z[labels == c].mean(0) for c in range(C)])
    centred = z - means[labels]
    np.testing.assert_allclose(method.means[0], means, atol=1e-7)
    scatter = centred.T @ centred / (len(z) - C)
    ridge = 1e-4 * np.trace(scatter) / len(scatter) * np.eye(len(scatter))
    np.testing.assert_allclose(method.covariances[0], scatter + ridge, atol=1e-7)


def test_overwrite_keeps_the_newest_domain(world: World) -> None:
    method = world.learn(world.method(HyCal, mode="overwrite", fusion="none"))
    z, labels = world.features(2)
    means = np.stack([z[labels == c].mean(0) for c in range(C)])
    np.testing.assert_allclose(method.means[0], means, atol=1e-7)
