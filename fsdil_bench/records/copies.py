"""Copies of one run that contradict each other.

The same run may lie in several folders. Where the copies made different predictions, nobody can say
which is right, so none of them counts. An ordinary run and the sealed run of the same id are not
such copies: the sealed one counts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from .record import Record


def without_contradictions(records: Iterable[Record]) -> Iterator[tuple[list[Record], str]]:
    """The copies of every run, with the reason why none of them counts or nothing."""
    copies: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        copies[record.run_id].append(record)
    for run_id, own in copies.items():
        deciding = [record for record in own if record.sealed] or own
        if agree(deciding):
            yield own, ""
            continue
        kind = "sealed" if deciding[0].sealed else "ordinary"
        folders = ", ".join(sorted(str(record.folder) for record in deciding))
        text = f"{kind} copies of run {run_id} made different predictions, so none counts"
        yield own, f"{text}: {folders}"


def agree(records: Sequence[Record]) -> bool:
    """Whether all made the same predictions; their files may be packed differently."""
    distinct = list({record.predictions_sha256: record for record in records}.values())
    if len(distinct) == 1 or any(record.folder is None for record in distinct):
        return len(distinct) == 1
    first, *rest = (record.predictions() for record in distinct)
    return all(
        first.keys() == other.keys() and all(np.array_equal(first[n], other[n]) for n in first)
        for other in rest
    )
