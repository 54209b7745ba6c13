"""Boards over several orders of the domains: Markdown, CSV and JSON files, and a terminal's table.

There is one file of each kind with all boards, and none where every scenario has a single order.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tabulate import tabulate

from fsdil_bench.analysis.orders import OrderBoard, OrderRow, compare_over_orders
from fsdil_bench.records.metrics import METRICS

from .formatting import ABSENT, number, score, seed_list
from .formatting import escape_markdown as escape

if TYPE_CHECKING:
    from rich.table import Table

_ABOUT = (
    "Percent. Each method was run with several orders of the domains. *mean* is the mean over"
    " orders of the mean over seeds. *over orders* is the standard deviation of the orders'"
    " means, *over seeds* that of the seeds within an order (both divide by n − 1). The 95 %"
    " interval is for the expected score over orders: orders are the random factor (Student's t,"
    " orders − 1 degrees of freedom), while seeds and test images are taken as they are. – means"
    " that the order changes nothing. *against the best* is the difference to the best mean with"
    " its 95 % interval, paired by order and seed, without a correction for the number of"
    " methods. A method that keeps old images (\\*) is a ceiling, not a competitor."
)
_HEADS = (
    "method", "mean", "over orders", "over seeds", "95 %", "best order", "worst order", "orders",
    "seeds", "against the best",
)  # fmt: skip


def order_files(boards: Sequence[OrderBoard]) -> dict[str, str]:
    """The files of all boards over orders, by name; none without boards."""
    if not boards:
        return {}
    return {"orders.md": _page(boards), "orders.csv": _csv(boards), "orders.json": _json(boards)}


def index_lines(boards: Sequence[OrderBoard]) -> str:
    """The end of the index page: where the boards over orders are."""
    if not boards:
        return ""
    table = [
        [escape(board.key.scenario), _base(board), len(board.orders), len(board.rows),
         escape(best.label) if (best := board.best_row("AA*")) else ABSENT]
        for board in boards
    ]  # fmt: skip
    heads = ["scenario", "base", "orders", "methods", "best AA*"]
    lines = ["", "## Over orders of the domains", "", _table(heads, table), ""]
    lines += ["[Mean and spread over orders](orders.md) ([csv](orders.csv), [json](orders.json))"]
    return "\n".join(lines) + "\n"


def terminal_table(board: OrderBoard) -> Table:
    """AA* over orders in detail, and the means of the other scores."""
    from fsdil_bench.report.terminal import table

    lines = [
        [row.label, *_cells(board, row, "AA*")[1:7], *(_mean(row, name) for name in METRICS[1:])]
        for row in board.rows
    ]
    title = f"{board.key.scenario} over {len(board.orders)} orders, base {_plain_base(board)}"
    return table(["method", "AA*", *_HEADS[2:7], *METRICS[1:]], lines, title)


def _page(boards: Sequence[OrderBoard]) -> str:
    lines = ["# Over orders of the domains", "", _ABOUT]
    for board in boards:
        title = f"{escape(board.key.scenario)}, {escape(board.key.backbone)}"
        lines += ["", f"## {title}, base: {_base(board)}", ""]
        orders = [[i, ", ".join(map(escape, order))] for i, order in enumerate(board.orders)]
        lines.append(_table(["order", "domains"], orders))
        for metric in METRICS:
            rows = _best_first(board, metric)
            if rows:
                cells = [_cells(board, row, metric) for row in rows]
                lines += ["", f"### {metric}", "", _table(_HEADS, cells)]
        for label, why in board.left_out.items():
            lines += ["", f"Left out: {escape(label)} {why}."]
    return "\n".join(lines) + "\n"


def _cells(board: OrderBoard, row: OrderRow, metric: str) -> list[str]:
    found = row.scores[metric]
    about_orders = [ABSENT] * 3
    if round(found.order_std, 8):
        about_orders = [
            f"{found.interval.low:.2f} to {found.interval.high:.2f}",
            *(f"{order} ({score(found.means[order])})" for order in (found.best, found.worst)),
        ]
    return [
        escape(row.label) + ("" if row.exemplar_free else " \\*"),
        score(found.mean),
        f"± {score(found.order_std)}",
        ABSENT if found.seed_std is None else f"± {score(found.seed_std)}",
        *about_orders,
        str(len(board.orders)),
        seed_list(row.seeds),
        _against_best(board, row, metric),
    ]


def _against_best(board: OrderBoard, row: OrderRow, metric: str) -> str:
    best = board.best_row(metric)
    if best is None or row is best:
        return "best" if row is best else ABSENT
    found = compare_over_orders(row, best, metric)
    if found is None:
        return "no seed in common"
    if not round(found.interval.high - found.interval.low, 8):
        return f"{found.mean:+.2f}"
    return f"{found.mean:+.2f} ({found.interval.low:+.2f} to {found.interval.high:+.2f})"


def _values(board: OrderBoard, row: OrderRow, metric: str) -> dict[str, Any]:
    """One score of a row for programs, with the digits that do not depend on the machine."""
    found, best = row.scores[metric], board.best_row(metric)
    gap = compare_over_orders(row, best, metric) if best and row is not best else None
    values = {
        "scenario": board.key.scenario,
        "backbone": board.key.backbone,
        "base": _plain_base(board),
        "method": row.label,
        "metric": metric,
        "mean": found.mean,
        "std over orders": found.order_std,
        "std over seeds": found.seed_std,
        "low": found.interval.low,
        "high": found.interval.high,
        "orders": len(board.orders),
        "seeds": len(row.seeds),
        "best order": ",".join(board.orders[found.best]),
        "best order mean": found.means[found.best],
        "worst order": ",".join(board.orders[found.worst]),
        "worst order mean": found.means[found.worst],
        "against best": gap.mean if gap else None,
        "against best low": gap.interval.low if gap else None,
        "against best high": gap.interval.high if gap else None,
        "against best p": gap.p if gap else None,
    }
    return {
        # Rounded: a difference of nothing but noise in the last bits is zero on every machine.
        name: number(round(value, 8)) if isinstance(value, float) else value
        for name, value in values.items()
    }


def _csv(boards: Sequence[OrderBoard]) -> str:
    lines = [_values(*each) for each in _scored(boards)]
    text = io.StringIO()
    writer = csv.DictWriter(text, list(lines[0]), lineterminator="\n")
    writer.writeheader()
    for line in lines:
        # A spreadsheet would take a label that begins like a formula for one.
        mark = "'" if line["method"].startswith(("=", "+", "-", "@")) else ""
        writer.writerow(line | {"method": mark + line["method"]})
    return text.getvalue()


def _json(boards: Sequence[OrderBoard]) -> str:
    values = [
        {
            "scenario": board.key.scenario,
            "backbone": board.key.backbone,
            "base": _plain_base(board),
            "orders": board.orders,
            "left_out": dict(board.left_out),
            "scores": [
                _values(board, row, metric)
                | {
                    "means": [number(mean) for mean in row.scores[metric].means],
                    "seed list": row.seeds,
                    "run_ids": [[record.run_id for record in own] for own in row.runs],
                }
                for _, row, metric in _scored([board])
            ],
        }
        for board in boards
    ]
    return json.dumps({"schema": 1, "boards": values}, indent=1, allow_nan=False) + "\n"


def _scored(boards: Sequence[OrderBoard]) -> list[tuple[OrderBoard, OrderRow, str]]:
    return [
        (board, row, metric)
        for board in boards
        for metric in METRICS
        for row in board.rows
        if metric in row.scores
    ]


def _best_first(board: OrderBoard, metric: str) -> list[OrderRow]:
    scored = [row for row in board.rows if metric in row.scores]
    return sorted(scored, key=lambda row: (-round(row.scores[metric].mean, 8), row.label))


def _mean(row: OrderRow, metric: str) -> str:
    return score(row.scores[metric].mean if metric in row.scores else None)


def _base(board: OrderBoard) -> str:
    return escape(_plain_base(board))


def _plain_base(board: OrderBoard) -> str:
    return board.base or "free"


def _table(heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    text: str = tabulate(rows, heads, tablefmt="pipe", disable_numparse=True)
    return text
