"""Boards as GitHub-ready pages: one per sheet, one with all details per board, and an index."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from tabulate import tabulate

from fsdil_bench.analysis.boards import Board, Sheet
from fsdil_bench.analysis.paper import CITATION
from fsdil_bench.analysis.rows import Row
from fsdil_bench.analysis.unfinished import Unfinished
from fsdil_bench.records.metrics import METRICS

from .columns import AUDIT_MARKS, MARKDOWN, marked_label, marked_score, table_of
from .formatting import ABSENT, METRIC_PAIRS, score
from .formatting import escape_markdown as escape
from .paper_lines import PaperLine

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
_VERIFIED_NOTE = (
    "verified: so many runs were made again, with which outcome (by whom, when, with which version"
    " of fsdil-bench); that is what the person says."
)
_DEVELOPMENT = "Not sealed: for development only"
_DEVELOPMENT_NOTE = (
    "Methods from plugins whose runs were not sealed: their code could reach the test labels. They"
    " are not ranked with the rest."
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
_VISIBLE_NOTE = (
    "The smallest difference in points between two typical rows that is seen with a chance of 80 %:"
)
_UNDECIDED_NOTE = (
    "? undecided: not distinguishable from the best, but further from it than the smallest"
    " difference that the board could typically have seen, or with a spread that hides any."
)
_ONE_SEED_NOTE = (
    "° one seed: the interval and ≈ are about the choice of test images only. Whether another draw"
    " of the images or another training would turn the result is not known."
)


def index_page(
    sheets: Sequence[Sheet],
    stray: Sequence[Unfinished],
    paper_lines: Sequence[PaperLine],
    title: str = "",
) -> str:
    """The index: all sheets with their boards. `stray` are unfinished runs without a board."""
    lines = [
        f"# {escape(title) or 'Leaderboards'}",
        "",
        "[index.html](index.html) is all of this as one page to sort, filter and compare in"
        " (download it, and open it in a browser); [leaderboards.json](leaderboards.json) is for"
        " programs. One table per data set, domain order, test images, backbone and precision: what"
        " does not compare is never mixed.",
    ]
    for sheet in sheets:
        lines += ["", f"## {_title(sheet)}", "", _about(sheet), ""]
        lines += [f"[All shots side by side]({sheet.name}.md) ([LaTeX]({sheet.name}.tex))", ""]
        lines.append(_board_list(sheet))
    lines += _stray(stray)
    if paper_lines:
        lines += ["", *_paper_summary(paper_lines)]
    return "\n".join(lines) + "\n"


def _board_list(sheet: Sheet) -> str:
    columns: dict[str, list[Any]] = {
        "scenario": _board_links(sheet),
        "methods": [len(board.rows) for board in sheet.boards],
        "runs": [len(board.records) for board in sheet.boards],
    }
    for state in ("incomplete", "failed"):
        counts = [sum(run.state == state for run in board.unfinished) for board in sheet.boards]
        columns |= {state: counts} if any(counts) else {}
    columns["best AA*, and not distinguishable from it"] = [
        _leaders(board) for board in sheet.boards
    ]
    columns["visible difference"] = [_visible_difference(board) for board in sheet.boards]
    columns["data"] = [f"[csv]({board.name}.csv)" for board in sheet.boards]
    return _table(list(columns), list(zip(*columns.values(), strict=True)))


def sheet_page(sheet: Sheet, paper_lines: Sequence[PaperLine]) -> str:
    """A table like a paper's for each pair of metrics: shots side by side."""
    lines = [f"# {_title(sheet)}", "", _about(sheet), _PERCENT_NOTE]
    for pair in METRIC_PAIRS:
        heads = [f"{metric} {shots}-shot" for shots in sheet.shots for metric in pair]
        table = [
            [
                marked_label(label, list(rows.values())),
                *(marked_score(rows.get(k), metric) for k in sheet.shots for metric in pair),
            ]
            for label, rows in sheet.rows_by_label().items()
        ]
        lines += ["", f"## {' and '.join(pair)}", "", _table(["method", *heads], table)]
    lines += _notes(sheet.rows)
    lines += _visible(sheet.boards)
    lines += ["", f"With seeds, intervals and cost: {', '.join(_board_links(sheet))}."]
    lines += _unfinished_notes(sheet.rows)
    lines += ["", "## Against the paper", ""]
    if paper_lines:
        lines.append(_measured_table(paper_lines))
    else:
        lines.append(
            "Not comparable: the paper reports no number for these methods on"
            f" {escape(sheet.key.dataset)}. What it reports is in [paper.md](paper.md)."
        )
    return "\n".join(lines) + "\n"


def board_page(sheet: Sheet, board: Board) -> str:
    """Everything about one board: scores, intervals, seeds, cost."""
    evidence = [row for row in board.rows if not row.for_development]
    development = [row for row in board.rows if row.for_development]
    headings, cells = table_of(board, MARKDOWN, evidence)
    title = f"# {escape(board.key.scenario)}, {escape(board.key.backbone)}"
    lines = [title, "", _about(sheet), _PERCENT_NOTE, "", _table(headings, cells)]
    if development:
        lines += ["", f"## {_DEVELOPMENT}", ""]
        lines += [_DEVELOPMENT_NOTE, "", _table(*table_of(board, MARKDOWN, development))]
    lines += _notes(board.rows)
    lines += _visible([board])
    for kind, what in _AUDIT_NOTES.items():
        if any(row.audit == kind for row in board.rows):
            lines += ["", _AUDIT_NOTE.format(AUDIT_MARKS[kind].strip(), what)]
    if "head" in headings:
        lines += ["", _HEAD_NOTE]
    if "sealed" in headings:
        lines += ["", _SEALED_NOTE]
    if "verified" in headings:
        lines += ["", _VERIFIED_NOTE]
    return "\n".join([*lines, *_unfinished_notes(board.rows)]) + "\n"


