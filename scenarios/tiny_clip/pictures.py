"""Pictures drawn ahead of time by several processes: drawing is as slow as training on them."""

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


@dataclass(frozen=True)
class Picture:
    """The address of a drawn picture within a split."""

    class_name: str
    style: str
    index: int


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


def _draw(picture: Picture, split: str, size: int) -> np.ndarray:
    drawn = draw(picture.class_name, picture.style, picture.index, split=split)
    # Drawn at the benchmark's own size and scaled as the model's transform does it.
    return np.asarray(Image.fromarray(drawn).resize((size, size), Image.Resampling.BICUBIC))
