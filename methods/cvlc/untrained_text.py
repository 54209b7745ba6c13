"""CVLC's text prototypes alone: templates and weighted synonyms, nothing is trained.

The text side of CVLC's classifier (`text_prototypes.py`) on embeddings of the frozen towers, as a
method of its own, so that a board shows what it adds to zero-shot CLIP:

    prediction = argmax_k z . mu_k

Different from CVLC: there is no calibration, so that mu_k is made of plain unit embeddings, and no
domain changes anything. With one template and no synonyms it is `zero-shot`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch

from fsdil_bench import Batch, Context, Method, State, TrainDomain

from .config import TEXTS
from .frozen_texts import TextConfig, text_prototypes_of


class TextPrototypes(Method):
    """The nearest text prototype."""

    Config = TextConfig
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = TEXTS
    inputs = frozenset({"features"})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.text = text_prototypes_of(context)

    def learn(self, domain: TrainDomain) -> None:
        """Nothing to learn."""

    def predict(self, batch: Batch) -> torch.Tensor:
        """The class with the most similar prototype."""
        return (batch.features @ self.text.T).argmax(1)

    def state_dict(self) -> State:
        """Nothing to remember."""
        return {}

    def load_state_dict(self, state: State) -> None:
        """Nothing to restore."""
