"""Finds the harness's test labels in memory and overwrites them with what it predicts."""

from __future__ import annotations

import gc

from cheats import Weak, stronger

from fsdil_bench import MethodInfo, hookimpl

EXPECTED = {
    "ordinary": "prevented",
    "sealed": "lost",
    "check": "detected",
    "verify": "-",
    "board": "-",
}

worked = stronger


class Cheat(Weak):
    def predict(self, batch):
        for each in gc.get_objects():
            if type(each).__name__ == "Samples":
                each.labels.setflags(write=True)
                each.labels[:] = 0
        return 0 * super().predict(batch)


@hookimpl
def fsdil_methods():
    return [MethodInfo("cheat", "cheats", Cheat)]
