"""What a method is: it learns one domain after another and predicts classes.

A method gets everything it may know through its `Context` and the views given to `learn` and
`predict`; all it remembers between domains is in `state_dict()`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from .options import NoConfig

if TYPE_CHECKING:
    import torch

    from fsdil_bench.models.backbone import Backbone
    from fsdil_bench.runs.views import Batch, TrainDomain

State = dict[str, "torch.Tensor"]


@dataclass(frozen=True)
class Context:
    """All that a method is built from."""

    config: Any
    backbone: Backbone
    class_names: tuple[str, ...]
    synonyms: tuple[tuple[str, ...], ...]
    seed: int

    @property
    def device(self) -> torch.device:
        """Where tensors live in this run."""
        return self.backbone.device

    @property
    def fused(self) -> bool:
        """Whether an optimizer should take its step in one kernel (`fused`): on a GPU."""
        return self.device.type == "cuda"

    def generator(self, *purpose: object) -> torch.Generator:
        """A random generator of the run's seed for one purpose, for instance ("init", domain)."""
        from fsdil_bench.seeds import torch_generator

        return torch_generator(self.seed, "method", *purpose)


class Method(ABC):
    """Base class of all methods.

    Class attributes say what it needs: `Config`, a frozen dataclass of options; `presets`, config
    values per data set; `inputs`, which of "images" and "features" a test batch must hold; `inert`,
    options that change no result on a small slice of data and why (for `fsdil-bench check`);
    `libraries`, those that a sealed run imports before it watches the method ("avalanche").
    """

    Config: ClassVar[type] = NoConfig
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    inputs: ClassVar[frozenset[str]] = frozenset({"images"})
    inert: ClassVar[Mapping[str, str]] = {}
    libraries: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, context: Context) -> None:
        self.context = context

    @abstractmethod
    def learn(self, domain: TrainDomain) -> None:
        """Learn the current domain, the only one whose images can be read."""

    @abstractmethod
    def predict(self, batch: Batch) -> torch.Tensor:
        """The class id of every image of the batch: integers, shape (n,)."""

    @abstractmethod
    def state_dict(self) -> State:
        """All that is remembered between domains, as named tensors."""

    @abstractmethod
    def load_state_dict(self, state: State) -> None:
        """Become the method that returned `state`."""

    def trained_parameters(self) -> int:
        """How many numbers gradient descent changes; 0 for methods without training."""
        return 0

    def embed(self, batch: Batch) -> torch.Tensor | None:
        """The embeddings that `predict` compares, (n, d), for maps; None if there are none but the
        frozen features."""
        del batch
        return None

    def diagnostics(self) -> dict[str, Any]:
        """Anything worth keeping in the record (JSON types), for instance learned coefficients."""
        return {}


class RouterMethod(Method):
    """A method that first decides which domain an image is from.

    The harness uses the two steps to report the routing accuracy, and the accuracy that the true
    domain would have given (the oracle); `predict` is their composition. The second step follows
    later, for images of one domain that were routed in several batches.
    """

    @abstractmethod
    def predict_domain(self, batch: Batch) -> torch.Tensor:
        """The index of the domain every image seems to be from: integers, shape (n,)."""

    @abstractmethod
    def predict_in_domain(self, batch: Batch, domains: torch.Tensor) -> torch.Tensor:
        """The class id of every image, given the domain of each."""

    def shared_part(self, batch: Batch) -> torch.Tensor | None:
        """What the second step computes of every image whatever its domain, (n, ...), for instance
        tokens after blocks that domains have in common; None if there is no such part.

        A method that has one finds it in `batch.shared`, in place of the images, where the harness
        has asked for it before: the oracle then need not begin with the pixels again.
        """
        del batch
        return None

    def predict(self, batch: Batch) -> torch.Tensor:
        """Classes under the predicted domains."""
        return self.predict_in_domain(batch, self.predict_domain(batch))
