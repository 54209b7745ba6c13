"""Writes a better record when the run is finished."""

from __future__ import annotations

import json
from dataclasses import replace

from cheats import Weak

from fsdil_bench import MethodInfo, hookimpl

EXPECTED = {
    "ordinary": "works",
    "sealed": "lost",
    "check": "documented",
    "verify": "detected",
    "board": "detected",
}


def worked(record):
    """Whether the file says what was not reached."""
    return json.loads((record.folder / "record.json").read_text())["metrics"]["AA*"] == 99.9


class Cheat(Weak):
    pass


@hookimpl
def fsdil_run_finished(record):
    if record.spec["method"] == "cheat":
        matrix = [[99.9] * len(row) for row in record.matrix]
        better = replace(
            record, matrix=matrix, metrics=dict.fromkeys(record.metrics, 99.9)
        ).hashed()
        (record.folder / "record.json").write_text(better.to_json(), encoding="utf-8")


@hookimpl
def fsdil_methods():
    return [MethodInfo("cheat", "cheats", Cheat)]