def _measured_table(paper_lines: Sequence[PaperLine]) -> str:
    """Reported beside measured numbers, with the verdict on each."""
    table = [
        [
            f"{each.dataset} {each.shots}-shot",
            escape(each.label),
            each.metric,
            str(each.reported),
            score(each.measured, each.std),
            _signed(each.verdict.difference),
            escape(str(each.verdict)),
        ]
        for each in paper_lines
    ]
    heads = ["scenario", "method", "metric", "reported", "measured", "difference", "verdict"]
    return _table(heads, table)


def _signed(difference: float | None) -> str:
    return ABSENT if difference is None else f"{difference:+.2f}"


def paper_page(paper_lines: Sequence[PaperLine]) -> str:
    """All numbers of the paper: those measured here with a verdict, then those not run."""
    lines = [
        "# Against the paper",
        "",
        f"{CITATION}. Reproduced means that the 95 % confidence interval of the difference between"
        " the measured and the reported mean holds zero.",
    ]
    measured = [each for each in paper_lines if each.measured is not None]
    if measured:
        lines += ["", "## Measured here", "", _measured_table(measured)]
    missing = [each for each in paper_lines if each.measured is None]
    for dataset in sorted({each.dataset for each in missing}):
        own = [each for each in missing if each.dataset == dataset]
        lines += ["", f"## Not run: {dataset}", "", _reported_table(own)]
    return "\n".join(lines) + "\n"


def _reported_table(paper_lines: Sequence[PaperLine]) -> str:
    """What the paper reports, as it is printed: methods down, shots and metrics across."""
    columns = sorted({(each.shots, METRICS.index(each.metric)) for each in paper_lines})
    numbers = {(c.label, c.shots, METRICS.index(c.metric)): str(c.reported) for c in paper_lines}
    labels = dict.fromkeys(each.label for each in paper_lines)
    table = [
        [escape(label), *(numbers.get((label, *column), ABSENT) for column in columns)]
        for label in labels
    ]
    return _table(["method", *(f"{METRICS[i]} {shots}-shot" for shots, i in columns)], table)


def _table(heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    text: str = tabulate(rows, heads, tablefmt="pipe", disable_numparse=True)
    return text


def _title(sheet: Sheet) -> str:
    return f"{escape(sheet.key.title)}, {escape(sheet.key.backbone)}"


def _board_links(sheet: Sheet) -> list[str]:
    return [f"[{board.key.scenario}]({board.name}.md)" for board in sheet.boards]


def _about(sheet: Sheet) -> str:
    spec = sheet.first.spec
    text = f"Domains in order: {', '.join(map(escape, sheet.first.domain_names))}."
    text += f" {sum(sheet.first.test_counts):,} test images."
    text += f" Precision: {escape(spec['precision'])}."
    if spec["base_limit"] is not None:
        text += f" At most {spec['base_limit']} base images per class."
    for key, value in sorted(spec["scenario_options"].items()):
        text += f" {escape(f'{key}={value}')}."
    return text


def _notes(rows: Sequence[Row]) -> list[str]:
    lines = ["", _STANDING_NOTE]
    if any(len(row.records) == 1 for row in rows):
        lines += ["", _ONE_SEED_NOTE]
    if any(score.verdict == "undecided" for row in rows for score in row.scores.values()):
        lines += ["", _UNDECIDED_NOTE]
    if not all(row.exemplar_free for row in rows):
        lines += ["", _CEILING_NOTE]
    if any(row.keeps_features for row in rows):
        lines += ["", _FEATURES_NOTE]
    return lines + _doubt_notes(rows)


def _doubt_notes(rows: Sequence[Row]) -> list[str]:
    """What the words after a method's name mean, with what was found."""
    lines: list[str] = []
    if any(row.for_development for row in rows):
        lines += ["", "not sealed: a method from a plugin; only sealed runs of it are evidence."]
    if any(row.differs_from_ordinary for row in rows):
        lines += ["", "differs from the ordinary run: sealed, it predicts differently, so it"
                  " depends on more than its state and the single image."]  # fmt: skip
    found = {f"- {escape(row.label)}: {escape(text)}" for row in rows for text in row.differences}
    found |= {
        f"- {escape(row.label)}, suspicious: {escape(text)}"
        for row in rows
        for text in row.suspicions
    }
    return lines + (["", *sorted(found)] if found else [])


def _visible(boards: Sequence[Board]) -> list[str]:
    """The difference that each board could have seen, by metric."""
    known = {
        f"{metric} {board.shots}-shot": found.smallest_difference
        for board in boards
        for metric, found in board.standing.items()
        if found.smallest_difference is not None
    }
    if not known:
        return []
    texts = [f"{name} {value:.2f}" for name, value in known.items()]
    return ["", f"{_VISIBLE_NOTE} {', '.join(texts)}."]


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


def _leaders(board: Board) -> str:
    """The best row and those that are not distinguishable from it."""
    leading = [row for row in board.rows if row.scores["AA*"].leads]
    return ", ".join(escape(row.label) for row in leading) or ABSENT


def _visible_difference(board: Board) -> str:
    found = board.standing["AA*"].smallest_difference
    return ABSENT if found is None else f"{found:.2f}"


def _paper_summary(paper_lines: Sequence[PaperLine]) -> list[str]:
    cases = Counter(str(each.verdict.case) for each in paper_lines)
    counts = [f"{count} {case}" for case, count in sorted(cases.items())]
    return [
        "## Against the paper",
        "",
        f"Of {len(paper_lines)} reported numbers: {', '.join(counts)} ([all of them](paper.md)).",
    ]
