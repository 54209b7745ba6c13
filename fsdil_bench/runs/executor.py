"""Where a method does its work: the loop knows an `Executor` and not the method itself.

An ordinary run calls the method in this process (`InProcess`). A sealed run has a process of its
own for every task (`runs.sealed.executor`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol

import numpy as np
import torch

from fsdil_bench.plugins.method import Method, RouterMethod, State
from fsdil_bench.seeds import seed_everything

from .plugin_calls import call_plugin, checked_state, predicted_ids
from .self_report import SelfReport, self_report
from .served_views import served
from .views import Batch, TrainDomain

#: What a method does next.
Purpose = Literal["learn", "predict", "oracle", "predict unseen"]
#: The functions of a method that predict.
Call = Literal["predict", "predict_domain", "predict_in_domain"]


class Executor(Protocol):
    """One method at work."""

    order_salt: str
    """What the order of test images depends on besides the seed and the images."""
    peak_memory_bytes: int
    """The most memory that other processes held for this domain; 0 if there are none."""

    @property
    def inputs(self) -> frozenset[str]:
        """Which of "images" and "features" the method needs in a test batch."""

    @property
    def routes(self) -> bool:
        """Whether the method guesses domains."""

    def restart(self, state: State | None) -> None:
        """Continue with a method that knows `state` (None: nothing) and nothing else."""

    def begin(self, purpose: Purpose, t: int) -> None:
        """Seed what comes next, after domain `t` or while it is learned."""

    def learn(self, domain: TrainDomain) -> None:
        """Let the method learn a domain."""

    def state(self) -> State:
        """What the method remembers."""

    def self_report(self) -> SelfReport:
        """What the method says of itself after learning."""

    def predict(self, call: Call, batch: Batch, domains: torch.Tensor | None = None) -> np.ndarray:
        """The integers that a function of the method returns for a batch."""


class InProcess:
    """The method is an object of this process; `build` makes it."""

    order_salt = ""  # a method of this process could read any
    peak_memory_bytes = 0

    def __init__(
        self,
        name: str,
        build: Callable[[], Method],
        seed: int,
        device: torch.device,
        *,
        trusted: bool = True,
    ) -> None:
        self._name = name
        self._trusted = trusted  # its code comes with the harness
        self._build = build
        self._seed = seed
        self._device = device
        self.method: Method

    @property
    def inputs(self) -> frozenset[str]:
        """What the method needs in a test batch."""
        return self.method.inputs

    @property
    def routes(self) -> bool:
        """Whether the method guesses domains."""
        return isinstance(self.method, RouterMethod)

    def restart(self, state: State | None) -> None:
        """Build the method again and load the state into it."""
        self.method = self._build()
        if state is not None:
            own = {name: tensor.to(self._device, copy=True) for name, tensor in state.items()}
            call_plugin(self._name, "load_state_dict", lambda: self.method.load_state_dict(own))

    def begin(self, purpose: Purpose, t: int) -> None:
        """Seed the global generators; the oracle's pass begins like that without true domains."""
        seed_everything(self._seed, "predict" if purpose == "oracle" else purpose, t)

    def learn(self, domain: TrainDomain) -> None:
        """Call the method, with a view that holds no samples."""
        with served(domain, TrainDomain) as view:
            call_plugin(self._name, "learn", lambda: self.method.learn(view))

    def state(self) -> State:
        """Ask the method for its state."""
        return checked_state(self._name, self.method)

    def self_report(self) -> SelfReport:
        """Ask the method for its report."""
        return self_report(self.method)

    def twin(self, state: State) -> InProcess | None:
        """A second method that knows `state`, if it can be given what this one computes of images
        whatever their domain; None if every method begins with the pixels.

        It is told true domains while this one still predicts. In the code of a third party the one
        could tell the other, so there the oracle has to wait until everything is predicted.
        """
        plain = getattr(type(self.method), "shared_part", None) in (None, RouterMethod.shared_part)
        if plain or not self._trusted:
            return None
        other = InProcess(self._name, self._build, self._seed, self._device)
        other.restart(state)
        return other

    def with_shared_part(self, batch: Batch) -> Batch:
        """The batch with what the method computes of it whatever the domains, if it does."""
        assert isinstance(self.method, RouterMethod)
        method = self.method
        found = call_plugin(self._name, "shared_part", lambda: method.shared_part(batch))
        return batch if found is None else Batch(None, batch._features, found.detach())

    def predict(self, call: Call, batch: Batch, domains: torch.Tensor | None = None) -> np.ndarray:
        """Call the method."""
        given = (batch,) if domains is None else (batch, domains)
        return predicted_ids(self._name, self.method, call, *given)
