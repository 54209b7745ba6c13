"""All built-in methods pass the checks that other people's methods are held to."""

from __future__ import annotations

from typing import Any

import pytest
from fsdil_methods import fsdil_methods

from fsdil_bench.checks import MethodCheck, method_checks

# Narrower where the full width says nothing more and costs seconds.
NARROW: dict[str, dict[str, Any]] = {name: {"projection_size": 200} for name in ("ranpac", "rail")}
# The same class under other options, or several times the work.
SLOW = {info.name for info in fsdil_methods() if info.name.startswith("cvlc-")} | {"joint"}
SLOW |= {"tip-adapter-f", "wise-ft-streaming", "dytox-replay", "slda-text", "soyo", "duct-text"}
MANY_OPTIONS = {
    "cvlc", "s-prompts", "cp-prompt", "ewc", "l2p", "dualprompt", "coda-prompt", "inflora",
    "asp", "app", "sec-prompt", "icon", "dytox", "fshil-lite", "pgo-like",
    "conec-lora", "duct", "fused-prototypes",
}  # fmt: skip


def _is_slow(method: str, check: str) -> bool:
    return method in SLOW or (check == "options" and method in MANY_OPTIONS)


def _checks() -> list[Any]:
    return [
        pytest.param(
            check,
            id=f"{info.name}-{check.__name__}",
            marks=[pytest.mark.slow] if _is_slow(info.name, check.__name__) else [],
        )
        for info in fsdil_methods()
        for check in method_checks(info.name, config=NARROW.get(info.name))
    ]


@pytest.mark.parametrize("check", _checks())
def test_built_in_methods(check: MethodCheck, drawn_cache: None) -> None:
    check()
