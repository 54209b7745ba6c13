"""The plugin: what fsdil-bench reads to list the method. Nothing here imports torch."""

from __future__ import annotations

from fsdil_bench import MethodInfo, hookimpl


@hookimpl
def fsdil_methods() -> list[MethodInfo]:
    """Offer `hello`."""
    return [
        MethodInfo(
            "hello",
            "class means shrunk towards the text, one vote per domain",
            "fsdil_hello.method:Hello",
            needs_text=True,
        )
    ]
