"""Boards as GitHub-ready pages: one per sheet, one with all details per board, and an index."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tabulate import tabulate

from fsdil_bench.analysis.boards import Board, Sheet
from fsdil_bench.analysis.paper import CITATION
from fsdil_bench.analysis.rows import Row
from fsdil_bench.analysis.unfinished import Unfinished
from fsdil_bench.records.metrics import METRICS

from .columns import PAIRS, by_label, ceiling
from .paper_columns import Comparison
from .text import ABSENT, interval, score, seeds, share

_AUDIT_MARKS = {"images": " †", "features": " ‡", "": ""}
_AUDIT_NOTE = (
    "{} by size alone, the state could hold the {} seen so far, or what it grew by those of a new"
    " domain; whether it does was not looked at."
)
_AUDIT_NOTES = {"images": "training images", "features": "frozen features of the training images"}
_HEAD_NOTE = (
    "Methods with a choice of classifier (their option `head`) are best compared under the same"
    " one: a linear head has to be learned, class names come with CLIP."
)
_SEALED_NOTE = (
    "sealed: every domain was learned in one process and predicted in another, which shared the"
    " method's state alone."
)
_CEILING_NOTE = "\\* keeps old images: a ceiling, not a competitor."
_FEATURES_NOTE = (
    "§ keeps no images, but its state can hold the frozen feature of a single training image."
)
_PERCENT_NOTE = (
    "Percent, mean ± population standard deviation over seeds; higher is better throughout"
    " (FA* is forgetting alleviation)."
)
_STANDING_NOTE = "**Bold**: the best mean. ≈: not distinguishable from the best (95 %)."
_ONE_SEED_NOTE = (
    "° one seed: the interval and ≈ are about the choice of test images only. Whether another draw"
    " of the images or another training would turn the result is not known."
)


def escape(text: str) -> str:
    """`text` as Markdown prints it: no markup, no link, no end of a cell or line."""
    plain = re.sub(r"[\x00-\x1f\x7f\u0085\u2028\u2029]+", " ", text)
    plain = plain.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    plain = re.sub(r"([\\`*_\[\]|~#!])", r"\\\1", plain)
    # GitHub makes links of bare addresses.
    return re.sub(r"(?i)(www)\.", r"\1&#46;", plain.replace("://", ":&#47;&#47;"))


def index_page(
    sheets: Sequence[tuple[Sheet, Mapping[int, Sequence[Row]]]],
    stray: Sequence[Unfinished],
    comparisons: Sequence[Comparison],
) -> str:
    """The entry: all sheets with their boards. `stray` are unfinished runs that fit none."""
    lines = [
        "# Leaderboards",
        "",
        "[index.html](index.html) is all of this as one page to sort, filter and compare in"
        " (download it, and open it in a browser); [leaderboards.json](leaderboards.json) is for"
        " programs. One table per data set, domain order, backbone and precision: what does not"
        " compare is never mixed.",
    ]
    for sheet, rows in sheets:
        lines += ["", f"## {escape(sheet.title)}, {escape(sheet.backbone)}", "", _about(sheet), ""]
        lines += [f"[All shots side by side]({sheet.name}.md) ([LaTeX]({sheet.name}.tex))", ""]
        lines.append(_board_list(sheet, rows))
    lines += _stray(stray)
    if comparisons:
        lines += ["", *_paper_summary(comparisons)]
    return "\n".join(lines) + "\n"


def _board_list(sheet: Sheet, rows: Mapping[int, Sequence[Row]]) -> str:
    columns: dict[str, list[Any]] = {
        "scenario": [f"[{board.scenario}]({board.name}.md)" for board in sheet.boards],
        "methods": [len(rows[board.shots]) for board in sheet.boards],
        "runs": [len(board.records) for board in sheet.boards],
    }
    for state in ("incomplete", "failed"):
        counts = [sum(run.state == state for run in board.unfinished) for board in sheet.boards]
        columns |= {state: counts} if any(counts) else {}
    columns["best AA*, and not distinguishable from it"] = [
        _leaders(rows[board.shots]) for board in sheet.boards
    ]
    columns["data"] = [f"[csv]({board.name}.csv)" for board in sheet.boards]
    return _table(list(columns), list(zip(*columns.values(), strict=True)))


def sheet_page(
    sheet: Sheet, rows: Mapping[int, Sequence[Row]], comparisons: Sequence[Comparison]
) -> str:
    """A table like a paper's for each pair of metrics: shots side by side."""
    everyone = [row for members in rows.values() for row in members]
    lines = [f"# {escape(sheet.title)}, {escape(sheet.backbone)}", "", _about(sheet), _PERCENT_NOTE]
    found = by_label(rows)
    for pair in PAIRS:
        heads = [f"{metric} {shots}-shot" for shots in rows for metric in pair]
        table = [
            [
                _label(label, list(own.values())),
                *(_scored(own.get(shots), metric) for shots in rows for metric in pair),
            ]
            for label, own in found.items()
        ]
        lines += ["", f"## {' and '.join(pair)}", "", _table(["method", *heads], table)]
    lines += _notes(everyone)
    links = [f"[{board.scenario}]({board.name}.md)" for board in sheet.boards]
    lines += ["", f"With seeds, intervals and cost: {', '.join(links)}."]
    lines += _unfinished_notes(everyone)
    lines += ["", "## Against the paper", ""]
    if comparisons:
        lines.append(comparison_table(comparisons))
    else:
        lines.append(
            "Not comparable: the paper reports no number for these methods on"
            f" {escape(sheet.dataset)}. What it reports is in [paper.md](paper.md)."
        )
    return "\n".join(lines) + "\n"


