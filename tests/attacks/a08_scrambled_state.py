"""Keeps every feature in its state, with permuted coordinates and random signs."""

from __future__ import annotations

import torch
from cheats import Weak, stronger

from fsdil_bench import MethodInfo, hookimpl

EXPECTED = {
    "ordinary": "works",
    "sealed": "documented",
    "check": "detected",
    "verify": "-",
    "board": "-",
}

worked = stronger


class Cheat(Weak):
    def __init__(self, context):
        super().__init__(context)
        size, draw = context.backbone.embed_dim, context.generator("scramble")
        self.order = torch.randperm(size, generator=draw)
        self.signs = torch.randint(0, 2, (size,), generator=draw) * 2 - 1
        self.images, self.labels = torch.zeros(0, size, dtype=torch.int8), torch.zeros(0).long()

    def remember(self, features, labels):
        scrambled = features[:, self.order] * self.signs * 127
        self.images = torch.cat([self.images, scrambled.round().to(torch.int8)])
        self.labels = torch.cat([self.labels, labels])

    def recall(self):
        images = (self.images * self.signs).float()
        return [(images[:, self.order.argsort()], self.labels)] if len(images) else []

    def state_dict(self):
        return super().state_dict() | {"weights": self.images, "bias": self.labels}

    def load_state_dict(self, state):
        super().load_state_dict(state)
        self.images, self.labels = state["weights"].clone(), state["bias"].clone()


@hookimpl
def fsdil_methods():
    return [MethodInfo("cheat", "cheats", Cheat)]
