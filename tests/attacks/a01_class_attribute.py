"""Keeps old features in a class attribute."""

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


class Cheat(Weak):
    kept: list = []  # noqa: RUF012 - shared by all instances: the point

    def remember(self, features, labels):
        self.kept.append((features, labels))

    def recall(self):
        return self.kept


@hookimpl
def fsdil_methods():
    return [MethodInfo("cheat", "cheats", Cheat)]
