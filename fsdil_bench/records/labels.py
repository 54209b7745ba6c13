"""Do records agree on the labels of the test images that they share?

The labels lie beside the predictions, and a plugin could have changed them during its run. The hash
of a test set covers its labels, but only the images themselves can prove that. So all records of a
test set must hold the same labels.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from .record import Record

#: By test set, its hash with the class names: a hash of the labels.
Labels = dict[tuple[str, ...], str]

_FOREIGN = "its test labels are not those of the other records of the same test images"
_UNDECIDED = (
    "its test labels differ from those of another record of the same test images, and no more"
    " records say which are right; `fsdil-bench verify` does"
)


def label_hashes(record: Record, arrays: Mapping[str, np.ndarray]) -> Labels:
    """A hash of the labels of every test set of a record."""
    classes = tuple(record.scenario["classes"])
    found: Labels = {}
    for name, sets in (
        ("labels", record.scenario["domains"]),
        ("unseen_labels", record.scenario.get("unseen", [])),
    ):
        ends = np.cumsum([each["test"] for each in sets])[:-1]
        for each, own in zip(sets, np.split(arrays[name], ends) if sets else (), strict=True):
            digest = hashlib.sha256(own.astype("<i4").tobytes()).hexdigest()
            found[each["test_sha256"], *classes] = digest
    return found


def without_foreign_labels(
    loaded: Sequence[tuple[Record, Labels]],
) -> Iterator[tuple[Record, str]]:
    """Every record, with the reason why it must be left out or nothing.

    Each method has one vote, however many seeds it has. Built-in methods and sealed runs, which no
    plugin's code can have changed, decide alone where there are any. Where votes are equal (a board
    of two), nobody can say who is right, and all of them are left out.
    """
    votes: dict[tuple[str, ...], dict[str, tuple[set[str], set[str]]]] = defaultdict(dict)
    for record, labels in loaded:
        trusted = record.sealed or not record.third_party
        for test_set, digest in labels.items():
            own = votes[test_set].setdefault(digest, (set(), set()))
            own[1].add(record.spec["method"])
            if trusted:
                own[0].add(record.spec["method"])
    right = {test_set: _winner(found) for test_set, found in votes.items()}
    for record, labels in loaded:
        winners = [right[test_set] for test_set in labels]
        why = ""
        if None in winners:
            why = _UNDECIDED
        elif winners != list(labels.values()):
            why = _FOREIGN
        yield record, why


def _winner(votes: Mapping[str, tuple[set[str], set[str]]]) -> str | None:
    """The labels with the most votes; None where several have as many."""
    counts = {
        digest: (len(trusted), len(everybody)) for digest, (trusted, everybody) in votes.items()
    }
    best = max(counts.values())
    found = [digest for digest, count in counts.items() if count == best]
    return found[0] if len(found) == 1 else None
