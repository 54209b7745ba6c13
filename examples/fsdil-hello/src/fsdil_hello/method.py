"""Class means that rely on the text where images are few.

With the n unit features z of class c in domain t, its text embedding w_c, and n(.) scaling to unit
length

    v_tc = ( sum z + k w_c ) / ( n + k ),    p_c = n( sum_t v_tc ),    prediction = argmax_c z . p_c

so a domain's vote v is the mean of its images as if k of them looked like the text.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F

from fsdil_bench import Batch, Context, Method, State, TrainDomain, option


@dataclass(frozen=True)
class Config:
    """Options of hello."""

    prior: float = option(4.0, "number of images that the text counts like", minimum=0)


class Hello(Method):
    """The class with the most similar prototype."""

    Config = Config
    inputs = frozenset({"features"})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        names = [f"a photo of a {name}." for name in context.class_names]
        self.text = context.backbone.encode_text(names)
        self.votes = torch.zeros_like(self.text)

    def learn(self, domain: TrainDomain) -> None:
        """Add the domain's votes."""
        members = F.one_hot(domain.labels, len(self.text)).float()
        prior = self.context.config.prior
        counts = members.sum(0)[:, None] + prior
        self.votes = self.votes + (members.T @ domain.features() + prior * self.text) / counts

    def predict(self, batch: Batch) -> torch.Tensor:
        """The class whose prototype is nearest."""
        return (batch.features @ F.normalize(self.votes, dim=-1).T).argmax(1)

    def state_dict(self) -> State:
        """The votes so far."""
        return {"votes": self.votes}

    def load_state_dict(self, state: State) -> None:
        """Load the votes."""
        self.votes = state["votes"]