def board_page(sheet: Sheet, board: Board, rows: Sequence[Row]) -> str:
    """Everything about one board: scores, intervals, seeds, cost."""
    columns: dict[str, list[Any]] = {"method": [_label(r.label, [r]) for r in rows]}
    for metric in METRICS:
        columns[metric] = [_scored(row, metric) for row in rows]
    columns["AA* 95 %"] = [interval(row.standings.get("AA*")) for row in rows]
    if any(row.routing is not None for row in rows):
        columns["AA* oracle"] = [score(row.oracle) for row in rows]
        columns["routing"] = [score(row.routing) for row in rows]
    if any(record.unseen for record in board.records):
        columns["unseen"] = [score(*row.unseen) for row in rows]
    columns["seeds"] = [seeds(row) for row in rows]
    if any(row.sealed for row in rows):
        columns["sealed"] = [share(row.sealed, len(row.records)) for row in rows]
    if any(row.head for row in rows):
        columns["head"] = [escape(row.head) or ABSENT for row in rows]
    columns |= _costs(rows)
    table = _table(list(columns), list(zip(*columns.values(), strict=True)))
    head = [f"# {escape(board.scenario)}, {escape(board.backbone)}", "", _about(sheet)]
    lines = [*head, _PERCENT_NOTE, "", table, *_notes(rows)]
    for kind, what in _AUDIT_NOTES.items():
        if any(row.audit == kind for row in rows):
            lines += ["", _AUDIT_NOTE.format(_AUDIT_MARKS[kind].strip(), what)]
    if "head" in columns:
        lines += ["", _HEAD_NOTE]
    if "sealed" in columns:
        lines += ["", _SEALED_NOTE]
    return "\n".join([*lines, *_unfinished_notes(rows)]) + "\n"


def comparison_table(comparisons: Sequence[Comparison]) -> str:
    """Reported beside measured numbers, with the verdict on each."""
    table = [
        [
            f"{each.dataset} {each.shots}-shot",
            escape(each.label),
            each.metric,
            each.reported,
            score(each.measured, each.std),
            ABSENT if each.difference is None else f"{each.difference:+.2f}",
            escape(each.verdict),
        ]
        for each in comparisons
    ]
    heads = ["scenario", "method", "metric", "reported", "measured", "difference", "verdict"]
    return _table(heads, table)


def paper_page(comparisons: Sequence[Comparison]) -> str:
    """All numbers of the paper: those measured here with a verdict, then those not run."""
    lines = [
        "# Against the paper",
        "",
        f"{CITATION}. Reproduced means that the 95 % confidence interval of the difference between"
        " the measured and the reported mean holds zero.",
    ]
    measured = [each for each in comparisons if each.measured is not None]
    if measured:
        lines += ["", "## Measured here", "", comparison_table(measured)]
    missing = [each for each in comparisons if each.measured is None]
    for dataset in sorted({each.dataset for each in missing}):
        own = [each for each in missing if each.dataset == dataset]
        lines += ["", f"## Not run: {dataset}", "", _reported_table(own)]
    return "\n".join(lines) + "\n"


def _reported_table(comparisons: Sequence[Comparison]) -> str:
    """What the paper says, as it is printed: methods down, shots and metrics across."""
    columns = sorted({(each.shots, METRICS.index(each.metric)) for each in comparisons})
    numbers = {(c.label, c.shots, METRICS.index(c.metric)): c.reported for c in comparisons}
    labels = dict.fromkeys(each.label for each in comparisons)
    table = [
        [escape(label), *(numbers.get((label, *column), ABSENT) for column in columns)]
        for label in labels
    ]
    return _table(["method", *(f"{METRICS[i]} {shots}-shot" for shots, i in columns)], table)


