"""The `core50` scenario: 50 household objects filmed in the eight training sessions of CORe50.

    fsdil-bench run --method cvlc --scenario core50-1shot --data ~/core50

The images are `core50_128x128/s<session>/o<object>/C_<session>_<object>_<frame>.png`; `--data`
names that folder or the one above it. A domain is a session, a class is an object. The domains are
called s1 to s8, as in the paper: the official training sessions 1, 2, 4, 5, 6, 8, 9 and 11, in this
order. The paper takes them in the order of run 0 of the official table, which is 11, 4, 2, 9, 1, 6,
5, 8: `--order s8,s3,s2,s7,s1,s5,s4,s6`.

Inside every session and class a fifth of the frames, drawn once for all runs, is the test set. That
is the paper's rule. The frames are stretches of video, so near copies of a test frame are among the
training frames. The test frames of one video (an object in a session) are one group: intervals
count videos, not frames. Two variants avoid the near copies:

- `@blocks`: the fifth is one stretch of video, and the frames beside it are not used at all.
- `@sessions`: additionally all frames of the official test sessions 3, 7 and 10, which no domain
  shows, are tested on after every domain.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from fsdil_bench import (
    Domain,
    Samples,
    ScenarioInfo,
    ScenarioRequest,
    Stream,
    file_samples,
    hookimpl,
    numpy_generator,
)

from .descriptors import as_asked, published_scenario
from .image_folders import class_images, find_images, fixed_split

SESSIONS = (1, 2, 4, 5, 6, 8, 9, 11)
TEST_SESSIONS = (3, 7, 10)
OBJECTS = tuple(f"o{number}" for number in range(1, 51))
FOLDER = "core50_128x128"

SPLIT_VERSION = 1  # a different number makes different splits: every result changes
TEST_FRACTION = 0.2
GAP = 10  # frames left out on each side of a held-out stretch: half a second of video

Split = Callable[[list[str], int, str], tuple[list[str], list[str]]]


@hookimpl
def fsdil_scenarios() -> list[ScenarioInfo]:
    """Offer `core50`."""
    return [
        published_scenario(
            "core50",
            "50 household objects in eight recording sessions (CORe50)",
            tuple(f"s{place}" for place in range(1, len(SESSIONS) + 1)),
            len(OBJECTS),
            "core50",
            variants={
                "blocks": "test on one stretch of each video, away from the training frames",
                "sessions": "also test on three sessions that no domain shows",
            },
        )
    ]


def build(request: ScenarioRequest) -> Stream:
    """The eight training sessions as domains."""
    from ..names import class_texts

    data = request.data
    assert data is not None
    unseen = TEST_SESSIONS if request.variant == "sessions" else ()
    root = find_images(data, [f"s{n}" for n in (*SESSIONS, *unseen)], "core50", [FOLDER])
    split = block_split if request.variant == "blocks" else random_split
    class_names, synonyms = class_texts("core50", OBJECTS, request.names, request.synonyms)
    stream = Stream(
        name="core50",
        class_names=class_names,
        synonyms=synonyms,
        domains=tuple(
            _domain(f"s{place}", session, root, data, split)
            for place, session in enumerate(SESSIONS, 1)
        ),
        unseen=tuple((f"session {n}", _samples(root, n, _frames(root, n, data))) for n in unseen),
        transform="core50",
        notes={
            "sessions": {f"s{place}": session for place, session in enumerate(SESSIONS, 1)},
            "split": f"{split.__name__} {SPLIT_VERSION}",
        },
    )
    return as_asked(stream, request)


def random_split(frames: list[str], session: int, name: str) -> tuple[list[str], list[str]]:
    """A random fifth of the frames is for testing."""
    return fixed_split(frames, TEST_FRACTION, SPLIT_VERSION, "core50 split", session, name)


def block_split(frames: list[str], session: int, name: str) -> tuple[list[str], list[str]]:
    """A stretch of a fifth of the frames is for testing, at a place drawn once for all runs.

    Up to `GAP` frames (fewer in a short video) on each side of it are left out.
    """
    count = max(1, round(TEST_FRACTION * len(frames)))
    generator = numpy_generator(SPLIT_VERSION, "core50 block", session, name)
    start = int(generator.integers(len(frames) - count + 1))
    gap = min(GAP, len(frames) // 10)
    train = frames[: max(0, start - gap)] + frames[start + count + gap :]
    return train, frames[start : start + count]


def _domain(name: str, session: int, root: Path, data: Path, split: Split) -> Domain:
    frames = _frames(root, session, data)
    parts = [split(f, session, o) for f, o in zip(frames, OBJECTS, strict=True)]
    return Domain(
        name,
        _samples(root, session, [train for train, _ in parts]),
        _samples(root, session, [test for _, test in parts]),
    )


def _frames(root: Path, session: int, data: Path) -> list[list[str]]:
    """The frames of each object in the order of the video: their names hold padded numbers."""
    return class_images(root / f"s{session}", OBJECTS, "core50", data)


def _samples(root: Path, session: int, frames: list[list[str]]) -> Samples:
    paths = [f"s{session}/{o}/{f}" for o, names in zip(OBJECTS, frames, strict=True) for f in names]
    labels = [label for label, names in enumerate(frames) for _ in names]
    videos = tuple(path.rpartition("/")[0] for path in paths)
    return replace(file_samples(root, paths, labels), groups=videos)
