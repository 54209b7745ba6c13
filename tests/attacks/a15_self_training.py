"""Learns from test images while it predicts them."""

from __future__ import annotations

import torch
from cheats import Weak

from fsdil_bench import MethodInfo, hookimpl

EXPECTED = {
    "ordinary": "works",
    "sealed": "detected",
    "check": "detected",
    "verify": "detected",
    "board": "detected",
}


def worked(record):
    """Whether it predicts at all: on this much data it gains nothing, but it may not do so."""
    return record.metrics["AA*"] > 40


class Cheat(Weak):
    def predict(self, batch):
        classes = super().predict(batch)
        for _ in range(5):
            means = torch.zeros_like(self.sums).index_add_(0, classes, batch.features)
            classes = (batch.features @ torch.nn.functional.normalize(means).T).argmax(1)
        return classes


@hookimpl
def fsdil_methods():
    return [MethodInfo("cheat", "cheats", Cheat)]
