"""`--compile`: the MLPs of the towers' blocks as code that torch.compile has made.

An MLP is two thirds of a block's work, and between its two matrix products an activation reads and
writes four times the block's width: compiled, both become one pass. Attention is left alone, since
its kernel is fused already, and adapters change it. Frozen features and text embeddings are kept
for all runs, so they are never compiled: the last bits of compiled code differ.
"""

from __future__ import annotations

import contextlib
from typing import Any

import torch

from fsdil_bench.adapters import tower_blocks
from fsdil_bench.errors import RequestError

BACKEND = "inductor"


def require_compiler() -> None:
    """Refuse `--compile` where it cannot work."""
    if not hasattr(torch.compiler, "set_stance"):
        raise RequestError(
            f"torch {torch.__version__} cannot leave kept features out of --compile",
            "Install torch 2.6 or newer, or leave out --compile.",
        )


def compile_blocks(*towers: Any) -> None:
    """Compile the MLPs of these towers in place. A copy of a tower is not compiled."""
    for tower in towers:
        with contextlib.suppress(RequestError):  # a tower of another kind stays as it is
            for block in tower_blocks(tower):
                block.mlp.compile(backend=BACKEND, dynamic=True)


def not_compiled() -> contextlib.AbstractContextManager[Any]:
    """A context in which compiled parts run as they were written."""
    stance: contextlib.AbstractContextManager[Any] = torch.compiler.set_stance("force_eager")
    return stance
