"""Strategies of Avalanche (Lomonaco et al., 2021; extra `avalanche`) as methods.

The implementations are Avalanche's own; model and training are described in
`fsdil_bench.avalanche.methods`. Penalties with the weights theta, those after the previous domain
theta', logits l and l':

    naive    none
    ewc      lam sum_i F_i (theta_i - theta'_i)^2, where F adds up, domain by domain, the mean
             squared gradients of batches (the online form: one F for any number of domains)
    lwf      alpha KL( softmax(l' / T) || softmax(l / T) ) on the images of the new domain
    replay   none, but every batch is joined by one of as many old images

Different from the originals: nothing but what Avalanche itself changes. `replay` keeps images of
all domains, in equal parts, so it does not compete with methods that keep none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fsdil_bench import AvalancheConfig, avalanche_method, option

from .embedded import LIMITS, on_embedded_worlds


@dataclass(frozen=True)
class EWCConfig(AvalancheConfig):
    """Options of avalanche-ewc."""

    ewc_lambda: float = option(1000.0, "weight of the penalty", minimum=0)
    decay: float = option(1.0, "factor on the importances of earlier domains", minimum=0, maximum=1)


@dataclass(frozen=True)
class LwFConfig(AvalancheConfig):
    """Options of avalanche-lwf."""

    alpha: float = option(1.0, "weight of the distillation", minimum=0)
    temperature: float = option(2.0, "temperature of the distillation", minimum=0.01)


@dataclass(frozen=True)
class ReplayConfig(AvalancheConfig):
    """Options of avalanche-replay."""

    kept_images: int = option(200, "images kept of all domains together", minimum=1)


def naive(config: AvalancheConfig, **parts: Any) -> Any:
    """Fine-tuning on one domain after another."""
    from avalanche.training.supervised import Naive

    del config
    return Naive(**parts)


def ewc(config: EWCConfig, **parts: Any) -> Any:
    """Elastic weight consolidation, Kirkpatrick et al., 2017."""
    from avalanche.training.supervised import EWC

    return EWC(ewc_lambda=config.ewc_lambda, mode="online", decay_factor=config.decay, **parts)


def lwf(config: LwFConfig, **parts: Any) -> Any:
    """Learning without forgetting, Li and Hoiem, 2016."""
    from avalanche.training.supervised import LwF

    return LwF(alpha=config.alpha, temperature=config.temperature, **parts)


def replay(config: ReplayConfig, **parts: Any) -> Any:
    """Experience replay, Chaudhry et al., 2019."""
    from avalanche.training.supervised import Replay

    return Replay(mem_size=config.kept_images, **parts)


PRESETS = on_embedded_worlds(*LIMITS)
NaiveMethod = avalanche_method(naive, presets=PRESETS)
EWCMethod = avalanche_method(ewc, config=EWCConfig, presets=PRESETS)
LwFMethod = avalanche_method(lwf, config=LwFConfig, presets=PRESETS)
ReplayMethod = avalanche_method(replay, config=ReplayConfig, presets=PRESETS)
