"""Linear probe: multinomial logistic regression on frozen features.

Paper: the linear probe of Radford et al., Learning Transferable Visual Models From Natural Language
Supervision, 2021. On the base domain the convex problem

    min over W, b of   mean cross-entropy(z W^T + b, y) + decay/2 |W - W_0|^2

is solved by L-BFGS, decay being chosen by the loss on a held-out fifth of the base domain. In mode
`seq` each later domain then takes `steps` full-batch gradient steps on its own cross-entropy, from
where the domain before ended; in mode `base-only` it changes nothing.

W_0 is zero, for the usual L2-regularised regression (decay = 1 / (C n) in scikit-learn's
terms), or with `init=text` the zero-shot classifier (rows s w_c, with CLIP's scale s).

Different from the original: the decay pulls towards W_0 rather than zero, else the solution would
not depend on W_0 at all; features are z in the joint space, not those before the last projection.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch
import torch.nn.functional as F

from fsdil_bench import Batch, Context, Method, State, TrainDomain, option

from ..text_classifier import class_embeddings, require_text, templates_option
from .base_holdout import hold_out

DECAYS = [10.0**-power for power in range(1, 9)]


@dataclass(frozen=True)
class Config:
    """Options of linear-probe."""

    mode: Literal["seq", "base-only"] = option("seq", "learn all domains, or the base domain only")
    init: Literal["zero", "text"] = option("zero", "start at zero or at the zero-shot classifier")
    decay: float | None = option(
        None,
        "strength of the pull towards the start; none chooses it on the base domain",
        minimum=0,
    )
    base_iterations: int = option(
        1000, "at most so many iterations of L-BFGS on the base domain", minimum=0
    )
    steps: int = option(100, "gradient steps in a few-shot domain", minimum=0)
    lr: float = option(1.0, "learning rate of those steps", minimum=0)
    templates: tuple[str, ...] = templates_option()


class LinearProbe(Method):
    """A linear classifier on z."""

    Config = Config
    inputs = frozenset({"features"})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        classes, size = len(context.class_names), context.backbone.embed_dim
        self.weight = torch.zeros(classes, size, device=context.device)
        self.bias = torch.zeros(classes, device=context.device)
        self.decay = torch.tensor(context.config.decay or 0.0, dtype=torch.float64)
        if context.config.init == "text":
            require_text(context, "init = text", "init=zero")
            text = class_embeddings(context, context.config.templates)
            self.weight = context.backbone.logit_scale * text

    def learn(self, domain: TrainDomain) -> None:
        """Solve the base domain; take some steps on a later one."""
        config = self.context.config
        z, labels = domain.features().double(), domain.labels
        if domain.index == 0:
            if config.decay is None:
                self.decay = torch.full_like(self.decay, self._choose_decay(z, labels))
            self._keep(*self._fit(z, labels, float(self.decay), *self._parameters()))
        elif config.mode == "seq":
            weight, bias = (value.requires_grad_() for value in self._parameters())
            optimizer = torch.optim.SGD([weight, bias], lr=config.lr)
            for _ in range(config.steps):
                optimizer.zero_grad()
                _loss(z, labels, weight, bias).backward()
                optimizer.step()
            self._keep(weight, bias)

    def predict(self, batch: Batch) -> torch.Tensor:
        """The class with the largest logit."""
        return (batch.features @ self.weight.T + self.bias).argmax(1)

    def state_dict(self) -> State:
        """The classifier, and the decay that was chosen for it."""
        return {"weight": self.weight, "bias": self.bias, "decay": self.decay}

    def load_state_dict(self, state: State) -> None:
        """Load the classifier."""
        self.weight, self.bias, self.decay = state["weight"], state["bias"], state["decay"]

    def trained_parameters(self) -> int:
        """Weights and biases."""
        return self.weight.numel() + self.bias.numel()

    def diagnostics(self) -> dict[str, Any]:
        """The decay in force on the base domain."""
        return {"decay": float(self.decay)}

    def _choose_decay(self, z: torch.Tensor, labels: torch.Tensor) -> float:
        """From strong to weak, each fit from the one before, until the held-out loss rises."""
        fit, held = hold_out(len(z), self.context.generator("decay"))
        parameters, best, least = self._parameters(), DECAYS[0], float("inf")
        for decay in DECAYS:
            parameters = self._fit(z[fit], labels[fit], decay, *parameters)
            loss = float(_loss(z[held], labels[held], *parameters))
            if loss >= least:
                break
            best, least = decay, loss
        return best

    def _fit(
        self,
        z: torch.Tensor,
        labels: torch.Tensor,
        decay: float,
        weight: torch.Tensor,
        bias: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Solve the regression for one decay, starting at `weight` and `bias`."""
        start, _ = self._parameters()
        weight, bias = (value.clone().requires_grad_() for value in (weight, bias))
        iterations = self.context.config.base_iterations
        optimizer = torch.optim.LBFGS(
            [weight, bias],
            max_iter=iterations,
            max_eval=2 * iterations,
            tolerance_grad=1e-7,
            tolerance_change=1e-12,
            line_search_fn="strong_wolfe",
        )

        def closure() -> torch.Tensor:
            optimizer.zero_grad()
            pull = decay / 2 * (weight - start).square().sum()
            loss = _loss(z, labels, weight, bias) + pull
            loss.backward()
            return loss

        optimizer.step(closure)
        return weight.detach(), bias.detach()

    def _parameters(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Copies of the classifier in double precision, which L-BFGS needs to converge."""
        return self.weight.double(), self.bias.double()

    def _keep(self, weight: torch.Tensor, bias: torch.Tensor) -> None:
        self.weight, self.bias = weight.detach().float(), bias.detach().float()


def _loss(
    z: torch.Tensor, labels: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor
) -> torch.Tensor:
    return F.cross_entropy(z @ weight.T + bias, labels)
