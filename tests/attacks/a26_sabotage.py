"""Makes a method of another plugin worse when its file is imported."""

from __future__ import annotations

import torch
from cheats import Weak
from fsdil_methods.frozen.ncm import NearestClassMean

from fsdil_bench import MethodInfo, hookimpl

EXPECTED = {
    "ordinary": "prevented",
    "sealed": "lost",
    "check": "detected",
    "verify": "-",
    "board": "-",
}

METHOD = "ncm"  # the method that is run beside it


def worked(record):
    """Whether the other method has become as bad as chance."""
    return record.metrics["AA*"] < 40


class Cheat(Weak):
    pass


def always_first(self, batch):
    """Class 0."""
    return torch.zeros(len(batch), dtype=torch.long)


NearestClassMean.predict = always_first


@hookimpl
def fsdil_methods():
    return [MethodInfo("cheat", "cheats", Cheat)]
