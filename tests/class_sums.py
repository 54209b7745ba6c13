"""The plain method that the bad plugins spoil: the sum of the features of each class."""

from __future__ import annotations

import torch

from fsdil_bench import Method


class ClassSums(Method):
    """The class whose sum is most similar."""

    inputs = frozenset({"features"})

    def __init__(self, context):
        super().__init__(context)
        size = (len(context.class_names), context.backbone.embed_dim)
        self.sums = torch.zeros(size, device=context.device)

    def learn(self, domain):
        self.sums.index_add_(0, domain.labels, domain.features())

    def predict(self, batch):
        return (batch.features @ self.sums.T).argmax(1)

    def state_dict(self):
        return {"sums": self.sums}

    def load_state_dict(self, state):
        self.sums = state["sums"]
