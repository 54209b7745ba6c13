"""Numbers and names as text, the same on all pages and on all machines."""

from __future__ import annotations

import re
from collections.abc import Sequence

ABSENT = "–"

#: Metrics that papers print side by side.
METRIC_PAIRS = (("AA*", "FA*"), ("Avg", "Last"))


def number(value: float) -> float:
    """Ten digits: further ones depend on the machine and are not part of a result."""
    return float(f"{value:.10g}")


def score(mean: float | None, std: float | None = None) -> str:
    """A percentage with its spread over seeds, or a dash."""
    if mean is None:
        return ABSENT
    return f"{mean:.2f}" if std is None else f"{mean:.2f} ± {std:.2f}"


def milliseconds(seconds: float) -> str:
    """Three digits, and no exponent for long times."""
    return f"{1e3 * seconds:,.0f}" if seconds >= 1 else f"{1e3 * seconds:.3g}"


def seed_list(seeds: Sequence[int]) -> str:
    """Seeds as `--seeds` takes them: 0-2,5."""
    parts: list[list[int]] = []
    for seed in sorted(seeds):
        if parts and seed == parts[-1][-1] + 1:
            parts[-1].append(seed)
        else:
            parts.append([seed])
    return ",".join(str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts)


def share(part: int, whole: int) -> str:
    """How many of a row's runs have a property."""
    return {0: "no", whole: "yes"}.get(part, f"{part} of {whole}")


def one_line(text: str) -> str:
    """`text` with control characters replaced by spaces."""
    return re.sub(r"[\x00-\x1f\x7f\u0085\u2028\u2029]+", " ", text)


def escape_markdown(text: str) -> str:
    """`text` as Markdown prints it: no markup, no link, no end of a cell or line."""
    plain = one_line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    plain = re.sub(r"([\\`*_\[\]|~#!])", r"\\\1", plain)
    # GitHub makes links of bare addresses.
    return re.sub(r"(?i)(www)\.", r"\1&#46;", plain.replace("://", ":&#47;&#47;"))
