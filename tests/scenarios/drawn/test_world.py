"""The drawn world: pure, varied, never blank, and not solved by a picture's mean colour."""

from __future__ import annotations

import hashlib
import itertools
import subprocess
import sys

import numpy as np
import pytest
from fsdil_scenarios.drawn.contact_sheet import main as contact_sheet
from fsdil_scenarios.drawn.styles import STYLES
from fsdil_scenarios.drawn.world import ALL_STYLES, CLASSES, DOMAINS, VALIDATION_DOMAINS, draw
from PIL import Image

COMBINATIONS = list(itertools.product(CLASSES, ALL_STYLES))
every_style = pytest.mark.parametrize("domain", ALL_STYLES)
#: Mean red, green and blue of a butterfly in every style. Another mean is another picture: raise
#: WORLD_VERSION then. Versions of Pillow round lines a little differently.
MEANS = {
    "real": (60.0, 83.3, 77.8),
    "painting": (156.9, 167.0, 164.8),
    "clipart": (215.6, 202.3, 201.2),
    "sketch": (213.0, 213.0, 213.0),
    "quickdraw": (236.8, 236.8, 236.8),
    "infograph": (176.4, 168.8, 199.8),
    "woodcut": (112.7, 118.7, 117.6),
    "pixel art": (187.4, 170.4, 130.2),
}
FINGERPRINT = """
import hashlib
from fsdil_scenarios.drawn.world import ALL_STYLES, CLASSES, draw
digest = hashlib.sha256()
for class_name in CLASSES[::5]:
    for domain in ALL_STYLES:
        digest.update(draw(class_name, domain, 7, split="test").tobytes())
"""


def test_names() -> None:
    assert len(CLASSES) == len(set(CLASSES)) == 24
    assert DOMAINS == ("real", "painting", "clipart", "sketch", "quickdraw", "infograph")
    assert tuple(STYLES) == DOMAINS
    assert VALIDATION_DOMAINS == ("woodcut", "pixel art")
    assert tuple(ALL_STYLES) == DOMAINS + VALIDATION_DOMAINS


@every_style
def test_pictures_are_what_they_always_were(domain: str) -> None:
    means = draw("butterfly", domain, 7, split="test").mean((0, 1))
    np.testing.assert_allclose(means, MEANS[domain], atol=0.3)


@every_style
@pytest.mark.parametrize("size", [48, 129, 256])
def test_shape_and_type(domain: str, size: int) -> None:
    picture = draw(CLASSES[0], domain, 0, size=size)
    assert picture.shape == (size, size, 3)
    assert picture.dtype == np.uint8


@every_style
def test_same_arguments_give_the_same_bytes(domain: str) -> None:
    first = [draw(class_name, domain, 3).tobytes() for class_name in CLASSES]
    second = [draw(class_name, domain, 3).tobytes() for class_name in reversed(CLASSES)]
    assert first == second[::-1]


def test_a_fresh_process_gives_the_same_bytes() -> None:
    here: dict[str, hashlib._Hash] = {}
    exec(FINGERPRINT, here)
    command = [sys.executable, "-c", FINGERPRINT + "print(digest.hexdigest())"]
    there = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    assert there == here["digest"].hexdigest()


def test_global_random_state_plays_no_part() -> None:
    np.random.seed(0)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    first = draw("cup", "real", 0)
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002
    np.random.seed(1)  # noqa: NPY002
    assert (draw("cup", "real", 0) == first).all()


@every_style
def test_every_argument_matters(domain: str) -> None:
    styles = tuple(ALL_STYLES)
    other_domain = styles[styles.index(domain) - 1]
    pictures = [
        draw("cup", domain, 0),
        draw("cup", domain, 1),
        draw("key", domain, 0),
        draw("cup", other_domain, 0),
        *(draw("cup", domain, 0, split=split) for split in ("test", "validation", "pretrain")),
    ]
    assert len({picture.tobytes() for picture in pictures}) == len(pictures)


@pytest.mark.parametrize(("class_name", "domain"), COMBINATIONS)
def test_no_picture_is_blank(class_name: str, domain: str) -> None:
    for index in range(2):
        grey = draw(class_name, domain, index, split="test").mean(axis=2)
        assert grey.std() > 8, index
        dull = np.median(grey)
        marked = np.abs(grey - dull) > 16
        assert marked.mean() > 0.02, index


@every_style
def test_a_style_varies_within_itself(domain: str) -> None:
    pictures = np.stack([draw("house", domain, index) for index in range(12)]).astype(float)
    differences = [np.abs(a - b).mean() for a, b in itertools.combinations(pictures, 2)]
    assert min(differences) > 5


@every_style
def test_mean_colour_does_not_tell_the_class(domain: str) -> None:
    def mean_colours(split: str, count: int) -> np.ndarray:
        return np.array(
            [
                [draw(name, domain, index, split=split).mean(axis=(0, 1)) for index in range(count)]
                for name in CLASSES
            ]
        )

    centres = mean_colours("train", 4).mean(axis=1)
    probes = mean_colours("test", 2)
    distances = np.linalg.norm(probes[:, :, None] - centres, axis=-1)
    accuracy = (distances.argmin(axis=-1) == np.arange(len(CLASSES))[:, None]).mean()
    assert accuracy < 0.3, accuracy


def test_styles_of_validation_do_not_look_like_those_of_the_stream() -> None:
    """In how many colours they have, and in how strong their contrasts are."""

    def looks(domain: str) -> np.ndarray:
        pictures = [draw(name, domain, 0, split="validation") for name in CLASSES]
        colours = [len(np.unique(picture.reshape(-1, 3), axis=0)) for picture in pictures]
        steps = [np.abs(np.diff(p.astype(float), axis=1)).mean() for p in pictures]
        return np.array([np.median(colours), np.median(steps)])

    stream = np.array([looks(domain) for domain in DOMAINS])
    woodcut, pixel_art = (looks(domain) for domain in VALIDATION_DOMAINS)
    assert woodcut[1] > 1.3 * stream[:, 1].max()
    assert pixel_art[0] < 10 < stream[:, 0].min()


@pytest.mark.parametrize("size", [64, 96])
def test_pixel_art_is_made_of_squares(size: int) -> None:
    """No more than 32 rows and columns of them."""
    for name in CLASSES:
        picture = draw(name, "pixel art", 1, split="validation", size=size)
        for turned in (picture, picture.transpose(1, 0, 2)):
            changes = (turned[1:] != turned[:-1]).any(axis=(1, 2)).sum()
            assert changes <= 31


def test_the_contact_sheet_shows_all_styles(tmp_path) -> None:
    file = tmp_path / "sheet.png"
    contact_sheet(["--samples", "1", "--classes", "cup", "--out", str(file)])
    pixels = np.asarray(Image.open(file))
    assert pixels.shape == (82, 72 + 8 * 72, 3)
    np.testing.assert_array_equal(pixels[16:80, 576:640], draw("cup", "pixel art", 0))
