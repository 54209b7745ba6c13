"""What can be asked of a run: the fields are listed here (and in `StreamRequest`) and nowhere else.

The command line, `fsdil_bench.run`, sweeps, tuning and verification all make a `RunRequest`, and
only that reaches the runner. A field says *what* is run, and so is part of the run's identity, or
*how* it is carried out (`how_option`), which changes no id.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fsdil_bench.data.stream_request import StreamRequest, table_option
from fsdil_bench.plugins.options import option


def how_option(default: Any, help: str, *, minimum: float | None = None) -> Any:
    """A field that says how the run is carried out."""
    return field(default=default, metadata={"help": help, "minimum": minimum, "how": True})


@dataclass(frozen=True, kw_only=True)
class RunRequest(StreamRequest):
    """A method on a stream: everything that `fsdil-bench run` can be asked for.

    `RunRequest.of(method="ncm", scenario="drawn-1shot", seed=1)` makes one from plain values.
    """

    method: str
    backbone: str = option("", "Default: the scenario's. See `list backbones`.")
    config: Mapping[str, Any] = table_option("A method's option.")
    workers: int | None = how_option(
        None,
        "Threads that decode and augment images; 0 for none.  [default: one per processor]",
        minimum=0,
    )
    device: str = how_option("auto", "auto, cpu, cuda, cuda:1 ... or mps.")
    precision: str = option(
        "auto", "auto, fp32, tf32 or bf16 (both CUDA); auto is bf16 on GPUs that have it."
    )
    batch_size: int | None = how_option(
        None,
        "Images per forward pass without training.  [default: 256 on CUDA, else 32]",
        minimum=1,
    )
    checkpointing: str = how_option(
        "auto",
        "auto, on or off: compute activations again instead of keeping them for the backward pass."
        " auto does where a training step would not fit into memory.",
    )
    compile: bool = how_option(False, "Compile the towers with torch.compile: for GPUs.")
    deterministic: bool = how_option(False, "Ask torch for the same bits every time: slower.")
    keep_checkpoints: bool = how_option(False, "Keep the state after every domain.")
    reuse_base: bool = how_option(False, "Share the base domain with runs of other K.")
    profile: bool = how_option(
        False, "Keep traces by the profiler of torch and a table of phases in the run folder."
    )
    sealed: bool = how_option(
        False, "Learn and predict in separate processes that share the method's state alone."
    )

    track: tuple[str, ...] = how_option(
        (), "Also log the run with this tracker, such as mlflow; may be given several times."
    )

    def __str__(self) -> str:
        return f"{self.method} on {self.scenario}, seed {self.seed}"
