"""Says that it trains weights of the features, and its steps have no length."""

from __future__ import annotations

import torch
from class_sums import ClassSums

from fsdil_bench import MethodInfo, hookimpl


class IdleTraining(ClassSums):
    def __init__(self, context):
        super().__init__(context)
        self.weights = torch.ones(context.backbone.embed_dim, device=context.device)

    def learn(self, domain):
        super().learn(domain)
        weights = torch.nn.Parameter(self.weights.clone())
        optimizer = torch.optim.SGD([weights], lr=0.0)
        logits = (domain.features() * weights) @ self.sums.T
        torch.nn.functional.cross_entropy(logits, domain.labels).backward()
        optimizer.step()
        self.weights = weights.detach()

    def trained_parameters(self):
        return self.weights.numel()


@hookimpl
def fsdil_methods():
    return [MethodInfo("idle-training", "trains in vain", IdleTraining)]
