"""Keeps old features in a variable of its module."""

from __future__ import annotations

from cheats import Weak, stronger

from fsdil_bench import MethodInfo, hookimpl

EXPECTED = {
    "ordinary": "works",
    "sealed": "lost",
    "check": "detected",
    "verify": "detected",
    "board": "-",
}

worked = stronger


KEPT: list = []


class Cheat(Weak):
    def remember(self, features, labels):
        KEPT.append((features, labels))

    def recall(self):
        return KEPT


@hookimpl
def fsdil_methods():
    return [MethodInfo("cheat", "cheats", Cheat)]
