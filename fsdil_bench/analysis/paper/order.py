"""Whether methods come in the order of the paper's results on a data set."""

from __future__ import annotations

from collections.abc import Mapping

from fsdil_bench.analysis.statistics import RankAgreement, rank_agreement

from .results import tables

#: With fewer methods no order says anything: that of four agrees in full by chance with p = 0.08.
FEWEST = 5


def order_agreement(
    scores: Mapping[str, float], dataset: str, shots: int, metric: str = "AA*"
) -> tuple[list[str], RankAgreement | None]:
    """The methods (in our names) that the paper's table of a data set has too, and how far the
    order of `scores` agrees with the paper's; None for too few. Methods that have another backbone
    in the paper are left out."""
    theirs = {
        cell.method: cell.mean
        for table in tables()
        if table.name == dataset
        for cell in table.cells
        if (cell.shots, cell.metric, cell.backbone) == (shots, metric, "CLIP")
        and cell.mean is not None
    }
    names = [name for name in scores if name in theirs]
    if len(names) < FEWEST:
        return names, None
    ours = [scores[name] for name in names]
    return names, rank_agreement(ours, [theirs[name] for name in names])
