"""Values to try for the options of a config, by their types and limits."""

from __future__ import annotations

import dataclasses
import types
import typing
from typing import Any, Literal, Union

_SENTENCES = ("{}", "this is not a {}", "{} on a red ground, upside down")


def values(config: Any, full: Any) -> dict[str, list[Any]]:
    """For every option, other values than the one in `config`.

    `full` is the config before training was made short: its values are among them.
    """
    hints = typing.get_type_hints(type(config))
    found = {}
    for field in dataclasses.fields(config):
        now = getattr(config, field.name)
        first, *rest = [*_suggested(hints[field.name], now), now]
        suggested = [first, getattr(full, field.name), *rest]
        found[field.name] = _others(now, suggested, field.metadata)
    return found


def switches(config: Any, full: Any) -> list[tuple[str, Any]]:
    """All other settings of options that choose between a few."""
    hints = typing.get_type_hints(type(config))
    tried = values(config, full)
    return [(name, v) for name, found in tried.items() if _is_switch(hints[name]) for v in found]


def quantities(config: Any, full: Any) -> list[tuple[str, Any]]:
    """Other settings of the other options: one of each first, then a second of each."""
    hints = typing.get_type_hints(type(config))
    tried = {k: v for k, v in values(config, full).items() if not _is_switch(hints[k])}
    return [(name, found[i]) for i in range(2) for name, found in tried.items() if i < len(found)]


def _others(now: Any, suggested: list[Any], limits: Any) -> list[Any]:
    low, high = limits.get("minimum"), limits.get("maximum")
    found: list[Any] = []
    for value in suggested:
        number = isinstance(value, int | float)
        inside = not number or ((low is None or value >= low) and (high is None or value <= high))
        if inside and value != now and value not in found:
            found.append(value)
    return found


def _suggested(wanted: Any, now: Any) -> list[Any]:
    """Values of a type, the quickest and the most different ones first."""
    origin, arguments = typing.get_origin(wanted), typing.get_args(wanted)
    if origin in (Union, types.UnionType):
        return [value for each in arguments for value in _suggested(each, now)]
    if origin is Literal:
        return list(arguments)
    if origin is tuple:
        texts = [(text,) for text in _SENTENCES] if arguments[0] is str else []
        return [*texts, tuple(now or ())[:1], tuple(now or ()) * 2]
    if wanted is bool:
        return [True, False]
    if wanted is int:
        start = now if isinstance(now, int) else 4
        return [start // 8, start // 2, 1, start + 1, start * 2, 0]
    if wanted is float:
        middle = float(now) if isinstance(now, int | float) else 1.0
        return [middle / 2, middle * 100, 0.5, 0.0]
    return [f"{now}-other"] if wanted is str else []


def _is_switch(wanted: Any) -> bool:
    parts = typing.get_args(wanted) if typing.get_origin(wanted) in (Union, types.UnionType) else ()
    return any(typing.get_origin(each) is Literal or each is bool for each in (*parts, wanted))
