"""Low-level rendering shared by the styles: placing, filling, stroking, wobbling, noise.

The styles draw on a picture several times larger than asked for and shrink it at the end, which
is how PIL's hard-edged shapes become smooth. Lengths called *share* are fractions of the
picture's side, so that a picture looks the same at every size.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw

from .parts import Colour, Drawing, Part

Ink = Colour | int
"""What PIL draws with: a colour on an RGB picture, a level on a one-channel picture."""


@dataclass(frozen=True)
class Frame:
    """Where the object lies on a square picture of `side` pixels."""

    side: int
    centre: np.ndarray
    radius: float

    def place(self, points: np.ndarray) -> np.ndarray:
        """Object coordinates to pixels."""
        return points * self.radius + self.centre


def random_frame(rng: np.random.Generator, side: int, low: float, high: float) -> Frame:
    """The object spans a share in [low, high] of the picture, anywhere it fits."""
    share = rng.uniform(low, high)
    slack = (1 - share) * side / 2
    return Frame(side, side / 2 + rng.uniform(-slack, slack, 2), share * side / 2)


def stroke(pen: ImageDraw.ImageDraw, points: np.ndarray, width: float, ink: Ink) -> None:
    """A line along `points` (pixels) with round ends and corners."""
    pen.line(points.ravel().tolist(), fill=ink, width=max(1, round(width)))
    if width < 5:  # too thin for corners to show
        return
    # PIL's own round joints are slow. A disc does the same, where a turn leaves a notch to fill.
    half = (width - 1) / 2
    steps = np.diff(points, axis=0)
    steps /= np.hypot(steps[:, 0], steps[:, 1])[:, None] + 1e-9
    notches = half * np.abs(np.diff(steps, axis=0)).max(axis=1)
    joints = np.concatenate([points[:1], points[1:-1][notches > 0.7], points[-1:]])
    for x, y in joints.tolist():
        pen.ellipse((x - half, y - half, x + half, y + half), fill=ink)


def fill_part(
    pen: ImageDraw.ImageDraw, frame: Frame, part: Part, ink: Ink, grow: float = 0.0
) -> None:
    """The part as a solid area, `grow` pixels larger than it is on every side."""
    points = frame.place(part.points)
    if not part.closed:
        stroke(pen, points, part.width * frame.radius + 2 * grow, ink)
        return
    pen.polygon(points.ravel().tolist(), fill=ink)
    if grow > 0:
        stroke(pen, closed_line(points), 2 * grow, ink)


def closed_line(points: np.ndarray) -> np.ndarray:
    """The outline of an area as a line that ends where it began."""
    return np.concatenate([points, points[:1]])


def outline(part: Part) -> np.ndarray:
    """The line a pen would follow to draw the part."""
    return closed_line(part.points) if part.closed else part.points


def label_map(drawing: Drawing, frame: Frame) -> np.ndarray:
    """Which part is seen at every pixel: 0 the background, i + 1 the i-th part."""
    image = Image.new("L", (frame.side, frame.side))
    pen = ImageDraw.Draw(image)
    for label, part in enumerate(drawing.parts, start=1):
        fill_part(pen, frame, part, label)
    return np.asarray(image)


def resample(points: np.ndarray, step: float) -> np.ndarray:
    """The same line with its points `step` apart, or closer where the line is short."""
    lengths = np.hypot(*np.diff(points, axis=0).T)
    along = np.concatenate([[0.0], np.cumsum(lengths)])
    wanted = np.linspace(0.0, along[-1], max(12, int(along[-1] / step) + 1))
    return np.stack([np.interp(wanted, along, points[:, axis]) for axis in (0, 1)], axis=1)


def wobble(
    points: np.ndarray, rng: np.random.Generator, amount: float, wavelength: float
) -> np.ndarray:
    """The line as an unsteady hand draws it: swaying by `amount`, in waves of `wavelength`.

    `points` should lie about evenly, as `resample` leaves them.
    """
    step = np.hypot(*(points[1] - points[0])) + 1e-9
    phase = np.arange(len(points))[:, None] * (2 * np.pi * step / wavelength)
    slow, fast = rng.uniform(0, 2 * np.pi, (2, 2))
    pace = rng.uniform(0.6, 1.4, 2)
    sway = np.sin(phase * pace + slow) + 0.5 * np.sin(phase * pace * 2.3 + fast)
    return points + amount * sway


def round_corners(points: np.ndarray, reach: int) -> np.ndarray:
    """The line with every point averaged over `reach` neighbours on both sides, ends kept."""
    if reach < 1 or len(points) <= 2 * reach:
        return points
    padded = np.pad(points, ((reach, reach), (0, 0)), mode="edge")
    sums = np.cumsum(np.pad(padded, ((1, 0), (0, 0))), axis=0)
    window = 2 * reach + 1
    return (sums[window:] - sums[:-window]) / window


def cloud(rng: np.random.Generator, side: int, rows: int, columns: int | None = None) -> np.ndarray:
    """Smooth noise of about [0, 1] with `rows` x `columns` bumps over a square of `side` pixels.

    Unequal numbers give streaks: wood, brushed canvas, ripples.
    """
    bumps = rng.random((rows, columns or rows), dtype=np.float32)
    return np.asarray(Image.fromarray(bumps).resize((side, side), Image.Resampling.BICUBIC))


def shrink(image: Image.Image, size: int) -> np.ndarray:
    """The large picture, a whole number of times `size`, as a (size, size, 3) array of bytes."""
    return np.array(image.reduce(image.width // size).convert("RGB"))


def to_image(pixels: np.ndarray) -> Image.Image:
    """An array of floats in [0, 255] as a picture."""
    return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))
