"""Zero-shot CLIP: no training at all, the line every other method has to beat.

Paper: Radford et al., Learning Transferable Visual Models From Natural Language Supervision, 2021.
With the unit image embedding z and, per class, the mean text embedding over templates

    w_c = n( mean over templates of n(text(template(c))) ),      prediction = argmax_c z . w_c

where n(.) scales to unit length. A[t, i] does not depend on t, so nothing is ever forgotten.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from fsdil_bench import Batch, Context, Method, State, TrainDomain

from ..text_classifier import class_embeddings, templates_option


@dataclass(frozen=True)
class Config:
    """Options of zero-shot."""

    templates: tuple[str, ...] = templates_option()


class ZeroShot(Method):
    """Nearest class name."""

    Config = Config
    inputs = frozenset({"features"})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.text = class_embeddings(context, context.config.templates)

    def learn(self, domain: TrainDomain) -> None:
        """Nothing to learn."""

    def predict(self, batch: Batch) -> torch.Tensor:
        """The class whose text is most similar."""
        return (batch.features @ self.text.T).argmax(1)

    def state_dict(self) -> State:
        """Nothing to remember."""
        return {}

    def load_state_dict(self, state: State) -> None:
        """Nothing to restore."""
