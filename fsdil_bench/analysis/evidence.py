"""How far the runs of a row can be believed.

An ordinary run of a third-party method is for development: its code ran in the process that knows
the labels. Evidence is a sealed run, and better evidence is that somebody else ran it again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from fsdil_bench.records.copies import agree
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
    copies: dict[str, dict[tuple[bool, str], Record]] = defaultdict(dict)
    for record in sorted(records, key=lambda r: (r.sealed, r.predictions_sha256)):
        copies[record.run_id].setdefault((record.sealed, record.predictions_sha256), record)
    found = {run_id: list(own.values()) for run_id, own in copies.items()}
    return {run_id: _difference(own) for run_id, own in found.items() if not agree(own)}


def _difference(copies: Sequence[Record]) -> str:
    said = [
        f"{'sealed' if record.sealed else 'ordinary'} {record.metrics['AA*']:.2f}"
        for record in copies
    ]
    sealed = [record for record in copies if record.sealed]
    counts = "the sealed one counts" if sealed and agree(sealed) else "none counts"
    return f"AA* of seed {copies[0].seed} differs: {', '.join(said)}; {counts}"


def ordinary_differs(records: Iterable[Record]) -> bool:
    """Whether a sealed run says that it predicted differently from its ordinary run."""
    return any(differs_from_ordinary(record) for record in records)


def evidence_of(record: Record) -> dict[str, Any]:
    """How far a single run can be believed, for programs."""
    verdict = read_verdict(record)
    return {
        "sealed": record.sealed,
        "third_party": record.third_party,
        "for_development": for_development([record]),
        "verified": asdict(verdict) if verdict else None,
        "differs_from_ordinary": ordinary_differs([record]),
        "suspicions": list(record.provenance.get("suspicions", ())),
    }
