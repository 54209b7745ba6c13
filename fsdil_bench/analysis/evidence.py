"""How far the runs of a row can be believed.

An ordinary run of a third-party method is for development: its code ran in the process that knows
the labels. Evidence is a sealed run, and better evidence is that somebody else ran it again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from fsdil_bench.records.record import Record
from fsdil_bench.records.verdict_file import SavedVerdict, read_verdict
from fsdil_bench.runs.make_record import differs_from_ordinary


def for_development(records: Sequence[Record]) -> bool:
    """Whether a third-party method has a run that was not sealed."""
    return any(record.third_party and not record.sealed for record in records)


def competes(records: Sequence[Record]) -> bool:
    """Whether a row may be the best of its board."""
    return all(record.exemplar_free for record in records) and not for_development(records)


def verdicts_of(records: Iterable[Record]) -> list[SavedVerdict]:
    """The verdicts on runs that were repeated; a bad one first, then the newest."""
    found = [verdict for record in records if (verdict := read_verdict(record))]
    newest = sorted(found, key=lambda verdict: (verdict.when, verdict.who), reverse=True)
    return sorted(newest, key=lambda verdict: verdict.outcome != "differs")


def differing_copies(records: Iterable[Record]) -> dict[str, str]:
    """By run id, the runs that are there more than once with different predictions, in words."""
    copies: dict[str, dict[str, Record]] = defaultdict(dict)
    for record in sorted(records, key=lambda r: (r.sealed, r.predictions_sha256)):
        copies[record.run_id].setdefault(record.predictions_sha256, record)
    return {
        run_id: _difference(list(own.values())) for run_id, own in copies.items() if len(own) > 1
    }


def _difference(copies: Sequence[Record]) -> str:
    said = [
        f"{'sealed' if record.sealed else 'ordinary'} {record.metrics['AA*']:.2f}"
        for record in copies
    ]
    counts = "the sealed one counts" if copies[-1].sealed else "the last one counts"
    return f"AA* of seed {copies[0].seed} differs: {', '.join(said)}; {counts}"


def ordinary_differs(records: Iterable[Record]) -> bool:
    """Whether a sealed run says that it predicted differently from its ordinary run."""
    return any(differs_from_ordinary(record) for record in records)
