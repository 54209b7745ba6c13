"""Hand-made statistics of a picture that tell forgeries: what a careful eye would look for.

They are an independent check that a maker's traces are there, also at the size that the embedded
backbone sees. Nothing in the benchmark uses them.
"""

from __future__ import annotations

import numpy as np

RINGS = 8


def statistics(picture: np.ndarray) -> np.ndarray:
    """The picture's residual spectrum in rings and directions, its colours and its repetitions."""
    levels = picture.astype(np.float64)
    grey = levels.mean(axis=2)
    return np.concatenate(
        [_spectrum(grey), _peaks(grey), _tails(grey), _colours(levels), _repetitions(grey)]
    )


def residual(grey: np.ndarray) -> np.ndarray:
    """What the four neighbours do not predict."""
    padded = np.pad(grey, 1, mode="reflect")
    around = padded[:-2, 1:-1] + padded[2:, 1:-1] + padded[1:-1, :-2] + padded[1:-1, 2:]
    return grey - around / 4


def power(grey: np.ndarray) -> np.ndarray:
    """The power spectrum of the residual, as shares of its sum."""
    spectrum = np.abs(np.fft.fft2(residual(grey))) ** 2
    spectrum[0, 0] = 0
    return spectrum / (spectrum.sum() + 1e-9)


def _spectrum(grey: np.ndarray) -> np.ndarray:
    """Logarithms of the power in rings of equal width, and of the residual as a whole."""
    frequency = np.fft.fftfreq(len(grey))
    radius = np.hypot(frequency[:, None], frequency[None, :])
    ring = np.minimum((radius / 0.5 * RINGS).astype(int), RINGS - 1)
    shares = np.bincount(ring.ravel(), power(grey).ravel(), RINGS)
    return np.log(np.append(shares, residual(grey).var()) + 1e-4)


def _peaks(grey: np.ndarray) -> np.ndarray:
    """How far single frequencies stand out: along the axes and on the diagonals."""
    spectrum = power(grey)
    half = spectrum[: len(grey) // 2, : len(grey) // 2][4:, :]
    axis = np.concatenate([spectrum[4 : len(grey) // 2, 0], spectrum[0, 4 : len(grey) // 2]])
    diagonal = np.diagonal(half[:, 4:])
    return np.log([each.max() / (np.median(each) + 1e-6) + 1 for each in (axis, diagonal, half)])


def _tails(grey: np.ndarray) -> np.ndarray:
    """Smooth places and strong edges: quantiles of the size of the residual."""
    size = np.abs(residual(grey))
    return np.log(np.quantile(size, (0.1, 0.3, 0.5, 0.7, 0.9, 0.98)) + 0.2)


def _colours(levels: np.ndarray) -> np.ndarray:
    """How few levels occur, and how well the channels' residuals go together."""
    used = [len(np.unique(levels[..., c])) for c in range(3)]
    red, green, blue = (residual(levels[..., c]).ravel() for c in range(3))
    pairs = ((red, green), (green, blue), (red, blue))
    together = [(a @ b) / np.sqrt((a @ a) * (b @ b) + 1e-9) for a, b in pairs]
    return np.array([np.log(np.mean(used)), *together])


def _repetitions(grey: np.ndarray) -> np.ndarray:
    """How alike the residual is to itself, moved by 9 to 16 pixels, in the best place."""
    rest = residual(grey)
    best = []
    for turned in (rest, rest.T):
        least = []
        for shift in range(9, 17):
            apart = np.abs(turned[:, shift:] - turned[:, :-shift])
            sums = np.pad(apart, ((1, 0), (1, 0))).cumsum(0).cumsum(1)
            box = sums[8:, 8:] - sums[:-8, 8:] - sums[8:, :-8] + sums[:-8, :-8]
            least.append(box.min() / 64)
        best.append(min(least) / (np.median(least) + 0.1))
    return np.array([*best, min(best)])
