"""Sequential fine-tuning under either head, for methods that must become it."""

from __future__ import annotations

from typing import Any

from fsdil_methods.towers.finetune import FineTune
from fsdil_methods.towers.penalised_training import PenalisedMethod
from tiny_world import World

from fsdil_bench import TrainDomain


class _NoPenalty(PenalisedMethod):
    def learn(self, domain: TrainDomain) -> None:
        self.train_on(domain)


def learned_plainly(world: World, head: str, **options: Any) -> Any:
    """Under the text head `finetune` itself, which shares no training loop with the others."""
    if head == "text":
        return world.learn(world.method(FineTune, **options))
    return world.learn(world.method(_NoPenalty, **options, head=head))
