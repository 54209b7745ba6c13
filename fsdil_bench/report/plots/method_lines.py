"""Several methods as lines in one picture: which are shown, how they look, and their names.

Up to `MOST` lines can be kept apart. Names stand beside the ends of their lines, because readers
lose the way between a line and a legend with ten entries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fsdil_bench.errors import unknown
from fsdil_bench.records.record import Record

from .style import GREY, INK, MARKERS, PALETTE

MOST = 10
#: What every other line is read against: drawn in grey, and shown wherever there is one.
REFERENCES = {"zero-shot": "--", "joint": ":"}
_GAP = 0.052  # between two names, as a share of the axes


def check_methods(records: Sequence[Record], methods: Sequence[str]) -> None:
    """Refuse the name of a method that has no run."""
    known = sorted({record.spec["method"] for record in records})
    for name in methods:
        if name not in known:
            raise unknown("method among these runs", name, known)


def chosen(
    rows: Mapping[str, Sequence[Record]],
    ranks: Mapping[str, Any],
    methods: Sequence[str] = (),
    also: Sequence[str] = (),
) -> list[str]:
    """The labels of the rows to show, the highest rank first: those of `methods`; without these,
    the references, those in `also`, and the best of the methods that keep no old images."""
    found = sorted(rows, key=lambda label: ranks[label], reverse=True)
    if methods:
        return [label for label in found if rows[label][0].spec["method"] in methods]
    fixed = [label for label in found if label in REFERENCES or label in also]
    rivals = [label for label in found if label not in fixed and rows[label][0].exemplar_free]
    kept = {*fixed, *rivals[: MOST - len(fixed)]}
    return [label for label in found if label in kept]


def line_styles(labels: Sequence[str]) -> dict[str, dict[str, Any]]:
    """How each line looks: no two alike, and references in grey."""
    styles: dict[str, dict[str, Any]] = {}
    for label in labels:
        if label in REFERENCES:
            styles[label] = {
                "color": GREY,
                "linestyle": REFERENCES[label],
                "marker": "",
                "zorder": 1,
            }
            continue
        i = sum(each not in REFERENCES for each in styles)
        styles[label] = {
            "color": PALETTE[i % len(PALETTE)],
            "marker": MARKERS[i % len(MARKERS)],
            "markerfacecolor": PALETTE[i % len(PALETTE)] if i < len(PALETTE) else "white",
        }
    return styles


def name_ends(
    axes: Any, ends: Mapping[str, tuple[float, float]], colours: Mapping[str, str]
) -> None:
    """Write each name to the right of the end (x, y) of its line, level with it as far as names do
    not overlap, with a thin line between the two. Most lines end at the last x, and their names
    stand beside the axes."""
    last = max(x for x, _ in ends.values())
    for column in sorted({x for x, _ in ends.values()}):
        own = {name: _share(axes, end) for name, end in ends.items() if end[0] == column}
        names = sorted(own, key=lambda name: (own[name][1], name))
        heights = apart([own[name][1] for name in names], _GAP)
        for name, height in zip(names, heights, strict=True):
            place = 1.05 if column == last else own[name][0] + 0.06
            axes.annotate(
                name, ends[name], (place, height), textcoords="axes fraction", va="center",
                color=INK, fontsize=8,
                bbox={"color": "white", "alpha": 0.75, "pad": 0.5, "linewidth": 0},
                arrowprops={"arrowstyle": "-", "color": colours[name], "linewidth": 0.7,
                            "alpha": 0.7, "shrinkA": 0, "shrinkB": 8},
            )  # fmt: skip


def _share(axes: Any, point: tuple[float, float]) -> tuple[float, float]:
    """Where a point is, as shares of the width and the height of the axes."""
    x, y = axes.transAxes.inverted().transform(axes.transData.transform(point))
    return float(x), float(y)


def apart(values: Sequence[float], gap: float) -> list[float]:
    """Ascending numbers, moved as little as possible (in squares) so that none is closer than `gap`
    to the next: each group of neighbours that push each other stays around its mean."""
    groups: list[list[float]] = []  # sum and number of values, each less the gaps below it
    for i, value in enumerate(values):
        groups.append([value - i * gap, 1])
        while len(groups) > 1 and groups[-2][0] * groups[-1][1] > groups[-1][0] * groups[-2][1]:
            total, number = groups.pop()
            groups[-1][0] += total
            groups[-1][1] += number
    moved = [total / number for total, number in groups for _ in range(int(number))]
    return [value + i * gap for i, value in enumerate(moved)]
