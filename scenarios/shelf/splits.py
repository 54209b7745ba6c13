"""Which frames of a video are for training and which for testing, as in CORe50's variants.

A split depends on the video alone: it is the same for every method, seed and number of shots.
"""

from __future__ import annotations

from collections.abc import Callable

from .seeds import generator

FRAMES = 20  # of every video
TEST_FRAMES = 4  # a fifth, as in the paper
GAP = 2  # frames left out on each side of a held-out stretch

Split = Callable[[str], tuple[list[int], list[int]]]


def random_split(video: str) -> tuple[list[int], list[int]]:
    """A random fifth of the frames is for testing: near copies of them are learned."""
    order = generator("random split", video).permutation(FRAMES).tolist()
    return sorted(order[TEST_FRAMES:]), sorted(order[:TEST_FRAMES])


def block_split(video: str) -> tuple[list[int], list[int]]:
    """One stretch of a fifth of the frames is for testing; the frames beside it are not used."""
    start = int(generator("block split", video).integers(FRAMES - TEST_FRAMES + 1))
    stop = start + TEST_FRAMES
    train = [*range(start - GAP), *range(stop + GAP, FRAMES)]
    return train, list(range(start, stop))
