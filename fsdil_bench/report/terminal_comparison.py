"""How comparisons and ranks look in a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from fsdil_bench.analysis.comparison import Comparison, Difference, Disagreement
from fsdil_bench.analysis.statistics import PairedDifference, Ranking

from .terminal import table


def comparison_tables(found: Comparison) -> RenderableType:
    """A comparison of two methods; the last lines sum it up."""
    overall = found.overall
    a, b = overall.a, overall.b
    seeds = ", ".join(map(str, overall.seeds))
    parts: list[RenderableType] = [
        _differences(found.scores, a, b, f"scores (%), {overall.interval.covers}: {seeds}"),
        _differences(found.domains, a, b, "accuracy (%) on each domain after the last one"),
        Text("* significant at 5 %; for the domains with Holm's correction for their number\n"),
        _overall_disagreement(found.disagreements["overall"][0], a, b),
        _disagreements(found.disagreements["domains"], a, b, "domain"),
        _disagreements(found.disagreements["classes"], a, b, "class"),
    ]
    if found.routing:
        parts.append(
            Text(
                f"images sent to the right domain at the end: {a} {found.routing['a']:.1f} %, "
                f"{b} {found.routing['b']:.1f} %; sent to the same one by both: "
                f"{found.routing['alike']:.1f} %\n"
            )
        )
    cost = [[name, _number(ours), _number(theirs)] for name, (ours, theirs) in found.cost.items()]
    parts.append(table(["cost, mean over seeds", a, b], cost))
    parts += [Text(note) for note in found.notes]
    parts.append(Text(_effect(overall)))
    parts.append(Text(overall.summary, style="bold"))
    if overall.caveat:
        parts.append(Text(overall.caveat))
    return Group(*parts)


def ranking_table(found: Ranking, metric: str) -> RenderableType:
    """Average ranks, and what they mean."""
    rows = [[f"{rank:.2f}", name] for name, rank in found.ranks.items()]
    number = "1 board" if len(found.boards) == 1 else f"{len(found.boards)} boards"
    lines = [f"Ranks by {metric} on {number}: {'; '.join(found.boards)}."]
    if found.p is not None:
        lines.append(f"Friedman's test that all are equally good: p = {found.p:.2g}.")
    if found.critical_difference is None:
        lines.append("There is nothing to average; `fsdil-bench compare` compares two methods.")
    else:
        lines.append(
            f"Two methods differ at {1 - found.level:.0%} if their average ranks are more than "
            f"{found.critical_difference:.2f} apart (Nemenyi). No significant difference between:"
        )
        lines += [f"  {', '.join(group)}" for group in found.groups] or ["  none"]
        lines.append(
            "The test treats boards as independent. Boards of one data set share test images: for "
            "them it is optimistic."
        )
    if found.left_out:
        lines.append(
            f"Left out, because some board has no run of them: {', '.join(found.left_out)}."
        )
    lines += found.notes
    return Group(table(["average rank", "method"], rows), Text("\n".join(lines)))


def _differences(rows: Sequence[Difference], a: str, b: str, title: str) -> Table:
    level = f"{rows[0].interval.level:.0%} interval"
    cells = [
        [
            row.name, f"{row.a:.2f}", f"{row.b:.2f}",
            f"{row.difference:+.2f}" + (" *" if row.significant else ""),
            f"{row.interval.low:+.2f} to {row.interval.high:+.2f}", f"{row.p:.2g}",
        ]
        for row in rows
    ]  # fmt: skip
    return table(["", a, b, "difference", level, "p"], cells, title)


def _overall_disagreement(overall: Disagreement, a: str, b: str) -> Text:
    both = overall.images - overall.only_a - overall.only_b
    return Text(
        f"At the end, of {overall.images} test images {overall.only_a:.0f} are right with {a} only "
        f"and {overall.only_b:.0f} with {b} only; on {both:.0f} the two agree (means over seeds)."
    )


def _disagreements(rows: Sequence[Disagreement], a: str, b: str, what: str) -> Table:
    cells = [
        [row.name, row.images, f"{row.only_a:.1f}", f"{row.only_b:.1f}",
         f"{row.only_a - row.only_b:+.1f}"]
        for row in rows
    ]  # fmt: skip
    names = [f"only {a} right", f"only {b} right", "balance"]
    title = "images that decide it" + (", the classes that matter most" if what == "class" else "")
    return table([what, "images", *names], cells, title)


def _effect(overall: PairedDifference) -> str:
    if overall.effect is None:
        return "They never disagree."
    distance = abs(overall.effect - 0.5)
    sizes = ((0.25, "large"), (0.15, "medium"), (0.05, "small"))
    size = next((word for least, word in sizes if distance >= least), "negligible")
    return (
        f"Effect: where exactly one of them is right, it is {overall.a} in "
        f"{100 * overall.effect:.1f} % (Cohen's g {overall.effect - 0.5:+.3f}, {size})."
    )


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
