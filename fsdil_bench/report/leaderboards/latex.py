"""A sheet as LaTeX tables (package booktabs): the best mean bold, the second underlined."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from fsdil_bench.analysis.boards import Sheet
from fsdil_bench.analysis.rows import Row

from .columns import PAIRS, by_label, ceiling
from .text import ABSENT

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
    plain = re.sub(r"[\x00-\x1f\x7f\u0085\u2028\u2029]+", " ", text)
    return "".join(_SPECIAL.get(sign, sign) for sign in plain)


def latex(sheet: Sheet, rows: Mapping[int, Sequence[Row]]) -> str:
    """All tables of a sheet; `rows` are those of its boards by shots."""
    head = [
        f"% {escape(sheet.title)}, {escape(sheet.backbone)}: needs \\usepackage{{booktabs}}",
        "% Percent, mean and population standard deviation over seeds; higher is better.",
        "% Bold: best mean; underlined: second; dagger: keeps old images, not ranked.",
    ]
    if any(row.keeps_features for members in rows.values() for row in members):
        head.append("% Section sign: the state can hold the feature of a single training image.")
    return "\n".join([*head, *("\n" + _tabular(rows, pair) for pair in PAIRS)]) + "\n"


def _tabular(rows: Mapping[int, Sequence[Row]], pair: Sequence[str]) -> str:
    shots = list(rows)
    heads = " & ".join(rf"\multicolumn{{{len(pair)}}}{{c}}{{{k}-shot}}" for k in shots)
    rules = " ".join(
        rf"\cmidrule(lr){{{first}-{first + len(pair) - 1}}}"
        for first in range(2, 2 + len(pair) * len(shots), len(pair))
    )
    names = " & ".join(_NAMES.get(metric, metric) for _ in shots for metric in pair)
    ranks = {(k, metric): _two_best(rows[k], metric) for k in shots for metric in pair}
    lines = [
        rf"\begin{{tabular}}{{l{'c' * len(pair) * len(shots)}}}",
        r"\toprule",
        rf" & {heads} \\",
        rules,
        rf"Method & {names} \\",
        r"\midrule",
    ]
    for label, found in by_label(rows).items():
        cells = [_cell(found.get(k), metric, ranks[k, metric]) for k in shots for metric in pair]
        mark = "$^\\dagger$" if ceiling(found.values()) else ""
        mark += "$^\\S$" if any(row.keeps_features for row in found.values()) else ""
        lines.append(rf"{escape(label)}{mark} & {' & '.join(cells)} \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"])


def _two_best(rows: Sequence[Row], metric: str) -> list[float]:
    """The best and the second mean, as printed: what prints alike ranks alike."""
    means = {
        round(mean, 2)
        for row in rows
        if row.records and row.exemplar_free and (mean := row.scores[metric][0]) is not None
    }
    return sorted(means, reverse=True)[:2]


def _cell(row: Row | None, metric: str, best: Sequence[float]) -> str:
    if row is None or not row.records:
        return (row.state() if row else "") or ABSENT.replace("–", "--")
    mean, std = row.scores[metric]
    if mean is None:
        return "--"
    text = f"{mean:.2f}"
    if row.exemplar_free and round(mean, 2) in best:
        text = rf"\textbf{{{text}}}" if round(mean, 2) == best[0] else rf"\underline{{{text}}}"
    return text if std is None else rf"{text} {{\footnotesize $\pm$ {std:.2f}}}"
