"""The audit of a method's memory: is its state large enough to hold what it may not keep?

A bound by size alone. After every domain the whole state is compared with all training images seen
so far, and what it grew by with those of the domain just learned: first as the pixels the method
saw, then as their frozen features. A state that is larger *could* hold them; whether it does is not
looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

_FLOAT = 4  # bytes of a number in a frozen feature


def audit_state(
    state_bytes: Sequence[int], images: Sequence[int], size: int, embed_dim: int
) -> list[dict[str, Any]]:
    """What the states after each domain could hold; `images` are the training images of each.

    At most one finding on the whole state and one on its growth, each at the domain where it
    exceeds its limit the most, and about images rather than features where it is true of both.
    """
    growth = [0, *(after - before for before, after in pairwise(state_bytes))]
    measured = [
        ("the state", "all training images seen so far", state_bytes, list(accumulate(images))),
        # The growth in the base domain is its whole state: the line above is about that.
        ("what the state grew by", "the training images of the domain", growth, images),
    ]
    found = []
    for part, whole, held, counts in measured:
        for kind, each in (("images", 3 * size * size), ("features", _FLOAT * embed_dim)):
            over = [
                (value / (count * each), t)
                for t, (value, count) in enumerate(zip(held, counts, strict=True))
                if value >= count * each > 0
            ]
            if over:
                _, t = max(over)
                of = "" if kind == "images" else "the frozen features of "
                found.append(
                    {
                        "kind": kind,
                        "what": f"{part} could hold {of}{whole}",
                        "domain": t,
                        "bytes": held[t],
                        "limit": counts[t] * each,
                    }
                )
                break
    return found


def worst(findings: Sequence[dict[str, Any]]) -> str:
    """What the state could hold at most: "images", "features" or nothing."""
    kinds = {finding["kind"] for finding in findings}
    return next((kind for kind in ("images", "features") if kind in kinds), "")
