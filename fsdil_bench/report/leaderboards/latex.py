"""A sheet as LaTeX tables (package booktabs): the best mean bold, the second underlined."""

from __future__ import annotations

from collections.abc import Sequence

from fsdil_bench.analysis.boards import Board, Sheet
from fsdil_bench.analysis.rows import Row

from .formatting import ABSENT, METRIC_PAIRS, one_line

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}
_NAMES = {"AA*": "AA$^*$", "FA*": "FA$^*$"}


def escape(text: str) -> str:
    """`text` as LaTeX prints it; control characters become spaces."""
    return "".join(_SPECIAL.get(sign, sign) for sign in one_line(text))


def latex(sheet: Sheet) -> str:
    """All tables of a sheet."""
    title, backbone = escape(sheet.key.title), escape(sheet.key.backbone)
    head = [
        f"% {title}, {backbone}, {sum(sheet.first.test_counts):,} test images: needs"
        " \\usepackage{booktabs}",
        "% Percent, mean and population standard deviation over seeds; higher is better.",
        "% Bold: best mean; underlined: second; dagger: keeps old images, not ranked.",
    ]
    if any(row.keeps_features for row in sheet.rows):
        head.append("% Section sign: the state can hold the feature of a single training image.")
    if any(row.for_development for row in sheet.rows):
        head.append("% Double dagger: third-party and not sealed, not ranked.")
    return "\n".join([*head, *("\n" + _tabular(sheet, pair) for pair in METRIC_PAIRS)]) + "\n"


def _tabular(sheet: Sheet, pair: Sequence[str]) -> str:
    shots = sheet.shots
    heads = " & ".join(rf"\multicolumn{{{len(pair)}}}{{c}}{{{k}-shot}}" for k in shots)
    rules = " ".join(
        rf"\cmidrule(lr){{{first}-{first + len(pair) - 1}}}"
        for first in range(2, 2 + len(pair) * len(shots), len(pair))
    )
    names = " & ".join(_NAMES.get(metric, metric) for _ in shots for metric in pair)
    best = {(b.shots, metric): _two_best(b, metric) for b in sheet.boards for metric in pair}
    lines = [
        rf"\begin{{tabular}}{{l{'c' * len(pair) * len(shots)}}}",
        r"\toprule",
        rf" & {heads} \\",
        rules,
        rf"Method & {names} \\",
        r"\midrule",
    ]
    for label, rows in sheet.rows_by_label().items():
        cells = [_cell(rows.get(k), metric, best[k, metric]) for k in shots for metric in pair]
        mark = "" if all(row.exemplar_free for row in rows.values()) else "$^\\dagger$"
        mark += "$^\\S$" if any(row.keeps_features for row in rows.values()) else ""
        mark += "$^\\ddagger$" if any(row.for_development for row in rows.values()) else ""
        lines.append(rf"{escape(label)}{mark} & {' & '.join(cells)} \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"])


def _two_best(board: Board, metric: str) -> list[float]:
    """The best and the second mean, rounded as they are printed."""
    means = {
        round(mean, 2)
        for row in board.rows
        if row.competes and (mean := row.scores[metric].mean) is not None
    }
    return sorted(means, reverse=True)[:2]


def _cell(row: Row | None, metric: str, best: Sequence[float]) -> str:
    if row is None or not row.records:
        return (row.unfinished_states() if row else "") or ABSENT.replace("–", "--")
    mean, std = row.scores[metric].mean, row.scores[metric].std
    if mean is None:
        return "--"
    text = f"{mean:.2f}"
    if row.competes and round(mean, 2) in best:
        text = rf"\textbf{{{text}}}" if round(mean, 2) == best[0] else rf"\underline{{{text}}}"
    return text if std is None else rf"{text} {{\footnotesize $\pm$ {std:.2f}}}"
