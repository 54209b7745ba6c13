"""Calls the scenario's builder itself and looks up each test image."""

from __future__ import annotations

import toy_plugin
from cheats import Weak, embedded, stronger

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
        tests = [domain.test for domain in toy_plugin.build_stream().domains]
        return [embedded(self.context.backbone, test) for test in tests]


@hookimpl
def fsdil_methods():
    return [MethodInfo("cheat", "cheats", Cheat)]
