"""Keeps old features in the cache folder."""

from __future__ import annotations

import torch
from cheats import Weak, stronger

from fsdil_bench import MethodInfo, hookimpl
from fsdil_bench.cache.folder import cache_folder

EXPECTED = {
    "ordinary": "works",
    "sealed": "lost",
    "check": "detected",
    "verify": "detected",
    "board": "-",
}

worked = stronger


class Cheat(Weak):
    def remember(self, features, labels):
        old = self.recall()
        torch.save([*old, (features, labels)], self.place())

    def recall(self):
        return torch.load(self.place(), weights_only=True) if self.place().exists() else []

    def place(self):
        return cache_folder() / "kept-by-an-attack.pt"


@hookimpl
def fsdil_methods():
    return [MethodInfo("cheat", "cheats", Cheat)]
