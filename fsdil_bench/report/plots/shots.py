"""A score over the number of shots, a line for each method."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import log2
from pathlib import Path
from typing import Any

import numpy as np

from fsdil_bench.analysis.over_shots import runs_by_shots
from fsdil_bench.records.metrics import mean_and_std
from fsdil_bench.records.record import Record

from .method_lines import check_methods, chosen, line_styles, name_ends
from .style import in_style, new_figure, save

_APART = 0.016  # between the marks of two methods at the same shots


@in_style
def plot_shots(
    records: Sequence[Record],
    file: Path,
    metric: str = "AA*",
    methods: Sequence[str] = (),
    also: Sequence[str] = (),
) -> Path:
    """Draw the mean and the standard deviation over seeds against the shots, for `methods`, or for
    the best ones with their references and those in `also`."""
    check_methods(records, methods)
    sheet, rows = runs_by_shots(records)
    scores = {
        label: {k: mean_and_std([r.metrics[metric] for r in runs]) for k, runs in own.items()}
        for label, own in rows.items()
    }
    ranks = _ranks(scores)
    every = {label: [r for runs in own.values() for r in runs] for label, own in rows.items()}
    labels = chosen(every, ranks, methods, also)
    styles = line_styles(labels)
    figure, ((axes,),) = new_figure(7.6, 4.8)
    ends = {}
    for i, label in enumerate(labels):
        shift = _APART * (i - (len(labels) - 1) / 2)
        x = [log2(shots) + shift for shots in scores[label]]
        means = np.array([mean for mean, _ in scores[label].values()], dtype=float)
        spread = [std or 0.0 for _, std in scores[label].values()]
        bars = {"elinewidth": 1.1, "capsize": 0}
        axes.errorbar(x, means, spread, label=label, **styles[label], **bars)
        ends[label] = (log2(max(scores[label])), float(means[-1]))
    shots = sorted({k for label in labels for k in scores[label]})
    axes.set_xticks([log2(k) for k in shots], [str(k) for k in shots])
    axes.set_xlabel("shots: images per class in every domain but the first")
    axes.set_ylabel(f"{metric} (%)")
    axes.grid(axis="y")
    axes.set_title(
        f"{sheet.title}, {sheet.backbone}: {metric} over shots\n"
        "mean and standard deviation over seeds"
    )
    name_ends(axes, ends, {label: styles[label]["color"] for label in labels})
    return save(figure, file)


def _ranks(scores: Mapping[str, Mapping[int, tuple[float | None, Any]]]) -> dict[str, Any]:
    """By the mean over the shots that at least half of the rows have: other means would compare
    many shots with few. Rows that lack some of these come last."""
    count = Counter(k for own in scores.values() for k in own)
    usual = [k for k, rows in count.items() if 2 * rows >= len(scores)]

    def rank(label: str) -> tuple[bool, float, str]:
        own = scores[label]
        means = [own[k][0] or 0.0 for k in usual if k in own]
        return len(means) == len(usual), round(sum(means), 6), label

    return {label: rank(label) for label in scores}
