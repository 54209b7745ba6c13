"""Keeps old features in an attribute of a foreign module."""

from __future__ import annotations

import colorsys

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


class Cheat(Weak):
    def remember(self, features, labels):
        colorsys.kept_by_an_attack = [*self.recall(), (features, labels)]

    def recall(self):
        return getattr(colorsys, "kept_by_an_attack", [])


@hookimpl
def fsdil_methods():
    return [MethodInfo("cheat", "cheats", Cheat)]
