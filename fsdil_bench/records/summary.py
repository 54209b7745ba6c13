"""What a record shows of itself in a notebook: the matrix, the scores, what it took."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from fsdil_bench.shown import Cell, Part, Table, Title

from .metrics import METRICS

if TYPE_CHECKING:
    from .record import Record

_NOTHING = "–"


def name_of(record: Record) -> str:
    """A run in a few words."""
    spec = record.spec
    sealed = ", sealed" if record.sealed else ""
    return f"{spec['method']} on {spec['scenario']}, {spec['backbone']}, seed {record.seed}{sealed}"


def line_of(record: Record) -> str:
    """A run and its scores in one line."""
    scores = ", ".join(f"{name} {score(record.metrics[name])}" for name in METRICS)
    return f"Record {name_of(record)}: {scores}"


def parts_of(record: Record) -> Iterator[Part]:
    """All that is shown of a record."""
    yield Title(name_of(record))
    yield "accuracy (%) on every domain seen"
    yield _matrix(record)
    yield _scores(record)
    if record.routing:
        yield f"routing accuracy at the end: {record.routing[-1]:.1f} %"
    yield _cost(record)
    yield f"run {record.run_id}" + (f", in {record.folder}" if record.folder else "")
    for warning in record.warnings or ():
        yield f"warning: {warning}"


def _matrix(record: Record) -> Table:
    names = record.domain_names
    unseen = record.unseen or {"names": [], "matrix": [[]] * len(names)}
    rows: list[Sequence[str | Cell]] = []
    for t, row in enumerate(record.matrix):
        seen = [_accuracy(value) for value in row[: t + 1]]
        later = ["·"] * (len(names) - len(seen))
        rows.append([names[t], *seen, *later, *map(_accuracy, unseen["matrix"][t])])
    others = [f"unseen: {name}" for name in unseen["names"]]
    return Table(["after learning", *names, *others], rows)


def _accuracy(value: float) -> Cell:
    return Cell(f"{value:.1f}", share=value / 100)


def _scores(record: Record) -> Table:
    known: dict[str, Mapping[str, float | None]] = {"result": record.metrics}
    if record.oracle_metrics:
        known["with oracle domain"] = record.oracle_metrics
    rows = [[name, *(score(of[metric]) for metric in METRICS)] for name, of in known.items()]
    return Table(["", *METRICS], rows)


def _cost(record: Record) -> str:
    cost = record.cost
    learn, predict = (cost["seconds"].get(name, 0.0) for name in ("learn", "predict"))
    trained, state = max(cost["trained_parameters"]), cost["state_bytes"][-1] / 1024
    return (
        f"learning {seconds(learn)} s, predicting {seconds(predict)} s, "
        f"{trained:,} trained parameters, state {state:,.0f} KB"
    )


def seconds(value: float) -> str:
    """With thousandths where there are few."""
    return f"{value:.3f}" if value < 10 else f"{value:,.1f}"


def score(value: float | None, spread: float | None = None) -> str:
    """A percentage with its spread, or a dash where it is undefined."""
    if value is None:
        return _NOTHING
    return f"{value:.2f}" if spread is None else f"{value:.2f} ± {spread:.2f}"
