"""Keeps training features in a list of its class, outside of the state that is looked at."""

from __future__ import annotations

import torch

from fsdil_bench import Method, MethodInfo, hookimpl


class ClassAttribute(Method):
    inputs = frozenset({"features"})
    seen: list = []  # noqa: RUF012 - that it is shared is the point

    def __init__(self, context):
        super().__init__(context)
        self.sums = torch.zeros(
            len(context.class_names), context.backbone.embed_dim, device=context.device
        )

    def learn(self, domain):
        features = domain.features()
        self.seen.append(features.half().numpy())
        self.sums.index_add_(0, domain.labels, features)

    def predict(self, batch):
        return (batch.features @ self.sums.T).argmax(1)

    def state_dict(self):
        return {"sums": self.sums}

    def load_state_dict(self, state):
        self.sums = state["sums"]


@hookimpl
def fsdil_methods():
    return [MethodInfo("class-attribute", "hides features in its class", ClassAttribute)]
