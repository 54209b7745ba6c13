"""Memory aware synapses, by Avalanche: weights that the outputs depend on are held in place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fsdil_bench import AvalancheConfig, avalanche_method, option


@dataclass(frozen=True)
class MASConfig(AvalancheConfig):
    """Options of avalanche-mas."""

    strength: float = option(1.0, "weight of the penalty", minimum=0)
    old_share: float = option(0.5, "share of the earlier importances", minimum=0, maximum=1)


def mas(config: MASConfig, **parts: Any) -> Any:
    """The strategy for one domain; `parts` are what every strategy is built from."""
    from avalanche.training.supervised import MAS

    return MAS(lambda_reg=config.strength, alpha=config.old_share, **parts)


MASMethod = avalanche_method(mas, config=MASConfig)
