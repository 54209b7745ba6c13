"""Loads the stream again and looks up each test image."""

from __future__ import annotations

from cheats import Weak, embedded, stronger, toy_stream

from fsdil_bench import MethodInfo, hookimpl

EXPECTED = {
    "ordinary": "prevented",
    "sealed": "prevented",
    "check": "detected",
    "verify": "-",
    "board": "-",
}

worked = stronger


class Cheat(Weak):
    def recall(self):
        tests = [domain.test for domain in toy_stream().domains]
        return [embedded(self.context.backbone, test) for test in tests]


@hookimpl
def fsdil_methods():
    return [MethodInfo("cheat", "cheats", Cheat)]
