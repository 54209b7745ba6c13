"""Short videos: where the thing is and how it is turned in every frame.

All is smooth in the frame's number, so neighbouring frames are near copies. Every video (an
individual in a session) has movements of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import pi, radians, sin

import numpy as np

from .places import WIDE
from .sessions import Session

TURN = 50.0  # degrees to either side: the front with its marks stays in sight
PERIODS = (18.0, 42.0)  # frames of one swing to and fro


@dataclass(frozen=True)
class Shot:
    """One frame: angles in radians, places and sizes as shares of the picture's side."""

    turn: float
    roll: float
    flip: bool
    squash: float
    centre: tuple[float, float]
    size: float
    left: float
    """Where the piece of the place begins that is seen behind the thing."""
    top: float
    exposure: float


@dataclass(frozen=True)
class Video:
    """The movements of one video: a swing for everything that moves."""

    session: Session
    phases: tuple[float, ...]
    periods: tuple[float, ...]
    left: float
    flip: bool
    exposure: float
    roll: float

    def shot(self, frame: int) -> Shot:
        """What the camera sees in that frame."""
        turn, roll, x, y, near, tilt, glow = (
            sin(2 * pi * (frame / period + phase))
            for period, phase in zip(self.periods, self.phases, strict=True)
        )
        session = self.session
        low, high = session.size
        return Shot(
            turn=radians(TURN) * turn,
            roll=radians(self.roll + 0.4 * session.roll * roll),
            flip=self.flip,
            squash=1 - 0.05 * (1 + tilt),
            centre=(0.5 + session.drift * x, 0.5 + 0.6 * session.drift * y),
            size=(low + high) / 2 + (high - low) / 2 * near,
            left=self.left + 0.1 * x,
            top=0.14 + 0.06 * y,
            exposure=self.exposure * (1 + 0.04 * glow),
        )


def video(session: Session, rng: np.random.Generator) -> Video:
    """A video with movements drawn from `rng`."""
    return Video(
        session,
        phases=tuple(rng.uniform(0, 1, 7).tolist()),
        periods=tuple(rng.uniform(*PERIODS, 7).tolist()),
        left=float(rng.uniform(0.15, WIDE - 1.15)),
        flip=bool(rng.random() < 0.5),
        exposure=float(rng.uniform(0.9, 1.1)),
        roll=float(rng.uniform(-0.6, 0.6) * session.roll),
    )
