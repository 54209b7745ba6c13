"""What a board shows of a row. This is the place to add a column.

`MARKDOWN` has the columns of a board's page, `CSV` those of its CSV file, and `json_row` the values
in `leaderboards.json`. A column that not every board needs says in `shown` which boards have it.
(`page_data` has what the interactive page shows: it works with single runs.)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from fsdil_bench.analysis.boards import Board
from fsdil_bench.analysis.rows import Cost, Row
from fsdil_bench.analysis.scores import Score
from fsdil_bench.analysis.unfinished import Unfinished
from fsdil_bench.records.metrics import METRICS

from .commands import reproduce
from .formatting import ABSENT, escape_markdown, milliseconds, number, score, seed_list, share

#: Marks for a state that could hold images or features by its size.
AUDIT_MARKS = {"images": " †", "features": " ‡", "": ""}


def _always(board: Board) -> bool:
    return True


def _if_any(has: Callable[[Row], Any]) -> Callable[[Board], bool]:
    """Boards with a row that has something."""
    return lambda board: any(has(row) for row in board.rows)


def _has_unseen(row: Row) -> bool:
    return any(record.unseen for record in row.records)


@dataclass(frozen=True)
class Column:
    """A column of a table: its heading, the cell of a row, and which boards have it."""

    heading: str
    cell: Callable[[Row], Any]
    shown: Callable[[Board], bool] = _always


def table_of(
    board: Board, columns: Sequence[Column], rows: Sequence[Row] | None = None
) -> tuple[list[str], list[list[Any]]]:
    """Headings and cells of the columns that a board has, of all its rows or of some."""
    shown = [column for column in columns if column.shown(board)]
    headings = [column.heading for column in shown]
    chosen = board.rows if rows is None else rows
    return headings, [[column.cell(row) for column in shown] for row in chosen]


# --- Markdown ---


def marked_label(label: str, rows: Sequence[Row]) -> str:
    """A method's name, marked if it keeps old images or features, and with what speaks against its
    numbers."""
    keeps_images = not all(row.exemplar_free for row in rows)
    keeps_features = any(row.keeps_features for row in rows)
    marks = (" \\*" if keeps_images else "") + (" §" if keeps_features else "")
    doubts = {word for row in rows for word in row.doubts}
    return escape_markdown(label) + marks + (f" ({', '.join(sorted(doubts))})" if doubts else "")


def _verified(row: Row) -> str:
    """How many runs were repeated, how that came out, by whom and when."""
    if row.verified is None:
        return "no" if row.records else ABSENT
    found = row.verified
    count = f"{len(row.verdicts)} of {len(row.records)}"
    who = f"{escape_markdown(found.who)}, {escape_markdown(found.when[:10])}"
    return f"{count}, {found.outcome} ({who}, {escape_markdown(found.version)})"


def marked_score(row: Row | None, metric: str) -> str:
    """A score, marked if it is best, tied or undecided; without a result, the state of the runs."""
    if row is None or not row.records:
        return (row.unfinished_states() if row else "") or ABSENT
    found = row.scores[metric]
    text = score(found.mean, found.std)
    if text == ABSENT:
        return text
    text = f"**{text}**" if found.place == "best" else text
    text += " ≈" if found.place == "tied" else ""
    text += " ?" if found.verdict == "undecided" else ""
    return text + (" °" if len(row.records) == 1 else "")


def _interval(found: Score) -> str:
    if found.low is None or found.high is None:
        return ABSENT
    return f"{found.low:.2f} to {found.high:.2f}"


def _seeds(row: Row) -> str:
    """How many seeds a row has, and which are missing that other rows of the board have."""
    if not row.missing_seeds:
        return str(len(row.records))
    whole = len(row.records) + len(row.missing_seeds)
    text = f"{len(row.records)} of {whole} (without {seed_list(row.missing_seeds)}"
    states = row.unfinished_states()
    return f"{text}: {states})" if states else f"{text})"


def _cost_text(row: Row, text: Callable[[Cost], str]) -> str:
    return text(row.cost) if row.records else ABSENT


def _cost_column(heading: str, text: Callable[[Cost], str]) -> Column:
    return Column(heading, partial(_cost_text, text=text))


def _state_size(row: Row) -> str:
    size = _cost_text(row, lambda cost: f"{cost.state_bytes / 1024:.0f}")
    return size + AUDIT_MARKS[row.audit] if row.records else size


def _guesses_domains(board: Board) -> bool:
    return any(row.routing is not None for row in board.rows)


MARKDOWN = (
    Column("method", lambda row: marked_label(row.label, [row])),
    *(Column(metric, partial(marked_score, metric=metric)) for metric in METRICS),
    Column("AA* 95 %", lambda row: _interval(row.scores["AA*"])),
    Column("AA* oracle", lambda row: score(row.oracle), _guesses_domains),
    Column("routing", lambda row: score(row.routing), _guesses_domains),
    Column("unseen", lambda row: score(*row.unseen), _if_any(_has_unseen)),
    Column("seeds", _seeds),
    Column("sealed", lambda row: share(row.sealed, len(row.records)), _if_any(lambda r: r.sealed)),
    Column("verified", _verified, _if_any(lambda row: row.verified)),
    Column("head", lambda row: escape_markdown(row.head) or ABSENT, _if_any(lambda r: r.head)),
    _cost_column("learn s", lambda cost: f"{cost.learn_seconds:.1f}"),
    _cost_column("learn ms/img", lambda cost: milliseconds(cost.learn_per_image)),
    _cost_column("predict ms/img", lambda cost: milliseconds(cost.predict_per_image)),
    _cost_column("trained", lambda cost: f"{cost.trained_parameters:,}"),
    Column("state KB", _state_size),
    _cost_column("peak MB", lambda cost: f"{cost.peak_memory_bytes / 2**20:.0f}"),
)


# --- CSV: numbers in full, empty where there is no value ---


def _spreadsheet_label(row: Row) -> str:
    # A spreadsheet would take a label that begins like a formula for one.
    return f"'{row.label}" if row.label.startswith(("=", "+", "-", "@")) else row.label


def _score_part(row: Row, metric: str, part: str) -> Any:
    return getattr(row.scores[metric], part)


def _score_columns(parts: dict[str, str]) -> Iterator[Column]:
    for metric in METRICS:
        for part, suffix in parts.items():
            yield Column(metric + suffix, partial(_score_part, metric=metric, part=part))


def _verdict_part(row: Row, name: str) -> Any:
    return getattr(row.verified, name, None)


def _cost_value(row: Row, name: str) -> Any:
    return getattr(row.cost, name) if row.records else None


_COSTS = {
    "learn s": "learn_seconds",
    "learn s/img": "learn_per_image",
    "predict s/img": "predict_per_image",
    "trained parameters": "trained_parameters",
    "state bytes": "state_bytes",
    "peak memory bytes": "peak_memory_bytes",
}

CSV = (
    Column("method", _spreadsheet_label),
    *_score_columns({"mean": "", "std": " std"}),
    Column("AA* oracle", lambda row: row.oracle),
    Column("routing", lambda row: row.routing),
    Column("seeds", lambda row: len(row.records)),
    *(Column(heading, partial(_cost_value, name=name)) for heading, name in _COSTS.items()),
    Column("exemplar free", lambda row: row.exemplar_free if row.records else None),
    Column("run ids", lambda row: " ".join(sorted(record.run_id for record in row.records))),
    Column("unseen", lambda row: row.unseen[0], _if_any(_has_unseen)),
    Column("unseen std", lambda row: row.unseen[1], _if_any(_has_unseen)),
    Column("head", lambda row: row.head, _if_any(lambda row: row.head)),
    Column("sealed", lambda row: row.sealed, _if_any(lambda row: row.sealed)),
    Column("third party", lambda row: row.third_party, _if_any(lambda row: row.third_party)),
    Column("verified", lambda row: len(row.verdicts), _if_any(lambda row: row.verified)),
    *(
        Column(f"verified {name}", partial(_verdict_part, name=name), _if_any(lambda r: r.verified))
        for name in ("outcome", "who", "when", "version")
    ),
    Column("doubts", lambda row: "; ".join(row.doubts), _if_any(lambda row: row.doubts)),
    Column("audit", lambda row: row.audit, _if_any(lambda row: row.audit)),
    Column(
        "keeps features",
        lambda row: row.keeps_features if row.records else None,
        _if_any(lambda row: row.keeps_features),
    ),
    *_score_columns({"low": " low", "high": " high", "place": " place", "verdict": " verdict"}),
    Column("seed list", lambda row: " ".join(map(str, row.seeds))),
    Column("missing seeds", lambda row: " ".join(map(str, row.missing_seeds))),
    Column("incomplete", lambda row: sum(run.state == "incomplete" for run in row.unfinished)),
    Column("failed", lambda row: sum(run.state == "failed" for run in row.unfinished)),
)


# --- JSON ---


def json_row(row: Row) -> dict[str, Any]:
    """The values of a row in `leaderboards.json`."""
    values: dict[str, Any] = {
        "label": row.label,
        "method": row.method,
        "seeds": row.seeds,
        "missing_seeds": list(row.missing_seeds),
        "run_ids": sorted(record.run_id for record in row.records),
        "unfinished": [json_unfinished(run) for run in row.unfinished],
        "scores": {metric: _json_score(row, metric) for metric in METRICS},
    }
    if row.records:
        first = row.records[0]
        values |= {
            "summary": first.method.get("summary", ""),
            "paper": first.method.get("paper", ""),
            "config": first.spec["config"],
            "code": first.method["code"],
            "exemplar_free": row.exemplar_free,
            **({"keeps_features": True} if row.keeps_features else {}),
            "sealed": row.sealed,
            "third_party": row.third_party,
            "for_development": row.for_development,
            "verified": json_verdicts(row),
            "differs_from_ordinary": row.differs_from_ordinary,
            "differences": list(row.differences),
            "suspicions": row.suspicions,
            "audit": row.audit,
            "oracle": json_value(row.oracle),
            "routing": json_value(row.routing),
            "unseen": [json_value(value) for value in row.unseen],
            "cost": {k: json_value(v) for k, v in dataclasses.asdict(row.cost).items()},
            "command": reproduce(row.records),
        }
    return values


def json_verdicts(row: Row) -> dict[str, Any] | None:
    """Who ran a row again and how it came out, and how many of its runs; None if nobody did."""
    if row.verified is None:
        return None
    found = dataclasses.asdict(row.verified)
    shown = {name: found[name] for name in ("outcome", "who", "when", "version", "sealed")}
    return shown | {"runs": len(row.verdicts)}


def _json_score(row: Row, metric: str) -> dict[str, Any]:
    found = row.scores[metric]
    values = dataclasses.asdict(found) if row.records else {}
    return values | {"mean": json_value(found.mean), "std": json_value(found.std)}


def json_unfinished(run: Unfinished) -> dict[str, Any]:
    """The values of a run without a record."""
    known = {name: run.spec[name] for name in ("scenario", "method", "seed", "backbone")}
    return known | {"run_id": run.run_id, "state": run.state, "failure": run.failure}


def json_value(value: Any) -> Any:
    """Numbers with the digits that do not depend on the machine."""
    return number(value) if isinstance(value, float) else value
