"""The shelf: a pure function from (individual, session, split, frame) to a picture."""

from __future__ import annotations

import numpy as np

from .film import video
from .individuals import INDIVIDUALS
from .photo import photo
from .places import place
from .seeds import generator
from .sessions import SESSIONS


def draw(
    individual: int, session: str, frame: int, *, split: str = "stream", size: int = 64
) -> np.ndarray:
    """That frame of the video of an individual in a session: (size, size, 3) bytes.

    Every split has videos of its own: `stream` is what is learned and tested, others are for
    validation and pre-training.
    """
    scene = SESSIONS[session]
    shot = video(scene, generator(split, session, individual)).shot(frame)
    grain = generator(split, session, individual, frame)
    return photo(INDIVIDUALS[individual], place(session, size), scene, shot, grain, size)
