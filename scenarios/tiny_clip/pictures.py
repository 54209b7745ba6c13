"""The pictures of pre-training, and what is true of each of them.

Two sources: objects of the drawn world in its styles, and marked things as on the shelf
(`things.py`). Pictures are drawn ahead of time by several processes: drawing is as slow as training
on them.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image

from ..drawn.world import draw
from .facts import Facts, facts_of
from .things import draw_thing, random_thing


@dataclass(frozen=True)
class Picture:
    """The address of a picture within a split, and what is true of it."""

    source: str
    index: int
    facts: Facts

    def fact(self, of: str) -> str:
        """What is true of it in one respect; empty where nothing is known."""
        return dict(self.facts).get(of, "")


def drawn_object(name: str, style: str, index: int) -> Picture:
    """A picture of the drawn world."""
    return Picture("drawn", index, facts_of(object=name, style=style))


def thing(split: str, index: int) -> Picture:
    """A photograph of a marked thing."""
    who = random_thing(split, index)
    marked = {} if who.mark == "plain" else {"mark_colour": who.mark_colour}
    facts = {"object": who.kind, "style": "real", "colour": who.colour, "mark": who.mark}
    return Picture("things", index, facts_of(**facts, **marked))


def draw_pictures(
    plan: list[Picture], split: str, size: int, *, workers: int = 2, path: Path | None = None
) -> np.ndarray:
    """The pictures of `plan` as uint8 (N, size, size, 3): in memory, or on disk at `path`.

    A file that is there already is taken as it is.
    """
    shape = (len(plan), size, size, 3)
    if path is None:
        pictures = np.empty(shape, np.uint8)
        for index, picture in enumerate(_drawn(plan, split, size, workers)):
            pictures[index] = picture
        return pictures
    if not path.exists():
        unfinished = path.with_suffix(".unfinished")
        stored = np.lib.format.open_memmap(unfinished, "w+", np.uint8, shape)
        for index, picture in enumerate(_drawn(plan, split, size, workers)):
            stored[index] = picture
            if index % 5000 == 0:
                print(f"drawn {index}/{len(plan)} for {split}", flush=True)
        stored.flush()
        unfinished.rename(path)
    pictures = np.load(path, mmap_mode="r")
    if pictures.shape != shape:
        raise SystemExit(f"{path} holds other pictures, {pictures.shape}: use another folder")
    return pictures


def _drawn(plan: list[Picture], split: str, size: int, workers: int) -> Iterator[np.ndarray]:
    draw_one = partial(_draw, split=split, size=size)
    if workers < 2:
        yield from map(draw_one, plan)
        return
    # Spawned, not forked: a fork of a process that has used torch's threads can hang.
    with closing(multiprocessing.get_context("spawn").Pool(workers)) as pool:
        yield from pool.imap(draw_one, plan, chunksize=96)


def scaled(picture: np.ndarray, size: int) -> np.ndarray:
    """A picture of the benchmark's own size, scaled as the model's transform does it."""
    return np.asarray(Image.fromarray(picture).resize((size, size), Image.Resampling.BICUBIC))


def _draw(picture: Picture, split: str, size: int) -> np.ndarray:
    return scaled(_SOURCES[picture.source](picture, split), size)


def _object(picture: Picture, split: str) -> np.ndarray:
    return draw(picture.fact("object"), picture.fact("style"), picture.index, split=split)


def _thing(picture: Picture, split: str) -> np.ndarray:
    return draw_thing(random_thing(split, picture.index), split, picture.index, 64)


_SOURCES = {"drawn": _object, "things": _thing}
