"""Centres the features of a test batch: its prediction of one image depends on the others."""

from __future__ import annotations

from class_sums import ClassSums

from fsdil_bench import MethodInfo, hookimpl

EXPECTED = {
    "ordinary": "works",
    "sealed": "documented",
    "check": "detected",
    "verify": "documented",
    "board": "-",
}


def worked(record):
    """Whether it predicts at all: on this much data it gains nothing, but it may not do so."""
    return record.metrics["AA*"] > 40


class Cheat(ClassSums):
    def predict(self, batch):
        centred = batch.features - batch.features.mean(0)
        return (centred @ (self.sums - self.sums.mean(0)).T).argmax(1)


@hookimpl
def fsdil_methods():
    return [MethodInfo("cheat", "cheats", Cheat)]
