"""What methods with separate prompts for every domain have in common.

Domain t has prompts in the text tower, most often context vectors in front of the class names, and
in some methods prompts in the image tower. With the embedding z_t(x) under its image prompts and
its text classifier w_tc,

    loss_t = cross-entropy( s z_t(x) w_tc, y ),      prediction = argmax_c z_t(x) . w_tc

where t is the domain of an image in training, and the one that the router finds in a test. The
towers and CLIP's scale s are frozen, and nothing of a domain changes after its training: only the
router can forget. There are two routers:

    kmeans     the nearest of a few centres (`kmeans_router.py`), as in S-Prompts
    selector   a trained classifier of domains (`domain_selector.py`), as in SOYO
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal

import torch
import torch.nn.functional as F

from fsdil_bench import (
    Batch,
    Context,
    RouterMethod,
    State,
    TrainBatch,
    TrainDomain,
    option,
)
from fsdil_bench.adapters import BlockAdapter, encode_image

from ..domain_selector import DomainSelector
from .kmeans_router import kmeans, route
from .prompt_training import PromptConfig, Prompts, train_prompts
from .text_prompts import PromptedNames, random_context

CENTRES = "centres"
SELECTOR = "selector."


@dataclass(frozen=True)
class RoutedPromptConfig(PromptConfig):
    """Options of all these methods."""

    start_from: Literal["fresh", "base", "previous"] = option(
        "fresh", "a later domain starts from fresh prompts, or from those of an earlier domain"
    )
    router: Literal["kmeans", "selector"] = option(
        "kmeans", "domains are recognised by K-means centres, or by a trained classifier"
    )
    centres: int = option(
        5, "K-means centres of a domain; never more than it has images", minimum=1
    )
    distance: Literal["l1", "l2"] = option("l1", "distance to the centres that decides the domain")


@dataclass(frozen=True)
class DomainPromptConfig(RoutedPromptConfig):
    """Options of those with context vectors."""

    context_length: int = option(16, "context vectors in front of a class name", minimum=1)


class RoutedPrompts(RouterMethod):
    """Prompts for every domain, and centres that identify the domain."""

    Config: ClassVar[type] = RoutedPromptConfig
    inputs = frozenset({"images", "features"})
    #: Whether the learning rate is held low at first.
    warm_up: ClassVar[bool] = False

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.visual: Any = context.backbone.model.visual
        self.domains: list[Prompts] = []  # with the centres among them
        self.selector: DomainSelector | None = None
        if context.config.router == "selector":
            self.selector = DomainSelector(context.backbone.embed_dim, context.device)
        self._classifiers: dict[int, torch.Tensor] = {}  # follow from the prompts

    @abstractmethod
    def new_prompts(self, t: int) -> Prompts:
        """All prompts that a fresh domain begins with."""

    @abstractmethod
    def image_adapters(self, prompts: Prompts) -> Sequence[BlockAdapter] | None:
        """What they add to the image tower; None if it stays as it is."""

    @abstractmethod
    def text_classifier(self, prompts: Prompts, *, checkpoint: bool = False) -> torch.Tensor:
        """Unit vectors (C, d) of the classes under these prompts."""

    @property
    @abstractmethod
    def text_tokens(self) -> int:
        """How many tokens `text_classifier` sends through the text tower."""

    def learn(self, domain: TrainDomain) -> None:
        """Train the domain's prompts, then place its centres or train the selector."""
        config, t = self.context.config, domain.index
        trained = train_prompts(self._start(t), domain, config, self.loss, warm_up=self.warm_up)
        if self.selector is not None:
            generator = self.context.generator("selector", t)
            self.selector.add_domain(domain.features(), generator)
        else:
            generator = self.context.generator("centres", t)
            trained[CENTRES] = kmeans(domain.features(), config.centres, generator)
        self.domains.append(trained)
        self._classifiers.clear()

    def loss(self, prompts: Prompts, batch: TrainBatch) -> torch.Tensor:
        """Cross-entropy of the domain's text classifier."""
        backbone, adapters = self.context.backbone, self.image_adapters(prompts)
        images = 0 if adapters is None else len(batch.images)
        checkpoint = backbone.checkpoint(images=images, text_tokens=self.text_tokens)
        if adapters is None:
            z = backbone.encode_image(batch.images)
        else:
            with backbone.autocast():
                raw = encode_image(
                    self.visual, batch.images, adapters, checkpoint=checkpoint, lean=True
                )
            z = F.normalize(raw.float(), dim=-1)
        classifier = self.text_classifier(prompts, checkpoint=checkpoint)
        loss = F.cross_entropy(backbone.logit_scale * z @ classifier.T, batch.labels)
        penalty = self.penalty(prompts, classifier)
        return loss if penalty is None else loss + penalty

    def penalty(self, prompts: Prompts, classifier: torch.Tensor) -> torch.Tensor | None:
        """What a method adds to the cross-entropy of a step; None if nothing."""
        del prompts, classifier
        return None

    def predict_domain(self, batch: Batch) -> torch.Tensor:
        """The domain with the nearest centre, or the one that the selector chooses."""
        if self.selector is not None:
            return self.selector.route(batch.features)
        centres = [prompts[CENTRES] for prompts in self.domains]
        return route(batch.features, centres, self.context.config.distance)

    @torch.no_grad()
    def predict_in_domain(self, batch: Batch, domains: torch.Tensor) -> torch.Tensor:
        """Classes, domain by domain."""
        classes = torch.zeros_like(domains)
        for t in domains.unique().tolist():
            rows = domains == t
            classes[rows] = self.similarity(batch.select(rows), t).argmax(1)
        return classes

    def similarity(self, batch: Batch, t: int) -> torch.Tensor:
        """How similar images are to the classes under the prompts of domain t, (n, C)."""
        return self._embed(batch, t) @ self._classifier(t).T

    def embed(self, batch: Batch) -> torch.Tensor:
        """Unit embeddings under the prompts of the predicted domains."""
        domains = self.predict_domain(batch)
        embeddings = torch.zeros_like(batch.features)
        for t in domains.unique().tolist():
            embeddings[domains == t] = self._embed(batch.select(domains == t), t)
        return embeddings

    def prompts(self, t: int) -> Prompts:
        """What domain t is classified with."""
        return self.domains[t]

    def state_dict(self) -> State:
        """Prompts and centres of every domain, or prompts and the selector."""
        selector = self.selector.state_dict() if self.selector is not None else {}
        return {
            f"{t}.{name}": value
            for t, prompts in enumerate(self.domains)
            for name, value in prompts.items()
        } | {SELECTOR + name: value for name, value in selector.items()}

    def load_state_dict(self, state: State) -> None:
        """Load them."""
        if self.selector is not None:
            own = {k.removeprefix(SELECTOR): v for k, v in state.items() if k.startswith(SELECTOR)}
            self.selector.load_state_dict(own)
            state = {k: v for k, v in state.items() if not k.startswith(SELECTOR)}
        named = {(int(t), rest): v for k, v in state.items() for t, _, rest in [k.partition(".")]}
        count = 1 + max((t for t, _ in named), default=-1)
        self.domains = [{n: v for (u, n), v in named.items() if u == t} for t in range(count)]
        self._classifiers.clear()

    def trained_parameters(self) -> int:
        """The prompts of the last domain, and the selector: all that was trained in it."""
        last = self.domains[-1] if self.domains else {}
        selector = self.selector.trained_parameters() if self.selector is not None else 0
        return selector + sum(value.numel() for name, value in last.items() if name != CENTRES)

    def _start(self, t: int) -> Prompts:
        config = self.context.config
        if t and config.start_from != "fresh":
            source = self.domains[0 if config.start_from == "base" else t - 1]
            return {name: value for name, value in source.items() if name != CENTRES}
        return self.new_prompts(t)

    def _classifier(self, t: int) -> torch.Tensor:
        """The text classifier of domain t: encoded once, not for every batch."""
        if t not in self._classifiers:
            with torch.no_grad():
                self._classifiers[t] = self.text_classifier(self.prompts(t))
        return self._classifiers[t]

    def _embed(self, batch: Batch, t: int) -> torch.Tensor:
        adapters = self.image_adapters(self.prompts(t))
        if adapters is None:
            return batch.features
        tower = partial(encode_image, self.visual, adapters=adapters, lean=True)
        return self.context.backbone.embed_with(tower, batch.images)


class DomainPrompts(RoutedPrompts):
    """Those with context vectors in front of the class names."""

    Config: ClassVar[type] = DomainPromptConfig

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.names = PromptedNames(context, context.config.context_length)

    @abstractmethod
    def new_image_prompts(self, t: int) -> Prompts:
        """Prompts of the image tower that a fresh domain begins with."""

    def new_prompts(self, t: int) -> Prompts:
        """Context vectors and image prompts."""
        length, generator = self.context.config.context_length, self.context.generator("context", t)
        context = random_context(self.context, length, generator)
        return {"context": context, **self.new_image_prompts(t)}

    @property
    def text_tokens(self) -> int:
        """Those of all class names."""
        return self.names.tokens

    def text_classifier(self, prompts: Prompts, *, checkpoint: bool = False) -> torch.Tensor:
        """The class names after the context vectors."""
        return self.names.classifier(prompts["context"], checkpoint=checkpoint)


def uniform_tokens(count: int, width: int, generator: torch.Generator) -> torch.Tensor:
    """Tokens (P, w) that start like the weights of a linear layer: U(-b, b), b = 1 / sqrt(w)."""
    bound = width**-0.5
    return torch.empty(count, width).uniform_(-bound, bound, generator=generator)
