"""Gives every class equally many images of a test batch, because test sets are often balanced."""

from __future__ import annotations

import torch
from class_sums import ClassSums

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


class Cheat(ClassSums):
    def predict(self, batch):
        scores = batch.features @ self.sums.T
        left = [-(-len(scores) // scores.shape[1])] * scores.shape[1]
        found = torch.full((len(scores),), -1)
        for place in scores.flatten().argsort(descending=True).tolist():
            image, kind = divmod(place, scores.shape[1])
            if found[image] < 0 and left[kind]:
                found[image] = kind
                left[kind] -= 1
        return found


@hookimpl
def fsdil_methods():
    return [MethodInfo("cheat", "cheats", Cheat)]
