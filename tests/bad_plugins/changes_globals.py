"""Sets torch's default dtype, an environment variable and a class attribute, and leaves them so."""

from __future__ import annotations

import os

import torch

from fsdil_bench import Method, MethodInfo, hookimpl


class ChangesGlobals(Method):
    inputs = frozenset({"features"})
    domains = 0

    def __init__(self, context):
        super().__init__(context)
        self.sums = torch.zeros(
            len(context.class_names), context.backbone.embed_dim, device=context.device
        )

    def learn(self, domain):
        self.sums.index_add_(0, domain.labels, domain.features())
        torch.set_default_dtype(torch.float64)
        os.environ["CHANGES_GLOBALS"] = "yes"
        type(self).domains = domain.index + 1

    def predict(self, batch):
        return (batch.features @ self.sums.T).argmax(1)

    def state_dict(self):
        return {"sums": self.sums}

    def load_state_dict(self, state):
        self.sums = state["sums"]


@hookimpl
def fsdil_methods():
    return [MethodInfo("changes-globals", "leaves traces in the process", ChangesGlobals)]
