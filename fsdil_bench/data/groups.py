"""Which test images belong together: frames of one video, copies of one picture.

Images of a group are right or wrong together, so statistics count groups, not images.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .scenario import Samples


def groups_of_tests(tests: Sequence[Samples]) -> np.ndarray | None:
    """The number of the group of every test image, domain by domain; no group spans two domains.

    Images of equal content are in one group, whatever the scenario says. None where every image is
    a group of its own.
    """
    numbers: list[int] = []
    for samples in tests:
        numbers += [number + len(numbers) for number in _first_members(samples)]
    if numbers == list(range(len(numbers))):
        return None
    return np.unique(numbers, return_inverse=True)[1].astype(np.int32)


def _first_members(samples: Samples) -> list[int]:
    """For every image the first image of its group."""
    parents = list(range(len(samples)))

    def first(member: int) -> int:
        while parents[member] != member:
            parents[member] = member = parents[parents[member]]
        return member

    for names in (samples.groups, samples.keys):
        known: dict[str, int] = {}
        for member, name in enumerate(names):
            one, other = first(known.setdefault(name, member)), first(member)
            parents[max(one, other)] = min(one, other)
    return [first(member) for member in range(len(samples))]
