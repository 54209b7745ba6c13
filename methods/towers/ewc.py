"""EWC, elastic weight consolidation: weights that mattered to earlier domains are held in place.

Paper: Kirkpatrick et al., Overcoming catastrophic forgetting in neural networks, 2017. With weights
theta, those after domain k theta_k, and the diagonal F_k of the Fisher information there,

    loss = cross-entropy  +  lambda / 2  sum_k sum_i F_ki (theta_i - theta_ki)^2
    F_ki = mean over the images x of domain k of  ( d log p(y | x) / d theta_i )^2

in mode `separate`. Mode `online` (Schwarz et al., Progress and Compress, 2018) keeps a single F,
around the weights of the previous domain, which becomes gamma F + F_t after domain t. How the tower
is trained is described in `penalised_training.py`; with strength 0 this is `finetune`.

The Fisher information is of single images: gradients are squared one by one, not as the mean over a
batch (whose square is smaller by about the batch size, so that lambda would depend on it). y is
drawn from the model's own p(y | x), or is the label (`fisher=empirical`).

Different from the original: F is capped at a high quantile, because a few weights would otherwise
have most of the penalty, and its mean is over a sample of the images where a domain has many.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
import torch.nn.functional as F

from fsdil_bench import Context, State, TrainDomain, option

from ..embedded import LIMITS, on_embedded_worlds
from .penalised_training import PenalisedConfig, PenalisedMethod


@dataclass(frozen=True)
class Config(PenalisedConfig):
    """Options of ewc."""

    strength: float = option(1000.0, "weight lambda of the penalty", minimum=0)
    mode: Literal["online", "separate"] = option(
        "online", "one Fisher information for all domains, or one (and one anchor) for each"
    )
    gamma: float = option(
        1.0, "factor on the old Fisher information in mode online", minimum=0, maximum=1
    )
    fisher: Literal["sampled", "empirical"] = option(
        "sampled", "use classes drawn from the model's own prediction, or the labels"
    )
    fisher_images: int = option(
        1024, "at most so many images for the Fisher information", minimum=1
    )
    fisher_quantile: float = option(
        0.999,
        "quantile at which the Fisher information is capped; 1 for no cap",
        minimum=0,
        maximum=1,
    )


class EWC(PenalisedMethod):
    """Fine-tuning under a quadratic penalty."""

    Config = Config
    #: On the embedded world every image is a backward pass that training could have had.
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        **PenalisedMethod.presets,
        **on_embedded_worlds(*LIMITS, fisher_images=480),
    }
    inert: ClassVar[dict[str, str]] = {
        "fisher_images": "a small slice has fewer images in a domain"
    }

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.fishers: list[State] = []
        self.anchors: list[State] = []

    def learn(self, domain: TrainDomain) -> None:
        """Train under the penalty, then measure what mattered."""
        config = self.context.config
        online = config.mode == "online"
        if online and domain.index:
            self.anchors = [self._copies()]  # where the domain before ended
        self.train_on(domain)
        fisher = self._fisher(domain)
        if online:
            for old in self.fishers:
                fisher = {name: config.gamma * old[name] + new for name, new in fisher.items()}
            self.fishers, self.anchors = [fisher], []
        else:
            self.fishers.append(fisher)
            self.anchors.append(self._copies())

    def penalty(self, images: torch.Tensor, logits: torch.Tensor) -> torch.Tensor | None:
        """How far the weights are from where they were, where it matters."""
        del images, logits
        strength = self.context.config.strength
        if not self.anchors or not strength:
            return None
        weights = self.weights()
        terms = [
            (fisher[name] * (weight - anchor[name]).square()).sum()
            for fisher, anchor in zip(self.fishers, self.anchors, strict=True)
            for name, weight in weights.items()
        ]
        return strength / 2 * torch.stack(terms).sum()

    def state_dict(self) -> State:
        """The weights, the Fisher information and, in mode `separate`, the anchors."""
        memory = {"fisher": self.fishers, "anchor": self.anchors}
        return super().state_dict() | {
            f"{kind}.{k}.{name}": value
            for kind, parts in memory.items()
            for k, part in enumerate(parts)
            for name, value in part.items()
        }

    def load_state_dict(self, state: State) -> None:
        """Load weights, Fisher information and anchors."""
        super().load_state_dict(state)
        self.fishers, self.anchors = _parts(state, "fisher"), _parts(state, "anchor")

    def _copies(self) -> State:
        return {name: weight.detach().clone() for name, weight in self.weights().items()}

    def _fisher(self, domain: TrainDomain) -> State:
        fisher = diagonal_fisher(self.weights(), self._losses(domain))
        return cut_off(fisher, self.context.config.fisher_quantile)

    def _losses(self, domain: TrainDomain) -> Iterator[torch.Tensor]:
        """The negative log-likelihood of single plain views, in full precision."""
        config, generator = self.context.config, self.context.generator("fisher", domain.index)
        order = torch.randperm(len(domain), generator=generator)[: config.fisher_images]
        for positions in order.split(config.batch_size):
            batch = domain.take(positions.tolist())
            for image, label in zip(batch.images, batch.labels, strict=True):
                logits = self.logits(self.tower(image[None]))
                if config.fisher == "sampled":
                    probabilities = logits.detach().softmax(1).cpu()
                    label = torch.multinomial(probabilities, 1, generator=generator)[0, 0]
                yield F.cross_entropy(logits, label.to(logits.device)[None])


def diagonal_fisher(weights: Mapping[str, torch.Tensor], losses: Iterable[torch.Tensor]) -> State:
    """The mean, over losses of one sample each, of the squared gradient."""
    total, count = {name: torch.zeros_like(weight) for name, weight in weights.items()}, 0
    for loss in losses:
        count += 1
        gradients = torch.autograd.grad(loss, list(weights.values()), materialize_grads=True)
        for name, gradient in zip(weights, gradients, strict=True):
            total[name].addcmul_(gradient, gradient)
    return {name: value.detach() / max(1, count) for name, value in total.items()}


def cut_off(fisher: State, quantile: float) -> State:
    """No value above the quantile of all."""
    values = torch.cat([value.flatten() for value in fisher.values()])
    limit = values.kthvalue(max(1, math.ceil(quantile * len(values)))).values
    return {name: value.clamp(max=limit) for name, value in fisher.items()}


def _parts(state: State, kind: str) -> list[State]:
    """The tensors called kind.k.name, as one dict for each k."""
    found: dict[int, State] = {}
    for key, value in state.items():
        if key.startswith(f"{kind}."):
            _, k, name = key.split(".", 2)
            found.setdefault(int(k), {})[name] = value
    return [found[k] for k in sorted(found)]
