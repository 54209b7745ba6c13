"""Keeps an image of every class in its state, as bytes, and does not declare it."""

from __future__ import annotations

import torch
from class_sums import ClassSums

from fsdil_bench import MethodInfo, hookimpl


class KeepsImages(ClassSums):
    def __init__(self, context):
        super().__init__(context)
        self.buffer = torch.zeros(0, dtype=torch.uint8, device=context.device)

    def learn(self, domain):
        super().learn(domain)
        if domain.index == 0:
            images, labels = domain.images(), domain.labels
            first = [int((labels == c).nonzero()[0]) for c in range(len(self.sums))]
            low, high = images.min(), images.max()
            self.buffer = ((images[first] - low) / (high - low) * 255).round().to(torch.uint8)

    def state_dict(self):
        return super().state_dict() | {"buffer": self.buffer}

    def load_state_dict(self, state):
        super().load_state_dict(state)
        self.buffer = state["buffer"]


@hookimpl
def fsdil_methods():
    return [MethodInfo("keeps-images", "stores images as if they were statistics", KeepsImages)]
