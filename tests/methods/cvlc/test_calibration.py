from __future__ import annotations

import numpy as np
import pytest
import torch
from fsdil_methods.cvlc.calibration import (
    INITIAL,
    Calibration,
    copy_calibration,
    embed_frozen,
    embed_text,
    embed_vision,
    new_shift,
)

D = 6


def n(x: np.ndarray) -> np.ndarray:
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def pn(x: np.ndarray, alpha: float) -> np.ndarray:
    return np.sign(x) * (np.abs(x) + 1e-8) ** alpha


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture
def calibration() -> Calibration:
    """All scalars different, so that a mix-up shows."""
    values = {name: 0.2 + 0.1 * i for i, name in enumerate(INITIAL)}
    generator = torch.Generator().manual_seed(3)
    return Calibration(D, values, shift_init_std=1.0, generator=generator).double()


def value(calibration: Calibration, name: str) -> float:
    return float(getattr(calibration, name).detach())


@pytest.mark.parametrize("later", [False, True])
def test_vision(calibration: Calibration, rng: np.random.Generator, later: bool) -> None:
    z, base = rng.normal(size=(4, D)), rng.normal(size=D)
    shifted = n(z) + value(calibration, "vision_own") * n(calibration.shift.detach().numpy())
    if later:
        shifted = shifted + value(calibration, "vision_base") * n(base)
    expected = pn(n(shifted), value(calibration, "vision_power"))
    found = embed_vision(torch.tensor(z), calibration, torch.tensor(base) if later else None)
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-6)


@pytest.mark.parametrize("later", [False, True])
def test_text(calibration: Calibration, rng: np.random.Generator, later: bool) -> None:
    e, common, base = rng.normal(size=(2, 3, D)), rng.normal(size=D), rng.normal(size=D)
    shifted = n(e) + value(calibration, "text_common") * n(common)
    shifted = shifted + value(calibration, "text_own") * n(calibration.shift.detach().numpy())
    if later:
        shifted = shifted + value(calibration, "text_base") * n(base)
    expected = pn(shifted, value(calibration, "text_power"))
    arguments = (torch.tensor(e), calibration, torch.tensor(common))
    found = embed_text(*arguments, torch.tensor(base) if later else None)
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-6)


def test_frozen(rng: np.random.Generator) -> None:
    z = rng.normal(size=(3, D))
    np.testing.assert_allclose(embed_frozen(torch.tensor(z)).numpy(), n(z))
    np.testing.assert_allclose(embed_frozen(torch.tensor(z), 0.8).numpy(), pn(n(z), 0.8))


def test_what_learns(calibration: Calibration, rng: np.random.Generator) -> None:
    def trained(output: torch.Tensor) -> set[str]:
        calibration.zero_grad()
        (output * torch.tensor(rng.normal(size=output.shape))).sum().backward()
        return {name for name, p in calibration.named_parameters() if p.grad is not None}

    rows = torch.tensor(rng.normal(size=(4, D)))
    base = torch.tensor(rng.normal(size=D), requires_grad=True)
    common = torch.tensor(rng.normal(size=D), requires_grad=True)
    vision = {"shift", "vision_own", "vision_power"}
    text = {"shift", "text_common", "text_own", "text_power"}
    assert trained(embed_vision(rows, calibration)) == vision
    assert trained(embed_vision(rows, calibration, base)) == vision | {"vision_base"}
    assert trained(embed_text(rows, calibration, common)) == text
    assert trained(embed_text(rows, calibration, common, base)) == text | {"text_base"}
    assert base.grad is None
    assert common.grad is not None


def test_initial_values_and_overrides() -> None:
    plain = Calibration(D)
    assert {name: value(plain, name) for name in INITIAL} == pytest.approx(
        {
            **dict.fromkeys(("synonym_share", "current_share", "visual_share"), 0.5),
            **dict.fromkeys(("vision_own", "vision_base"), 0.5),
            **dict.fromkeys(("text_common", "text_own", "text_base"), 0.5),
            **dict.fromkeys(("vision_power", "text_power"), 0.8),
        }
    )
    assert plain.shift.tolist() == [0.0] * D
    assert value(Calibration(D, {"vision_own": 0.25}), "vision_own") == 0.25
    assert value(Calibration(D, {"vision_own": 0.25}), "text_own") == 0.5
    with pytest.raises(ValueError, match="c1"):
        Calibration(D, {"c1": 0.25})


def test_optimiser_groups_cover_every_scalar_once() -> None:
    calibration = Calibration(D)
    groups = [*calibration.weights(), *calibration.powers(), calibration.shift]
    assert len(calibration.weights()) == 8
    assert [float(p.detach()) for p in calibration.powers()] == pytest.approx([0.8, 0.8])
    assert {id(p) for p in groups} == {id(p) for p in calibration.parameters()}
    assert len(groups) == len(list(calibration.parameters()))


def test_shift_init_depends_on_the_generator_alone() -> None:
    first, second = (new_shift(1000, 1e-3, torch.Generator().manual_seed(5)) for _ in range(2))
    assert torch.equal(first, second)
    assert float(first.detach().std()) == pytest.approx(1e-3, rel=0.1)


def test_zero_shift_has_a_huge_gradient_and_a_small_one_has_not() -> None:
    z = torch.tensor(np.random.default_rng(1).normal(size=(4, D))).float()
    up = torch.tensor(np.random.default_rng(2).normal(size=(4, D))).float()
    largest = []
    for std in (0.0, 1e-3):
        calibration = Calibration(D, shift_init_std=std, generator=torch.Generator().manual_seed(0))
        (embed_vision(z, calibration) * up).sum().backward()
        assert calibration.shift.grad is not None
        largest.append(float(calibration.shift.grad.abs().max()))
    assert largest[0] > 1e10
    assert largest[1] < 1e5


def test_copy_is_equal_separate_and_trainable(calibration: Calibration) -> None:
    calibration.requires_grad_(False)
    copy = copy_calibration(calibration)
    for mine, theirs in zip(copy.parameters(), calibration.parameters(), strict=True):
        assert torch.equal(mine, theirs)
        assert mine.dtype == theirs.dtype
        assert mine.requires_grad
    before = calibration.shift.clone()
    with torch.no_grad():
        copy.shift += 1
    assert torch.equal(calibration.shift, before)
