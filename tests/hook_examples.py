"""The hooks and the examples in their docstrings."""

from __future__ import annotations

import inspect
import re
import textwrap

from fsdil_bench.plugins import hookspecs

HOOKS = {
    name: spec for name, spec in vars(hookspecs).items() if hasattr(spec, f"{hookspecs.GROUP}_spec")
}


def example_of(name: str) -> str:
    """The code below "Example:" in the docstring."""
    lines = inspect.getdoc(HOOKS[name]).splitlines()
    start = next((i for i, line in enumerate(lines) if re.fullmatch(r"Example::?", line)), None)
    assert start is not None, f"{name} has no example"
    text = textwrap.dedent("\n".join(lines[start + 1 :]))
    return "\n".join(line for line in text.splitlines() if not line.startswith("```")).strip()
