"""Avalanche strategies as methods (extra `avalanche`).

    def mas(config, **parts):
        from avalanche.training.supervised import MAS
        return MAS(lambda_reg=1.0, alpha=0.5, **parts)

    AvalancheMAS = avalanche_method(mas)        # the factory of a MethodInfo

A strategy lives for one domain. It is built again, told what its plugins knew (`memory`),
trained on a benchmark that holds this domain alone, and asked what its plugins know now. So it
cannot reach another domain, and a run that was interrupted is the same as one that was not. What a
strategy remembers must be in its plugins; one that remembers images needs `exemplar_free=False` in
its `MethodInfo`. Testing is the harness's.

The model is a trained copy f of the image tower under a linear head W: logits = s W n(f(x)), with
the scale s of the backbone. W starts with the text embeddings of the classes, or for a backbone
without text with the class means of the base domain. Optimizer: AdamW, fresh for every domain.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, ClassVar

import torch
import torch.nn.functional as F

from fsdil_bench.errors import PluginError
from fsdil_bench.plugins.method import Context, Method, State
from fsdil_bench.plugins.options import option
from fsdil_bench.runs.views import Batch, TrainDomain
from fsdil_bench.seeds import seed_everything

from .bridge import require_avalanche, task_aware
from .memory import PLACES, recall, remember

_DOMAIN = 1 << 32  # an image's place is its domain times this plus its position in the domain


@dataclass(frozen=True)
class AvalancheConfig:
    # Most are also in `fsdil_methods.towers.tower_training`: the harness does not import methods,
    # and a method's run id depends on its own source, so each has its own.
    """Options of every Avalanche strategy; the defaults are for ViT-B/16."""

    lr: float = option(1e-5, "learning rate of AdamW", minimum=0)
    weight_decay: float = option(0.1, "weight decay of AdamW", minimum=0)
    batch_size: int = option(64, "images per step", minimum=1)
    base_epochs: int = option(1, "passes over the base domain", minimum=0)
    steps: int = option(100, "gradient steps for a few-shot domain", minimum=0)
    augment: bool = option(True, "train on augmented views")
    template: str = option("a photo of a {}.", "the sentence that class names are put into")


def avalanche_method(
    make_strategy: Callable[..., Any],
    *,
    config: type[AvalancheConfig] = AvalancheConfig,
    presets: Mapping[str, Mapping[str, Any]] | None = None,
) -> type[Method]:
    """The method that trains by a strategy: `make_strategy(config, **parts)` builds it.

    `parts` are model, optimizer, criterion, batch size, device and so on, as every Avalanche
    strategy takes them. They hold `evaluator` and `plugins`, a list. A strategy may add its own to
    the list or bring another one: `MAS(plugins=[MyPlugin()], **parts)`. `presets` are values of the
    config per data set.
    """
    small = {"drawn": {"lr": 1e-4, "steps": 20}}
    body = {
        "__doc__": make_strategy.__doc__,
        "__module__": make_strategy.__module__,  # whose source the run's id depends on
        "Config": config,
        "presets": small if presets is None else presets,
        "make_strategy": staticmethod(make_strategy),
    }
    return type(make_strategy.__name__, (_AvalancheMethod,), body)


class _AvalancheMethod(Method):
    """A model, and what the strategy's plugins know."""

    inputs = frozenset({"images"})
    libraries = frozenset({"avalanche"})
    make_strategy: ClassVar[Callable[..., Any]]

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        require_avalanche()
        self.model = _Classifier(context)
        self.memory: State = {}

    def learn(self, domain: TrainDomain) -> None:
        """Train by the strategy on the domain."""
        from avalanche.benchmarks import benchmark_from_datasets

        config = self.context.config
        if domain.index == 0 and not self.context.backbone.has_text:
            self.model.start_from(domain.features(), domain.labels)
        base_steps = config.base_epochs * -(-len(domain) // config.batch_size)
        steps = config.steps if domain.index else base_steps
        seed_everything(self.context.seed, "avalanche", domain.index)
        with domain.training(steps) as advance:
            budget = _StepBudget(steps, advance)
            strategy = self._strategy(budget)
            plugins = [p for p in strategy.plugins if p not in (budget, strategy.evaluator)]
            recall(plugins, self.memory, self.model, lambda places: self._images(domain, places))
            experience = benchmark_from_datasets(train=[self._data(domain)]).train_stream[0]
            experience.current_experience = domain.index
            # The images are on the run's device when they come: there is nothing to pin.
            strategy.train(experience, eval_streams=[], pin_memory=False)
        self.memory = remember(plugins)

    def _strategy(self, budget: _StepBudget) -> Any:
        from avalanche.training.plugins import EvaluationPlugin

        config = self.context.config
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that nothing is logged
            evaluator = EvaluationPlugin()
        strategy = _built(
            self.make_strategy,
            config,
            model=self.model,
            optimizer=torch.optim.AdamW(
                self.model.parameters(), lr=config.lr, weight_decay=config.weight_decay
            ),
            criterion=torch.nn.CrossEntropyLoss(),
            train_mb_size=config.batch_size,
            train_epochs=budget.steps,  # more than enough: the budget ends the training
            device=self.context.device,
            plugins=[budget],
            evaluator=evaluator,
        )
        if budget not in strategy.plugins:  # the strategy has brought a list of its own
            strategy.plugins.insert(0, budget)
        return strategy

    def _data(self, domain: TrainDomain) -> Any:
        """The domain as an Avalanche data set whose images know their places."""
        places = [domain.index * _DOMAIN + position for position in range(len(domain))]
        images = _Images(domain, augment=self.context.config.augment)
        return task_aware(images).update_data_attribute(PLACES, places)

    def _images(self, domain: TrainDomain, places: Sequence[int]) -> Any:
        """Images of earlier domains, which only a method may have that declares it."""
        from avalanche.benchmarks.utils.utils import concat_datasets

        offsets = [0, *accumulate(len(earlier) for earlier in domain.earlier)]
        indices = [offsets[place // _DOMAIN] + place % _DOMAIN for place in places]
        return concat_datasets([self._data(earlier) for earlier in domain.earlier]).subset(indices)

    def predict(self, batch: Batch) -> torch.Tensor:
        """The class of the largest logit."""
        return self.model.head(self.embed(batch)).argmax(1)

    def embed(self, batch: Batch) -> torch.Tensor:
        """The tower's unit embeddings."""
        return self.context.backbone.embed_with(self.model.tower, batch.images)

    def state_dict(self) -> State:
        """The weights, and what the plugins know."""
        weights = {f"model.{name}": value for name, value in self.model.state_dict().items()}
        return weights | {f"memory.{name}": value for name, value in self.memory.items()}

    def load_state_dict(self, state: State) -> None:
        """Take over both."""
        self.model.load_state_dict(_part(state, "model."))
        self.memory = _part(state, "memory.")

    def trained_parameters(self) -> int:
        """All weights of tower and head."""
        return sum(weight.numel() for weight in self.model.parameters())


def _built(make_strategy: Callable[..., Any], config: Any, **parts: Any) -> Any:
    """The strategy; one that brings its own plugins gets none. That another part was given twice
    is said with what to do."""
    try:
        return make_strategy(config, **parts)
    except TypeError as error:
        twice = [name for name in parts if f"multiple values for keyword argument '{name}'" in
                 str(error)]  # fmt: skip
        if not twice:
            raise
        if twice == ["plugins"]:
            del parts["plugins"]
            return _built(make_strategy, config, **parts)
        raise PluginError(
            f"the strategy is given '{twice[0]}' twice: `parts` holds it already",
            "Leave model, optimizer and evaluator as they are; plugins you may bring yourself.",
        ) from error


class _Classifier(torch.nn.Module):
    """The image tower under a linear head on unit embeddings."""

    def __init__(self, context: Context) -> None:
        super().__init__()
        backbone, names = context.backbone, context.class_names
        self.tower = backbone.visual_copy()
        self.head = torch.nn.Linear(
            backbone.embed_dim, len(names), bias=False, device=backbone.device
        )
        self.scale = backbone.logit_scale
        self.device_type, self.bf16 = backbone.device.type, backbone.precision == "bf16"
        torch.nn.init.zeros_(self.head.weight)
        if backbone.has_text:
            texts = [context.config.template.replace("{}", name) for name in names]
            self.head.weight.data.copy_(backbone.encode_text(texts))

    @torch.no_grad()
    def start_from(self, features: torch.Tensor, labels: torch.Tensor) -> None:
        """Let the head begin with the class means of frozen features."""
        members = F.one_hot(labels, len(self.head.weight)).to(features.dtype)
        self.head.weight.copy_(F.normalize(members.T @ features, dim=-1))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Logits."""
        with torch.autocast(self.device_type, dtype=torch.bfloat16, enabled=self.bf16):
            raw = self.tower(images)
        logits: torch.Tensor = self.scale * self.head(F.normalize(raw.float(), dim=-1))
        return logits

    def train(self, mode: bool = True) -> _Classifier:
        """Stay in eval mode: statistics of normalisation layers must not follow K images."""
        del mode
        return super().train(False)


class _Images(torch.utils.data.Dataset[tuple[torch.Tensor, int]]):
    """The images of an open domain, made when asked for; every view of an image is another."""

    def __init__(self, domain: TrainDomain, *, augment: bool) -> None:
        self.domain = domain
        self.augment = augment
        self.targets = domain.labels.tolist()
        self._draws = 0

    def __len__(self) -> int:
        return len(self.targets)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        self._draws += 1
        batch = self.domain.take([index], draw=self._draws if self.augment else None)
        return batch.images[0], self.targets[index]


class _StepBudget:
    """An Avalanche plugin that ends the training of a domain after so many steps."""

    def __init__(self, steps: int, advance: Callable[[], None]) -> None:
        self.steps = steps
        self.advance = advance

    def after_training_iteration(self, strategy: Any, **_: Any) -> None:
        """Count a step; Avalanche's own clock, the last of the plugins, has not yet."""
        self.advance()
        if strategy.clock.train_exp_iterations + 1 >= self.steps:
            strategy.stop_training()


def _part(state: State, start: str) -> State:
    return {k.removeprefix(start): v for k, v in state.items() if k.startswith(start)}
