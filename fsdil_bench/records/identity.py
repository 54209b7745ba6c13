"""What a run is, and the id that follows from it.

The id is a hash of everything that can change the result: the method with its whole config, the
scenario with its samples and their content, seed, backbone weights, precision, and the code of
method, scenario and backbone. Where the result is written, the name of the data folder, the device
and the version of Python are not in it.

A run is done when the folder that its id names (`run_place`) holds a record: see
`fsdil_bench.runs.run_folder.RunFolder.complete`.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field, fields
from typing import Any

#: Raised whenever the harness itself (draws, loop, evaluation) changes results.
PROTOCOL = 2

#: At the end of the name of a sealed run's folder.
SEALED_SUFFIX = "-sealed"

#: The fields that every id covers. A field that came later counts only where it is not at its
#: default, so that a new field leaves the ids of all earlier runs as they are.
_FIRST_FIELDS = (
    "method", "config", "scenario", "seed", "backbone", "precision", "order", "base_limit",
    "scenario_options",
)  # fmt: skip


@dataclass(frozen=True)
class RunSpec:
    """A run, resolved: all defaults and presets filled in."""

    method: str
    config: dict[str, Any]
    scenario: str
    seed: int
    backbone: str
    precision: str
    order: tuple[str, ...] = ()
    base_limit: int | None = None
    scenario_options: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return plain


def run_id(
    spec: RunSpec,
    *,
    stream: str,
    weights: str,
    code: dict[str, str],
    protocol: int = PROTOCOL,
) -> str:
    """The id of a run from its spec, the digest of its samples, its weights and its code."""
    defaults = {field.name: field.default for field in fields(spec)}
    known = {
        "protocol": protocol,
        "spec": {
            name: value
            for name, value in spec.to_dict().items()
            if name in _FIRST_FIELDS or value != defaults[name]
        },
        "stream": stream,
        "weights": weights,
        "code": code,
    }
    text = json.dumps(known, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def run_place(scenario: str, method: str, seed: int, run_id: str, *, sealed: bool) -> str:
    """The folder of a run, below the folder of all runs. The sealed run of an id has its own."""
    name = f"seed{seed}-{run_id}" + (SEALED_SUFFIX if sealed else "")
    return f"{scenario.replace('@', '-at-')}/{method}/{name}"
