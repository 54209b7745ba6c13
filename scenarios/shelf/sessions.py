"""The recording sessions: a place, its light, the camera, and whether a hand holds the thing.

Eight are domains. Two are never learned and tested by the variant `@sessions`, two are for
`@validation` alone.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Session:
    """How it looks. Lengths are shares of the picture's side, angles are in degrees."""

    tint: tuple[float, float, float] = (1.0, 1.0, 1.0)
    """Colour and strength of the light on everything."""
    on_thing: float = 1.0
    """How much of it falls on the thing; less where light comes from behind."""
    from_left: float = 0.5
    """Where light comes from: 1 left, -1 right, 0 above."""
    depth: float = 0.3
    """Difference between the lit and the unlit side."""
    gloss: float = 0.3
    shadow: tuple[float, float, float] = (0.03, 0.03, 0.45)
    """Where the shadow falls, and how dark it is."""
    spot: float = 0.0
    """How much darker the corners are than the middle."""
    haze: float = 0.0
    """Share of white light that washes the picture out."""
    blur: float = 0.0
    noise: float = 2.0
    size: tuple[float, float] = (0.6, 0.75)
    """Share of the picture that the thing spans, far and near."""
    roll: float = 6.0
    drift: float = 0.05
    """How far the thing wanders about."""
    hand: bool = False


DOMAINS: dict[str, Session] = {
    "shelf": Session(tint=(1.02, 0.98, 0.92)),
    "desk": Session(tint=(0.97, 1.0, 1.06), from_left=-0.6, depth=0.2, size=(0.52, 0.66)),
    "grass": Session(
        tint=(1.1, 1.08, 0.96), depth=0.45, shadow=(0.09, 0.05, 0.6), size=(0.5, 0.72), roll=28.0
    ),
    "night": Session(
        tint=(0.74, 0.56, 0.38), from_left=0.9, depth=0.6, gloss=0.5, spot=0.55, noise=8.0
    ),
    "hand": Session(
        tint=(1.0, 0.96, 0.93), shadow=(0.0, 0.0, 0.0), size=(0.58, 0.74), roll=24.0, hand=True
    ),
    "window": Session(
        tint=(1.06, 1.08, 1.12), on_thing=0.62, depth=0.15, gloss=0.1, haze=0.16, from_left=0.0,
        shadow=(0.0, 0.06, 0.3),
    ),
    "kitchen": Session(
        tint=(0.86, 1.0, 0.84), from_left=0.0, gloss=0.7, shadow=(0.0, 0.02, 0.5), blur=0.012,
        size=(0.66, 0.84),
    ),
    "street": Session(
        tint=(0.6, 0.7, 0.95), depth=0.2, gloss=0.1, noise=6.0, size=(0.44, 0.58), roll=14.0,
        hand=True, shadow=(0.0, 0.0, 0.0), drift=0.09,
    ),
}  # fmt: skip

UNSEEN: dict[str, Session] = {
    "beach": Session(
        tint=(1.14, 1.1, 1.0), depth=0.5, shadow=(-0.08, 0.06, 0.55), from_left=-0.8, roll=25.0
    ),
    "carpet": Session(tint=(0.95, 0.8, 0.62), size=(0.5, 0.7), roll=30.0, spot=0.3, noise=4.0),
}

VALIDATION: dict[str, Session] = {
    "garage": Session(tint=(1.0, 0.74, 0.46), from_left=-0.9, depth=0.45, spot=0.35, noise=5.0),
    "curtain": Session(tint=(1.05, 0.92, 1.0), haze=0.1, size=(0.5, 0.7), blur=0.008, roll=12.0),
}

SESSIONS: dict[str, Session] = {**DOMAINS, **UNSEEN, **VALIDATION}
