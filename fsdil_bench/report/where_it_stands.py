"""One line that says where a run stands on the board that the package carries.

It is a module of its own because `list` needs the other tables of the terminal, and not this.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from fsdil_bench.analysis.published import PublishedRow, published_rows
from fsdil_bench.records.record import Record


def where_it_stands(records: Sequence[Record]) -> str:
    """The runs of a method beside rows of the published board; empty where no board fits.

    Shown are zero-shot and linear-probe, the best method that keeps no old images, and joint, the
    ceiling.
    """
    rows = published_rows(records)
    if not rows:
        return ""
    these = "this run" if len(records) == 1 else f"these {len(records)} runs"
    mean = fmean(record.metrics["AA*"] or 0.0 for record in records)
    parts = [_published(rows, "zero-shot"), _published(rows, "linear-probe")]
    parts.append(f"{records[0].spec['method']} {mean:.1f} ({these})")
    if best := next((row for row in rows if row.exemplar_free), None):
        parts.append(f"best {best.mean:.1f} ({best.label})")
    parts.append(_published(rows, "joint"))
    return f"on the published board (AA*): {', '.join(filter(None, parts))}"


def _published(rows: Sequence[PublishedRow], method: str) -> str:
    """The best row of a method, if it has one."""
    return next((f"{row.label} {row.mean:.1f}" for row in rows if row.method == method), "")
