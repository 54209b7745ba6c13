"""Test images that one method gets right and another wrong, at the end of the stream.

All runs of a sheet have the same test images in the same order, so two runs can be compared image
by image wherever there is a bit for each: the page does so for any two rows.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence

import numpy as np

from fsdil_bench.records.record import Record

from .statistics.outcomes import correct, has_predictions


def right_at_the_end(record: Record) -> np.ndarray | None:
    """Which test images were right after the last domain, in the stream's order; None for records
    without their predictions."""
    return correct(record)[-1] if has_predictions([record]) else None


def packed(right: np.ndarray) -> str:
    """A bit per image, the first in the highest bit of the first byte, as base64."""
    return base64.b64encode(np.packbits(right).tobytes()).decode()


def runs_of(labels: np.ndarray) -> list[int]:
    """Labels as "label, how often in a row, next label ...": short where images are in order."""
    starts = np.flatnonzero(np.diff(labels, prepend=labels[0] - 1))
    lengths = np.diff(starts, append=len(labels))
    return np.stack([labels[starts], lengths], 1).ravel().tolist()


def most_disputed(boards: Sequence[Sequence[Sequence[Record]]], most: int) -> list[int]:
    """The images on which the rows of boards differ most, at most `most` of them, in order.

    `boards` has the records of each row of each board. How much rows differ on an image is the
    variance of the share of seeds that got it right. Images on which all agree are left out.
    """
    total: np.ndarray | float = 0.0
    for rows in boards:
        shares = [
            np.mean([right for r in records if (right := right_at_the_end(r)) is not None], axis=0)
            for records in rows
            if has_predictions(records) and records
        ]
        total = total + (np.var(shares, axis=0) if shares else 0.0)
    disputed = np.atleast_1d(np.round(total, 9))  # noise in the last bit never decides
    order = np.argsort(-disputed, kind="stable")[:most]
    return sorted(int(i) for i in order if disputed[i] > 0)
