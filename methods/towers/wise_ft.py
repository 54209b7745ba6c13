"""WiSE-FT: the fine-tuned weights, averaged with those they came from.

Paper: Wortsman et al., Robust fine-tuning of zero-shot models, 2022. With the weights theta_0 of
CLIP and theta of the fine-tuned tower (and head, if it is trained),

    zero-shot    theta goes through the stream like that of `finetune`; images are classified with
                     (1 - a) theta_0 + a theta
    streaming    after domain t the weights themselves become
                     theta_t = (1 - a) theta_{t-1} + a theta,
                 where theta was fine-tuned from theta_{t-1}: no domain moves them all the way

a = 0 is zero-shot CLIP, a = 1 is `finetune`. How the tower is trained is described in
`penalised_training.py`; there is no penalty here.

Different from the original, which has only one data set: the stream. `streaming` is no part of
the paper. a is fixed beforehand; the paper shows a sweep over it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch

from fsdil_bench import Batch, Context, State, TrainDomain, option

from .penalised_training import PenalisedConfig, PenalisedMethod


@dataclass(frozen=True)
class Config(PenalisedConfig):
    """Options of wise-ft."""

    mode: Literal["zero-shot", "streaming"] = option(
        "zero-shot", "average with CLIP's weights, or with the weights before each domain"
    )
    alpha: float = option(0.5, "share of the fine-tuned weights", minimum=0, maximum=1)


class WiseFT(PenalisedMethod):
    """A tower whose weights are averages."""

    Config = Config

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._average: tuple[torch.nn.Module, torch.Tensor] | None = None  # follows from the state

    def learn(self, domain: TrainDomain) -> None:
        """Fine-tune; in mode `streaming`, go back part of the way."""
        before = {name: weight.detach().clone() for name, weight in self.weights().items()}
        self.train_on(domain)
        if self.context.config.mode == "streaming":
            average(self.weights(), before, self.context.config.alpha)
        self._average = None

    def predict(self, batch: Batch) -> torch.Tensor:
        """The class whose row of the averaged head is most similar."""
        return (self.embed(batch) @ self._averaged()[1].T).argmax(1)

    def embed(self, batch: Batch) -> torch.Tensor:
        """Unit embeddings of the averaged tower."""
        return self.context.backbone.embed_with(self._averaged()[0], batch.images)

    def load_state_dict(self, state: State) -> None:
        """Load the weights."""
        super().load_state_dict(state)
        self._average = None

    def _averaged(self) -> tuple[torch.nn.Module, torch.Tensor]:
        """Tower and head to predict with."""
        if self.context.config.mode == "streaming":
            return self.tower, self.head.detach()
        if self._average is None:
            # From CLIP's side, so that buffers are CLIP's: only weights are averaged.
            tower, share = self.context.backbone.visual_copy(), self.context.config.alpha
            average(dict(tower.named_parameters()), dict(self.tower.named_parameters()), 1 - share)
            self._average = tower, torch.lerp(self.text, self.head.detach(), share)
        return self._average


@torch.no_grad()
def average(
    weights: dict[str, torch.Tensor], others: dict[str, torch.Tensor], share: float
) -> None:
    """Replace `weights` by (1 - share) others + share weights, in place."""
    for name, weight in weights.items():
        weight.copy_(torch.lerp(others[name], weight, share))
