"""What can be true of a picture, and what a caption can say.

A fact is a respect and a value, such as ("colour", "green"). A caption is true of a picture if all
that it says is among the picture's facts.
"""

from __future__ import annotations

from ..drawn.world import CLASSES
from ..shelf.individuals import COLOURS
from ..shelf.marks import PATTERNS
from .things import KINDS

Facts = frozenset[tuple[str, str]]

#: All values of every respect that the pre-training classifies pictures by.
VALUES: dict[str, list[str]] = {
    "object": [*CLASSES, *(kind for kind in KINDS if kind not in CLASSES)],
    "colour": list(COLOURS),
    "mark": list(PATTERNS),
    "mark_colour": list(COLOURS),
}


def facts_of(**values: str) -> Facts:
    """Facts by their respects."""
    return frozenset(values.items())