def _table(heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    text: str = tabulate(rows, heads, tablefmt="pipe", disable_numparse=True)
    return text


def _about(sheet: Sheet) -> str:
    spec = sheet.first.spec
    text = f"Domains in order: {', '.join(map(escape, sheet.domains))}."
    text += f" Precision: {escape(spec['precision'])}."
    if spec["base_limit"] is not None:
        text += f" At most {spec['base_limit']} base images per class."
    for key, value in sorted(spec["scenario_options"].items()):
        text += f" {escape(f'{key}={value}')}."
    return text


def _label(label: str, rows: Sequence[Row]) -> str:
    features = any(row.keeps_features for row in rows)
    return escape(label) + (" \\*" if ceiling(rows) else "") + (" §" if features else "")


def _scored(row: Row | None, metric: str) -> str:
    """A score with what is known of its standing, or what became of the runs."""
    if row is None or not row.records:
        return (row.state() if row else "") or ABSENT
    text = score(*row.scores[metric])
    standing = row.standings.get(metric)
    if standing is None or text == ABSENT:
        return text
    text = f"**{text}**" if standing.place == "best" else text
    text += " ≈" if standing.place == "tied" else ""
    return text + (" °" if len(row.records) == 1 else "")


def _costs(rows: Sequence[Row]) -> dict[str, list[str]]:
    costs = [row.cost if row.records else None for row in rows]
    marks = [_AUDIT_MARKS[row.audit] for row in rows]
    return {
        "learn s": [f"{c.learn_seconds:.1f}" if c else ABSENT for c in costs],
        "learn ms/img": [_milliseconds(c.learn_per_image) if c else ABSENT for c in costs],
        "predict ms/img": [_milliseconds(c.predict_per_image) if c else ABSENT for c in costs],
        "trained": [f"{c.trained_parameters:,}" if c else ABSENT for c in costs],
        "state KB": [
            f"{c.state_bytes / 1024:.0f}{mark}" if c else ABSENT
            for c, mark in zip(costs, marks, strict=True)
        ],
        "peak MB": [f"{c.peak_memory_bytes / 2**20:.0f}" if c else ABSENT for c in costs],
    }


def _milliseconds(seconds: float) -> str:
    """Three digits, and never an exponent for what is long."""
    return f"{1e3 * seconds:,.0f}" if seconds >= 1 else f"{1e3 * seconds:.3g}"


def _notes(rows: Sequence[Row]) -> list[str]:
    lines = ["", _STANDING_NOTE]
    if any(len(row.records) == 1 for row in rows):
        lines += ["", _ONE_SEED_NOTE]
    if any(ceiling([row]) for row in rows):
        lines += ["", _CEILING_NOTE]
    if any(row.keeps_features for row in rows):
        lines += ["", _FEATURES_NOTE]
    return lines


def _unfinished_notes(rows: Sequence[Row]) -> list[str]:
    runs = {run.run_id: run for row in rows for run in row.unfinished}
    if not runs:
        return []
    return ["", "## Without a result", "", _unfinished_table(list(runs.values()))]


def _stray(runs: Sequence[Unfinished]) -> list[str]:
    if not runs:
        return []
    return ["", "## Scenarios without any result", "", _unfinished_table(runs)]


def _unfinished_table(runs: Sequence[Unfinished]) -> str:
    table = [
        [escape(run.spec["scenario"]), escape(run.spec["method"]), run.spec["seed"], run.state,
         escape(run.failure[:200])]
        for run in sorted(runs, key=lambda run: (run.spec["scenario"], run.spec["method"],
                                                 run.spec["seed"], run.run_id))
    ]  # fmt: skip
    return _table(["scenario", "method", "seed", "state", "error"], table)


def _leaders(rows: Sequence[Row]) -> str:
    """The best rows and those that cannot be told from them."""
    leading = [
        row for row in rows if (found := row.standings.get("AA*")) is not None and found.leads
    ]
    return ", ".join(escape(row.label) for row in leading) or ABSENT


def _paper_summary(comparisons: Sequence[Comparison]) -> list[str]:
    cases = sorted({each.case for each in comparisons})
    counts = [f"{sum(c.case == case for c in comparisons)} {case}" for case in cases]
    return [
        "## Against the paper",
        "",
        f"Of {len(comparisons)} reported numbers: {', '.join(counts)} ([all of them](paper.md)).",
    ]
