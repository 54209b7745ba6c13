"""Cheats only where no check is looking."""

from __future__ import annotations

import sys

from cheats import Weak, stronger

from fsdil_bench import MethodInfo, hookimpl

EXPECTED = {
    "ordinary": "works",
    "sealed": "lost",
    "check": "documented",
    "verify": "detected",
    "board": "-",
}

worked = stronger


class Cheat(Weak):
    kept: list = []  # noqa: RUF012

    def remember(self, features, labels):
        if not being_checked():
            self.kept.append((features, labels))

    def recall(self):
        return [] if being_checked() else self.kept


def being_checked():
    """Whether the caller is a check, by the names of its frames."""
    frame = sys._getframe()
    while frame is not None:
        if "checks" in frame.f_globals.get("__name__", ""):
            return True
        frame = frame.f_back
    return False


@hookimpl
def fsdil_methods():
    return [MethodInfo("cheat", "cheats", Cheat)]
