"""The stream of the shelf: eight sessions, fifty individuals, pictures made on demand.

Sizes: 16 training frames of a class are enough to learn from or to draw eight shots from, and four
test frames a fifth, as in the paper. More frames of the same videos would show little that is new:
intervals count videos. A method that trains the tower then takes a minute on a core. All videos are
equally long, so any session may be the base.
"""

from __future__ import annotations

import numpy as np

from fsdil_bench import Domain, Samples, ScenarioRequest, Stream

from .names import NAMES, SYNONYMS
from .seeds import WORLD_VERSION
from .sessions import DOMAINS, UNSEEN, VALIDATION
from .splits import FRAMES, TEST_FRAMES, Split, block_split, random_split
from .world import draw

BASE = next(iter(DOMAINS))


def build(request: ScenarioRequest) -> Stream:
    """The sessions that the variant asks for."""
    split = block_split if request.variant in ("blocks", "sessions") else random_split
    if request.variant == "validation":
        domains = tuple(_domain(name, "validation", split) for name in (BASE, *VALIDATION))
    else:
        domains = tuple(_domain(name, "stream", split) for name in DOMAINS)
    spread = range(0, FRAMES, FRAMES // TEST_FRAMES)
    unseen = UNSEEN if request.variant == "sessions" else ()
    return Stream(
        name="shelf",
        class_names=NAMES,
        synonyms=SYNONYMS,
        domains=domains,
        unseen=tuple((n, _samples(n, "stream", [list(spread)] * len(NAMES))) for n in unseen),
        keep_images=True,
        notes={"world_version": WORLD_VERSION, "split": split.__name__},
    )


def _domain(session: str, take: str, split: Split) -> Domain:
    parts = [split(_video(session, take, who)) for who in range(len(NAMES))]
    return Domain(
        session,
        _samples(session, take, [train for train, _ in parts]),
        _samples(session, take, [test for _, test in parts]),
    )


def _video(session: str, take: str, who: int) -> str:
    return f"{session}/{take}/{who:02}"


def _samples(session: str, take: str, frames: list[list[int]]) -> Samples:
    """These frames of every individual; the frames of one video are one group."""
    pairs = [(who, frame) for who, numbers in enumerate(frames) for frame in numbers]
    videos = tuple(_video(session, take, who) for who, _ in pairs)
    ids = tuple(f"{video}/{frame:02}" for video, (_, frame) in zip(videos, pairs, strict=True))
    keys = tuple(f"v{WORLD_VERSION}/{sample_id}" for sample_id in ids)
    return Samples(ids, np.array([who for who, _ in pairs]), load, keys, videos)


def load(sample_id: str) -> np.ndarray:
    """The picture of a sample id `<session>/<split>/<individual>/<frame>`."""
    session, take, who, frame = sample_id.split("/")
    return draw(int(who), session, int(frame), split=take)
