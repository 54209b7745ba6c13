"""Trains, and reports that it trains nothing."""

from __future__ import annotations

import torch
from class_sums import ClassSums

from fsdil_bench import MethodInfo, hookimpl

EXPECTED = {
    "ordinary": "works",
    "sealed": "documented",
    "check": "detected",
    "verify": "-",
    "board": "-",
}


def worked(record):
    """Whether the record says that nothing was trained."""
    return record.cost["trained_parameters"][-1] == 0


class Cheat(ClassSums):
    def learn(self, domain):
        features, labels = domain.features(), domain.labels
        weight = torch.nn.Parameter(self.sums.clone())
        optimizer = torch.optim.SGD([weight], lr=0.1)
        for _ in range(5):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(features @ weight.T, labels).backward()
            optimizer.step()
        self.sums = weight.detach()

    def load_state_dict(self, state):
        self.sums = state["sums"].clone()


@hookimpl
def fsdil_methods():
    return [MethodInfo("cheat", "cheats", Cheat)]
