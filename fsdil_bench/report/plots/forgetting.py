"""What old domains lose along the stream, a line for each method."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fsdil_bench.analysis.forgetting import forgetting_curve
from fsdil_bench.analysis.grouping import (
    distinct_runs,
    group_into_boards,
    group_into_rows,
    row_labels,
)
from fsdil_bench.errors import RequestError
from fsdil_bench.records.metrics import mean_and_std
from fsdil_bench.records.record import Record

from .method_lines import check_methods, chosen, line_styles, name_ends
from .style import INK, in_style, name_ticks, new_figure, save


@in_style
def plot_forgetting(records: Sequence[Record], file: Path, methods: Sequence[str] = ()) -> Path:
    """Draw the points that old domains have lost after each domain, as the mean over seeds, for
    `methods` or for those with the best AA* and their references."""
    check_methods(records, methods)
    boards = group_into_boards(distinct_runs(records))
    if len(boards) != 1:
        raise RequestError(
            f"the runs are of {len(boards)} boards", "Give a folder with the runs of one board."
        )
    [(board, members)] = boards.items()
    names = members[0].domain_names
    if len(names) < 2:
        raise RequestError("nothing can be forgotten of a single domain", "Draw another plot.")
    keys = group_into_rows(members)
    rows = {label: keys[key] for key, label in row_labels(keys).items()}
    means = {label: mean_and_std([r.metrics["AA*"] for r in own])[0] for label, own in rows.items()}
    labels = chosen(rows, {label: (round(means[label] or 0, 8), label) for label in rows}, methods)
    styles = line_styles(labels)
    figure, ((axes,),) = new_figure(7.6, 4.8)
    axes.axhline(0, color=INK, linewidth=0.8)
    ends = {}
    for label in labels:
        lost = np.mean([forgetting_curve(record.matrix) for record in rows[label]], axis=0)
        axes.plot(range(len(lost)), lost, label=label, **styles[label])
        ends[label] = (len(lost) - 1.0, float(lost[-1]))
    axes.invert_yaxis()
    name_ticks(axes, names[1:])
    axes.set_xlabel("after learning")
    axes.set_ylabel("points lost by the domains before it")
    axes.grid(axis="y")
    axes.set_title(
        f"{board.scenario}, {board.backbone}: forgetting\n"
        "accuracy when learned minus accuracy now, mean over old domains and seeds"
    )
    name_ends(axes, ends, {label: styles[label]["color"] for label in labels})
    return save(figure, file)
