"""How a run looks in a terminal: the accuracy matrix, scores, curves, cost, provenance.

Everything is built as rich renderables, which become plain text where there is no terminal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from fsdil_bench.analysis.evidence import evidence_of
from fsdil_bench.analysis.routing import routing_confusion
from fsdil_bench.records.metrics import METRICS, mean_and_std, unseen_accuracy
from fsdil_bench.records.record import Record

_BLOCKS = "▁▂▃▄▅▆▇█"


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]], title: str = "") -> Table:
    """A plain table; text from plugins is never interpreted as markup."""
    grid = Table(title=title or None, box=box.SIMPLE, title_justify="left", pad_edge=False)
    for column in columns:
        grid.add_column(column)
    for row in rows:
        grid.add_row(*(cell if isinstance(cell, Text) else Text(str(cell)) for cell in row))
    return grid


def matrix(
    values: Sequence[Sequence[float]],
    domains: Sequence[str],
    title: str,
    unseen: dict[str, Any] | None = None,
) -> Table:
    """A[t, i] with a row per learned domain, coloured from low (red) to high (green).

    `unseen` (see `Record`) adds the accuracies on test sets of no domain as columns.
    """
    unseen = unseen or {"names": [], "matrix": [[]] * len(values)}
    rows = []
    for t, row in enumerate(values):
        cells = [Text(f"{value:5.1f}", style=_shade(value)) for value in row[: t + 1]]
        cells += [Text("    ·", style="dim")] * (len(domains) - len(cells))
        cells += [Text(f"{value:5.1f}", style=_shade(value)) for value in unseen["matrix"][t]]
        rows.append([domains[t], *cells])
    others = [f"unseen: {name}" for name in unseen["names"]]
    return table(["after learning", *domains, *others], rows, title)


def metrics(record: Record) -> Table:
    """The four scores, with the oracle's where there is one."""
    rows = [["result", *(score(record.metrics[name]) for name in METRICS)]]
    if record.oracle_metrics:
        rows.append(["with oracle domain", *(score(record.oracle_metrics[n]) for n in METRICS)])
    return table(["", *METRICS], rows)


def summary(records: Sequence[Record]) -> RenderableType:
    """What `run` shows at the end: one run in full, or several seeds with their mean."""
    if len(records) == 1:
        record = records[0]
        parts: list[RenderableType] = [
            matrix(
                record.matrix,
                record.domain_names,
                "accuracy (%) on every domain seen",
                record.unseen,
            ),
            metrics(record),
        ]
        if record.routing:
            parts.append(Text(f"routing accuracy at the end: {record.routing[-1]:.1f} %"))
        if record.metrics["FA*"] is None:
            parts.append(Text("FA* is undefined for a single domain: nothing can be forgotten."))
        return Group(*parts)
    columns = {name: [r.metrics[name] for r in records] for name in METRICS}
    if any(r.unseen for r in records):
        columns["unseen"] = [unseen_accuracy(r.unseen) for r in records]
    rows = [
        [f"seed {record.seed}", *(score(values[i]) for values in columns.values())]
        for i, record in enumerate(records)
    ]
    spread = [mean_and_std(values) for values in columns.values()]
    cells = [score(m) + (f" ± {s:.2f}" if s is not None else "") for m, s in spread]
    return table(["", *columns], [*rows, ["mean ± std", *cells]])


def curves(record: Record) -> Table:
    """Each domain's accuracy over the stream: how it is learned and forgotten."""
    rows = []
    for i, name in enumerate(record.domain_names):
        values = [row[i] for row in record.matrix[i:]]
        line = " " * i + "".join(_BLOCKS[min(7, int(value / 12.5))] for value in values)
        change = f"{values[-1] - values[0]:+.1f}" if len(values) > 1 else "–"
        rows.append([name, line, f"{values[0]:.1f}", f"{values[-1]:.1f}", change])
    return table(["domain", "over the stream", "when learned", "at the end", "change"], rows)


def routing(record: Record) -> Table | None:
    """What a router takes each domain for at the end; None where that is not known."""
    confusion = routing_confusion(record)
    if confusion is None:
        return None
    rows = [
        [
            name,
            *(Text(f"{value:5.1f}", style="bold" if i == j else "") for j, value in enumerate(row)),
        ]
        for i, (name, row) in enumerate(zip(record.domain_names, confusion[-1], strict=True))
    ]
    return table(["true domain", *record.domain_names], rows, "guessed domain (%) at the end")


