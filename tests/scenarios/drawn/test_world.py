"""The drawn world: pure, varied, never blank, and not solved by a picture's mean colour."""

from __future__ import annotations

import hashlib
import itertools
import subprocess
import sys

import numpy as np
import pytest
from fsdil_scenarios.drawn.styles import STYLES
from fsdil_scenarios.drawn.world import CLASSES, DOMAINS, draw

COMBINATIONS = list(itertools.product(CLASSES, DOMAINS))
FINGERPRINT = """
import hashlib
from fsdil_scenarios.drawn.world import CLASSES, DOMAINS, draw
digest = hashlib.sha256()
for class_name in CLASSES[::5]:
    for domain in DOMAINS:
        digest.update(draw(class_name, domain, 7, split="test").tobytes())
"""


def test_names() -> None:
    assert len(CLASSES) == len(set(CLASSES)) == 24
    assert DOMAINS == ("real", "painting", "clipart", "sketch", "quickdraw", "infograph")
    assert tuple(STYLES) == DOMAINS


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("size", [48, 129, 256])
def test_shape_and_type(domain: str, size: int) -> None:
    picture = draw(CLASSES[0], domain, 0, size=size)
    assert picture.shape == (size, size, 3)
    assert picture.dtype == np.uint8


@pytest.mark.parametrize("domain", DOMAINS)
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


@pytest.mark.parametrize("domain", DOMAINS)
def test_every_argument_matters(domain: str) -> None:
    other_domain = DOMAINS[DOMAINS.index(domain) - 1]
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


@pytest.mark.parametrize("domain", DOMAINS)
def test_a_style_varies_within_itself(domain: str) -> None:
    pictures = np.stack([draw("house", domain, index) for index in range(12)]).astype(float)
    differences = [np.abs(a - b).mean() for a, b in itertools.combinations(pictures, 2)]
    assert min(differences) > 5


@pytest.mark.parametrize("domain", DOMAINS)
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
