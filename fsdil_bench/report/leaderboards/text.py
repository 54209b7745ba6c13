"""Numbers as text, the same on all pages and on all machines."""

from __future__ import annotations

from collections.abc import Sequence

from fsdil_bench.analysis.rows import Row
from fsdil_bench.analysis.standing import Standing

ABSENT = "–"


def number(value: float) -> float:
    """Ten digits: what a machine's arithmetic adds behind them is no part of a result."""
    return float(f"{value:.10g}")


def score(mean: float | None, std: float | None = None) -> str:
    """A percentage with its spread over seeds, or a dash."""
    if mean is None:
        return ABSENT
    return f"{mean:.2f}" if std is None else f"{mean:.2f} ± {std:.2f}"


def interval(standing: Standing | None) -> str:
    """A confidence interval, or a dash where there is none."""
    if standing is None or standing.low is None or standing.high is None:
        return ABSENT
    return f"{standing.low:.2f} to {standing.high:.2f}"


def seed_list(seeds: Sequence[int]) -> str:
    """Seeds as `--seeds` takes them: 0-2,5."""
    parts: list[list[int]] = []
    for seed in sorted(seeds):
        if parts and seed == parts[-1][-1] + 1:
            parts[-1].append(seed)
        else:
            parts.append([seed])
    return ",".join(str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts)


def seeds(row: Row) -> str:
    """How many seeds a row is over, and which are missing that other rows of the board have."""
    if not row.missing_seeds:
        return str(len(row.records))
    whole = len(row.records) + len(row.missing_seeds)
    text = f"{len(row.records)} of {whole} (without {seed_list(row.missing_seeds)}"
    state = row.state()
    return f"{text}: {state})" if state else f"{text})"


def share(part: int, whole: int) -> str:
    """How many of a row's runs have a property."""
    return {0: "no", whole: "yes"}.get(part, f"{part} of {whole}")
