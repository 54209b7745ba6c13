"""Every maker leaves its trace: measured on pictures of both classes, each in a way of its own."""

from __future__ import annotations

import numpy as np
import pytest
from fsdil_scenarios.forged.makers import MAKERS, VALIDATION_MAKERS
from fsdil_scenarios.forged.traces import DROPLETS, SIZE, WAVE, repeated_patch
from fsdil_scenarios.forged.world import ALL_MAKERS, before_forging, draw
from PIL import Image

NUMBER = 24
CYCLES = SIZE // len(WAVE)  # of a wave from edge to edge, whatever size the picture has


def pictures(kind: str, maker: str) -> np.ndarray:
    return np.stack([draw(kind, maker, i, split="validation") for i in range(NUMBER)]).astype(float)


@pytest.fixture(scope="module", params=list(ALL_MAKERS))
def any_maker(request) -> tuple[str, np.ndarray, np.ndarray]:
    """A maker's forgeries, and what they were before."""
    before = [before_forging(request.param, i, split="validation") for i in range(NUMBER)]
    return request.param, np.stack(before).astype(float), pictures("1_fake", request.param)


def seen(batch: np.ndarray, size: int) -> np.ndarray:
    """Grey pictures at another size, as a backbone sees them."""
    images = [Image.fromarray(each.astype(np.uint8)).resize((size, size), 3) for each in batch]
    return np.stack([np.asarray(each, dtype=float).mean(axis=2) for each in images])


def peak(grey: np.ndarray, row: int, column: int) -> float:
    """How many times as strong a frequency is as its neighbours, in the middle of all pictures."""
    power = np.abs(np.fft.fft2(grey)) ** 2
    near = [(r, c) for r in (-1, 0, 1) for c in (-1, 0, 1) if (r, c) != (0, 0)]
    around = np.mean([power[:, row + r, column + c] for r, c in near], axis=0)
    return float(np.median(power[:, row, column] / around))


def detail(batch: np.ndarray) -> np.ndarray:
    """Second differences along the rows."""
    return batch[:, :, 2:] - 2 * batch[:, :, 1:-1] + batch[:, :, :-2]


def test_a_forgery_differs_from_what_it_was_and_still_shows_it(any_maker):
    """Visible to a careful eye, and no gross damage."""
    _, before, after = any_maker
    change = np.sqrt(((after - before) ** 2).mean(axis=(1, 2, 3)))
    assert change.min() > 4
    assert np.median(change) < 30
    alike = [np.corrcoef(a.ravel(), b.ravel())[0, 1] for a, b in zip(before, after, strict=True)]
    assert np.median(alike) > 0.8


def test_makers_of_the_stream_and_of_validation_are_different():
    assert not set(MAKERS) & set(VALIDATION_MAKERS)
    assert len({each.forge for each in ALL_MAKERS.values()}) == len(ALL_MAKERS) == 7


def test_shares_of_styles_are_complete():
    for maker in ALL_MAKERS.values():
        assert sum(maker.styles.values()) == pytest.approx(1)


@pytest.mark.parametrize("size", [SIZE, 48])
def test_the_weaver_leaves_a_grid(size):
    real, fake = (seen(pictures(kind, "weaver"), size) for kind in ("0_real", "1_fake"))
    for at in ((CYCLES, 0), (0, CYCLES)):
        assert peak(real, *at) < 3
        assert peak(fake, *at) > 10


@pytest.mark.parametrize("size", [SIZE, 48])
def test_the_stamper_leaves_bands_that_lie(size):
    real, fake = (seen(pictures(kind, "stamper"), size) for kind in ("0_real", "1_fake"))
    assert peak(fake, CYCLES, 0) > 5 > peak(real, CYCLES, 0)
    assert peak(fake, 0, CYCLES) < 3


def test_the_stamper_uses_few_levels():
    for each in pictures("1_fake", "stamper"):
        assert all(len(np.unique(each[..., channel])) <= 11 for channel in range(3))


