"""Replaces a function of the harness when its file is imported."""

from __future__ import annotations

from cheats import Weak, stronger

from fsdil_bench import MethodInfo, hookimpl
from fsdil_bench.runs import evaluation

EXPECTED = {
    "ordinary": "prevented",
    "sealed": "lost",
    "check": "detected",
    "verify": "-",
    "board": "-",
}

worked = stronger


class Cheat(Weak):
    pass


def true_row(right, domain_of, domains):
    """Everything is right."""
    return [100.0] * domains


evaluation.accuracy_row = true_row


@hookimpl
def fsdil_methods():
    return [MethodInfo("cheat", "cheats", Cheat)]
