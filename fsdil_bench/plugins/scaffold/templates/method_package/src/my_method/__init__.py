"""my-method as a plugin: nothing here imports torch, so that listing stays fast."""

from __future__ import annotations

from fsdil_bench import MethodInfo, hookimpl


@hookimpl
def fsdil_methods() -> list[MethodInfo]:
    """Offer the method."""
    return [
        MethodInfo(
            "my-method",
            "one line for `fsdil-bench list methods`",
            "my_method.method:MyMethod",
        )
    ]
