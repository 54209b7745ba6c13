"""my-method: say here what it does, after which paper and which equation.

    fsdil-bench run --plugin my_method.py --method my-method --scenario drawn-1shot
    fsdil-bench check my-method --plugin my_method.py
    fsdil-bench list methods my-method --plugin my_method.py

As it stands: one prototype per class, the direction of the mean of its frozen features, and every
domain weighs the same. Replace it by something better.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from fsdil_bench import Batch, Context, Method, MethodInfo, State, TrainDomain, hookimpl, option


@dataclass(frozen=True)
class Config:
    """What users may set with `--set old=0.9`; types and ranges are checked."""

    old: float = option(1.0, "factor on what earlier domains taught", minimum=0, maximum=1)


class MyMethod(Method):
    """The class with the most similar prototype."""

    Config = Config
    # What a test batch must hold: "features" (frozen, from the cache), "images", or both.
    inputs = frozenset({"features"})

    def __init__(self, context: Context) -> None:
        super().__init__(context)  # context: config, backbone, class_names, synonyms, seed, device
        shape = (len(context.class_names), context.backbone.embed_dim)
        self.prototypes = torch.zeros(shape, device=context.device)

    def learn(self, domain: TrainDomain) -> None:
        """Learn a domain. Its images can be read now, through `domain.features()`,
        `domain.images()` or `domain.batches(64, steps=100)`, and never again."""
        members = F.one_hot(domain.labels, len(self.prototypes)).float()
        means = F.normalize(members.T @ domain.features(), dim=-1)
        self.prototypes = self.context.config.old * self.prototypes + means

    def predict(self, batch: Batch) -> torch.Tensor:
        """One class id for every test image; they come mixed from all domains seen so far."""
        return (batch.features @ F.normalize(self.prototypes, dim=-1).T).argmax(1)

    def state_dict(self) -> State:
        """All that is remembered between domains: a run that was killed resumes from it."""
        return {"prototypes": self.prototypes}

    def load_state_dict(self, state: State) -> None:
        """Become the method that gave `state`."""
        self.prototypes = state["prototypes"]


@hookimpl
def fsdil_methods() -> list[MethodInfo]:
    """Offer the method."""
    return [
        MethodInfo(
            "my-method",
            "one line for `fsdil-bench list methods`",
            MyMethod,
        )
    ]
