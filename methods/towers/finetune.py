"""Sequential fine-tuning: the image tower is trained on one domain after another.

The forgetting floor of continual learning: nothing protects what was learned before. With
`domains=base` (the method `base-only`) it stops after the base domain; the difference to that row
is what the few shots taught. `tower_training.py` describes how the tower is trained.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fsdil_bench import TrainDomain, option

from .tower_training import TowerConfig, TowerMethod


@dataclass(frozen=True)
class Config(TowerConfig):
    """Options of finetune."""

    domains: Literal["all", "base"] = option("all", "learn all domains, or the base domain only")


class FineTune(TowerMethod):
    """One tower, trained on one domain after another."""

    Config = Config

    def learn(self, domain: TrainDomain) -> None:
        """Continue training on the domain."""
        config = self.context.config
        if domain.index == 0:
            self.train([domain], config.base_steps(len(domain)))
        elif config.domains == "all":
            self.train([domain], config.steps)
