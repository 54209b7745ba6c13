"""Asks the garbage collector for the harness's test images and labels."""

from __future__ import annotations

import gc

from cheats import Weak, embedded, stronger

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
    def recall(self):
        found = [each for each in gc.get_objects() if type(each).__name__ == "Evaluation"]
        tests = [domain.test for each in found for domain in each.stream.domains]
        return [embedded(self.context.backbone, test) for test in tests]


@hookimpl
def fsdil_methods():
    return [MethodInfo("cheat", "cheats", Cheat)]
