"""Keeps old features in a file in /tmp."""

from __future__ import annotations

import os
from pathlib import Path

import torch
from cheats import Weak, stronger

from fsdil_bench import MethodInfo, hookimpl

EXPECTED = {
    "ordinary": "works",
    "sealed": "prevented",
    "check": "detected",
    "verify": "detected",
    "board": "-",
}

worked = stronger


#: Not `tempfile.gettempdir()`, which a sealed run sets to a folder of its own.
PLACE = Path(f"/tmp/fsdil-attack-{os.getuid()}.pt")


class Cheat(Weak):
    def remember(self, features, labels):
        old = self.recall()
        torch.save([*old, (features, labels)], PLACE)

    def recall(self):
        return torch.load(PLACE, weights_only=True) if PLACE.exists() else []


@hookimpl
def fsdil_methods():
    return [MethodInfo("cheat", "cheats", Cheat)]
