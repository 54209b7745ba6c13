"""A router remembers the true domains that it is given for the oracle's row."""

from __future__ import annotations

import torch
from class_sums import ClassSums

from fsdil_bench import MethodInfo, RouterMethod, hookimpl

EXPECTED = {
    "ordinary": "works",
    "sealed": "lost",
    "check": "detected",
    "verify": "detected",
    "board": "-",
}
#: What it is told after the second domain helps after the third.
ORDER = ("d0", "d2", "d3")


def worked(record):
    """Whether it routes better than by always naming the base domain."""
    sizes = [each["test"] for each in record.scenario["domains"]]
    return record.routing[-1] > 100 * sizes[0] / sum(sizes) + 5


class Cheat(RouterMethod, ClassSums):
    true: dict = {}  # noqa: RUF012

    def predict_domain(self, batch):
        return torch.tensor([self.true.get(row.numpy().tobytes(), 0) for row in batch.features])

    def predict_in_domain(self, batch, domains):
        for row, domain in zip(batch.features, domains, strict=True):
            self.true[row.numpy().tobytes()] = int(domain)
        return (batch.features @ self.sums.T).argmax(1)


@hookimpl
def fsdil_methods():
    return [MethodInfo("cheat", "cheats", Cheat)]
