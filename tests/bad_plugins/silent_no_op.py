"""Goes over all images with an optimizer whose parameters nobody uses."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from fsdil_bench import Method, MethodInfo, hookimpl


class SilentNoOp(Method):
    inputs = frozenset({"features"})

    def __init__(self, context):
        super().__init__(context)
        size = len(context.class_names), context.backbone.embed_dim
        self.weight = torch.randn(size, generator=context.generator("weight")).to(context.device)

    def learn(self, domain):
        weight = self.weight.clone().requires_grad_()
        optimizer = torch.optim.SGD([weight], lr=1.0)
        for _ in range(3):
            optimizer.zero_grad()
            F.cross_entropy(domain.features() @ weight.T, domain.labels).backward()
            optimizer.step()

    def predict(self, batch):
        return (batch.features @ self.weight.T).argmax(1)

    def state_dict(self):
        return {"weight": self.weight}

    def load_state_dict(self, state):
        self.weight = state["weight"]

    def trained_parameters(self):
        return self.weight.numel()


@hookimpl
def fsdil_methods():
    return [MethodInfo("silent-no-op", "trains a copy and forgets it", SilentNoOp)]