def diagnostics(record: Record) -> Table:
    """What the method reports about itself after each domain, one row per quantity."""
    per_domain = record.diagnostics["per_domain"]
    names = list(dict.fromkeys(name for each in per_domain for name in each))
    rows = [[name, *(_brief(each.get(name)) for each in per_domain)] for name in names]
    return table(["after learning", *record.domain_names], rows, "what the method reports")


def cost(record: Record) -> Table:
    """Time, memory, parameters and state."""
    spent = record.cost
    rows = []
    for phase, seconds in spent["seconds"].items():
        images = spent["images"].get(phase)
        speed = f"{images / seconds:.0f} images/s" if images and seconds else ""
        rows.append([phase, f"{seconds:.2f} s", speed])
    rows.append(["peak memory", f"{spent['peak_memory_bytes'] / 2**20:.0f} MB", ""])
    trained = ", ".join(f"{value:,}" for value in spent["trained_parameters"])
    rows.append(["trained parameters", trained, "per domain"])
    state = ", ".join(f"{value:,}" for value in spent["state_bytes"])
    rows.append(["state bytes", state, "after each domain"])
    if record.served:
        counts = [
            f"{each['distinct']:,} of {each['images']:,} × {each['times']:,}"
            for each in record.served
        ]
        rows.append(["images handed out", "; ".join(counts), "distinct × in all, per domain"])
    for found in record.audit or ():
        text = f"{found['bytes']:,} bytes, limit {found['limit']:,}"
        rows.append(["audit", found["what"], f"{text}, domain {found['domain'] + 1}"])
    return table(["cost", "", ""], rows)


def evidence(record: Record) -> Table:
    """How far the run can be believed: sealed or not, who ran it again, what is suspicious."""
    found = evidence_of(record)
    sealed = "no"
    if found["sealed"]:
        sealed = "yes: it learned and predicted in separate processes"
    elif found["for_development"]:
        sealed = "no, and the method comes from a plugin: for development only"
    rows = [["sealed", sealed], ["verified", _verdict(found["verified"])]]
    if "ordinary_run" in record.provenance:
        word = "different" if found["differs_from_ordinary"] else "the same"
        rows.append(["its ordinary run", f"made {word} predictions"])
    rows += [["suspicious", text] for text in found["suspicions"]]
    return table(["evidence", ""], rows)


def _verdict(found: dict[str, Any] | None) -> str:
    if found is None:
        return "no: nobody has run it again (fsdil-bench verify)"
    how = "sealed" if found["sealed"] else "not sealed"
    return (
        f"{found['outcome']}: run again by {found['who']} on {found['when']}"
        f" with fsdil-bench {found['version']}, {how}"
    )


def provenance(record: Record) -> Table:
    """What was run, with what, where."""
    rows: list[list[Any]] = [["run id", record.run_id], ["folder", record.folder]]
    rows += [[key, _brief(value)] for key, value in record.spec.items()]
    rows += [[f"code of {key}", value] for key, value in record.method["code"].items()]
    rows.append(["weights", record.method["weights"][:16]])
    rows.append(["samples", record.scenario["digest"][:16]])
    rows += [["warning", text] for text in record.warnings or ()]
    shown = {"suspicions", "ordinary_run"}  # as evidence
    rows += [[key, _brief(value)] for key, value in record.provenance.items() if key not in shown]
    return table(["provenance", ""], rows)


def score(value: float | None) -> str:
    """A percentage, or a dash where it is undefined."""
    return "–" if value is None else f"{value:.2f}"


def _brief(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}={each}" for key, each in value.items()) or "–"
    if isinstance(value, list):
        return ", ".join(str(each) for each in value) or "–"
    if isinstance(value, float):
        return f"{value:.4g}"
    return "–" if value in (None, "") else str(value)


def _shade(value: float) -> str:
    # From red over yellow to green. The colour repeats the number, so nobody needs to see it.
    position = min(max(value / 100, 0.0), 1.0)
    red = round(255 * min(1.0, 2 - 2 * position))
    green = round(200 * min(1.0, 2 * position))
    return f"rgb({red},{green},60)"
