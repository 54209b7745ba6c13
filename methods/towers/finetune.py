"""Sequential fine-tuning: the image tower goes on training on whatever domain comes.

The forgetting floor of continual learning: nothing protects what was learned before. With
`domains=base` (the method `base-only`) it stops after the base domain; the difference to that row
is what the few shots taught. How the tower is trained is said in `tower_training.py`.
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
        """Go on training on the domain."""
        config = self.context.config
        if domain.index == 0:
            self.train([domain], config.base_steps(len(domain)))
        elif config.domains == "all":
            self.train([domain], config.steps)