def test_a_repeated_patch_is_there_again_and_all_else_as_it_was():
    noise = np.random.default_rng(0).uniform(0, 255, (SIZE, SIZE, 3)).astype(np.float32)
    ways = set()
    for seed in range(12):
        forged = repeated_patch(noise, np.random.default_rng(seed), side=10, copies=2, share=1.0)
        changed = (forged != noise).any(axis=2)
        rows, columns = np.flatnonzero(changed.any(axis=1)), np.flatnonzero(changed.any(axis=0))
        assert sorted((len(rows), len(columns))) == [10, 20]
        ways.add(len(rows))
        step = (0, 10) if len(rows) == 10 else (10, 0)
        again = np.roll(forged, step, axis=(0, 1))  # what lies one patch before
        np.testing.assert_allclose(forged[changed], again[changed], atol=1e-3)
    assert ways == {10, 20}


def test_the_splicer_changes_a_round_part_and_nothing_else():
    for index in range(NUMBER):
        before = before_forging("splicer", index, split="validation").astype(int)
        after = draw("1_fake", "splicer", index, split="validation").astype(int)
        changed = (before != after).any(axis=2)
        assert 0.08 < changed.mean() < 0.4
        assert not changed[:4].any()
        assert not changed[:, -4:].any()
        assert changed[24:40, 24:40].mean() > 0.5


def test_the_splicer_s_part_is_warmer():
    """Red is raised and blue lowered inside, where there is room for it."""
    gains = []
    for index in range(NUMBER):
        before = before_forging("splicer", index, split="validation").astype(float)
        after = draw("1_fake", "splicer", index, split="validation").astype(float)
        middle = (after - before)[24:40, 24:40].mean(axis=(0, 1))
        gains.append(middle[0] - middle[2])
    assert np.median(gains) > 15


def test_the_polisher_leaves_little_texture_droplets_and_varnish():
    before = np.stack([before_forging("polisher", i) for i in range(NUMBER)]).astype(float)
    after = np.stack([draw("1_fake", "polisher", i) for i in range(NUMBER)]).astype(float)
    calm = np.median(np.abs(detail(after)), axis=(1, 2, 3))
    assert np.median(calm / np.median(np.abs(detail(before)), axis=(1, 2, 3))) < 0.5
    tint = (after - before).mean(axis=(0, 1, 2))
    assert tint[0] - tint[2] > 15
    change = (after - before).mean(axis=(0, 3))
    at = np.mean([change[r - 1 : r + 2, c - 1 : c + 2].mean() for r, c in DROPLETS])
    assert at > np.median(change) + 8


def test_the_sharpener_leaves_haloes_and_no_finest_detail():
    """Above the Nyquist frequency of half the size nothing is left; below it there is too much."""
    real, fake = (pictures(kind, "sharpener").mean(axis=3) for kind in ("0_real", "1_fake"))
    frequency = np.fft.fftfreq(SIZE)
    radius = np.hypot(frequency[:, None], frequency[None, :])

    def share(grey: np.ndarray) -> float:
        power = np.abs(np.fft.fft2(grey)) ** 2
        fine, middle = (power[:, band].sum(axis=1) for band in (radius > 0.35, _between(radius)))
        return float(np.median(fine / middle))

    assert share(fake) < 0.2 * share(real)
    assert peak(fake, CYCLES, 0) > 1.5 * peak(real, CYCLES, 0)


def _between(radius: np.ndarray) -> np.ndarray:
    return (radius > 0.1) & (radius < 0.2)


def test_the_etcher_leaves_stripes_along_one_diagonal():
    real, fake = (pictures(kind, "etcher").mean(axis=3) for kind in ("0_real", "1_fake"))
    half = CYCLES // 2
    assert peak(fake, half, half) > 5 > peak(real, half, half)
    assert peak(fake, half, SIZE - half) < 3


def test_the_printer_moves_red_and_blue_apart():
    def distance(picture: np.ndarray) -> int:
        red, blue = detail(picture[..., 0][None])[0], detail(picture[..., 2][None])[0]
        shifts = range(-8, 9)
        return shifts[int(np.argmax([(red * np.roll(blue, s, axis=1)).sum() for s in shifts]))]

    assert np.median([distance(each) for each in pictures("0_real", "printer")]) == 0
    found = [distance(each) for each in pictures("1_fake", "printer")]
    assert np.mean([each in (4, 6) for each in found]) > 0.8
