"""CoOp: learned context in front of the class names, image and text tower frozen.

Paper: Zhou et al., Learning to Prompt for Vision-Language Models, 2022: the version with one
context for all classes, and the class name at the end. With the frozen embedding z of an image, the
text classifier w_c under the context v (see `text_prompts.py`) and CLIP's scale s,

    v = argmin cross-entropy( s z w_c(v), y ),      prediction = argmax_c z . w_c

Two ways to learn a stream of domains:

    coop            one context, trained on one domain after another
    coop-domains    a context for every domain, and the router of S-Prompts (`kmeans_router.py`)

Different from the original, which has only one data set: the stream, a number of steps instead of
the 50 to 200 epochs for few shots, and a warm-up that is never longer than a tenth of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F

from fsdil_bench import Batch, Context, Method, State, TrainBatch, TrainDomain, option

from ..embedded import LIMITS, on_embedded_worlds
from .domain_prompts import DomainPromptConfig, DomainPrompts
from .prompt_training import PromptConfig, Prompts, train_prompts
from .text_prompts import PromptedNames, context_of_words, random_context

PRESETS: dict[str, dict[str, Any]] = {
    "cddb-hard": {"base_epochs": 10},
    "core50": {"base_epochs": 10},
    "domainnet": {"base_epochs": 2},
    **on_embedded_worlds(*LIMITS),
}


@dataclass(frozen=True)
class TrainingConfig(PromptConfig):
    """How CoOp trains."""

    lr: float = option(0.002, "learning rate of SGD at the start", minimum=0)
    weight_decay: float = option(5e-4, "weight decay of SGD", minimum=0)
    batch_size: int = option(32, "images per step", minimum=1)
    base_epochs: int = option(5, "passes over the base domain", minimum=0)


@dataclass(frozen=True)
class Config(TrainingConfig):
    """Options of coop."""

    context_length: int = option(16, "context vectors in front of a class name", minimum=1)
    context_words: str = option(
        "", "words to start from, one vector per token; without them, from noise"
    )


class CoOp(Method):
    """One context for all domains."""

    Config = Config
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = PRESETS
    inputs = frozenset({"features"})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        config, noise = context.config, context.generator("context")
        self.vectors = (
            context_of_words(context, config.context_words)
            if config.context_words
            else random_context(context, config.context_length, noise)
        )
        self.names = PromptedNames(context, len(self.vectors))
        self._classifier: torch.Tensor | None = None  # follows from the vectors

    def learn(self, domain: TrainDomain) -> None:
        """Continue training the context."""
        start, config = {"context": self.vectors}, self.context.config
        trained = train_prompts(start, domain, config, self._loss, warm_up=True)
        self.vectors, self._classifier = trained["context"], None

    def predict(self, batch: Batch) -> torch.Tensor:
        """The class whose text is most similar."""
        return (batch.features @ self.classifier().T).argmax(1)

    @torch.no_grad()
    def classifier(self) -> torch.Tensor:
        """The text classifier under the context, (C, d)."""
        if self._classifier is None:
            self._classifier = self.names.classifier(self.vectors)
        return self._classifier

    def state_dict(self) -> State:
        """The context vectors."""
        return {"context": self.vectors}

    def load_state_dict(self, state: State) -> None:
        """Load the vectors."""
        self.vectors, self._classifier = state["context"], None

    def trained_parameters(self) -> int:
        """All numbers of the context."""
        return self.vectors.numel()

    def _loss(self, prompts: Prompts, batch: TrainBatch) -> torch.Tensor:
        backbone = self.context.backbone
        z = backbone.encode_image(batch.images)
        checkpoint = backbone.checkpoint(text_tokens=self.names.tokens)
        classifier = self.names.classifier(prompts["context"], checkpoint=checkpoint)
        return F.cross_entropy(backbone.logit_scale * z @ classifier.T, batch.labels)


@dataclass(frozen=True)
class DomainConfig(TrainingConfig, DomainPromptConfig):
    """Options of coop-domains."""


class CoOpDomains(DomainPrompts):
    """A context for every domain, and a router."""

    Config = DomainConfig
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = PRESETS
    inputs = frozenset({"features"})
    warm_up = True

    def new_image_prompts(self, t: int) -> Prompts:
        """None."""
        del t
        return {}

    def image_adapters(self, prompts: Prompts) -> None:
        """None: the image tower stays as it is."""
        del prompts
