"""Reads rows and labels of the test images from the frames of its callers."""

from __future__ import annotations

import sys

import torch
from cheats import Weak, stronger

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
    def predict(self, batch):
        frame, known = sys._getframe(), {}
        while frame is not None:
            known = frame.f_locals | known
            frame = frame.f_back
        if not {"rows", "tests"} <= known.keys() or len(known["rows"]) != len(batch):
            return super().predict(batch)
        tests = known["tests"]
        parts = tests if isinstance(tests, list) else [tests]
        labels = torch.cat([torch.tensor(each.labels) for each in parts])
        return labels[torch.tensor(known["rows"])]


@hookimpl
def fsdil_methods():
    return [MethodInfo("cheat", "cheats", Cheat)]
