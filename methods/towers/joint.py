"""Joint training: at every domain, a fresh tower on all images seen so far.

The ceiling for few-shot domain-incremental learning with the same shots. It keeps the images of
earlier domains, so it is not exemplar-free and does not compete. All domains weigh the same: each
has an equal share of every batch and counts the same in the loss. The number of steps is what
`finetune` has taken in total by then, so on the base domain the two are the same.
"""

from __future__ import annotations

from fsdil_bench import TrainDomain

from .tower_training import TowerMethod


class Joint(TowerMethod):
    """A tower trained from the start whenever a domain arrives."""

    def learn(self, domain: TrainDomain) -> None:
        """Begin with the pre-trained tower and train on everything."""
        config = self.context.config
        seen = [*domain.earlier, domain]
        self.tower = self.context.backbone.visual_copy()
        self.train(seen, config.base_steps(len(seen[0])) + domain.index * config.steps)
