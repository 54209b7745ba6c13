"""Keeps old features in an environment variable."""

from __future__ import annotations

import json
import os

import torch
from cheats import Weak, stronger

from fsdil_bench import MethodInfo, hookimpl

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
        kept = [*json.loads(os.environ.get("KEPT", "[]")), (features.tolist(), labels.tolist())]
        os.environ["KEPT"] = json.dumps(kept)

    def recall(self):
        kept = json.loads(os.environ.get("KEPT", "[]"))
        return [(torch.tensor(features), torch.tensor(labels)) for features, labels in kept]


@hookimpl
def fsdil_methods():
    return [MethodInfo("cheat", "cheats", Cheat)]
