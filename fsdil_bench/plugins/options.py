"""Typed options for methods and scenarios: a frozen dataclass whose fields are options.

    @dataclass(frozen=True)
    class Config:
        steps: int = option(100, "gradient steps in a few-shot domain", minimum=0)

`resolve` layers presets, files and `--set key=value` over the defaults; an unknown key or a
value of the wrong type is an error that lists what is valid.
"""

from __future__ import annotations

import dataclasses
import json
import math
import types
import typing
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeVar, Union

from fsdil_bench.errors import RequestError, unknown

C = TypeVar("C")


@dataclasses.dataclass(frozen=True)
class NoConfig:
    """The config of a method or scenario without options."""


@dataclasses.dataclass(frozen=True)
class Option:
    """One option, as shown to users."""

    name: str
    type: str
    default: Any
    help: str


def option(
    default: Any, help: str, *, minimum: float | None = None, maximum: float | None = None
) -> Any:
    """A dataclass field with a help text and, for numbers, a range."""
    return dataclasses.field(
        default=default, metadata={"help": help, "minimum": minimum, "maximum": maximum}
    )


#: The name that `option` had first; plugins may go on using it.
knob = option


def options_of(config_type: type) -> list[Option]:
    """All options of a config class, in order."""
    hints = typing.get_type_hints(config_type)
    return [
        Option(f.name, _type_name(hints[f.name]), f.default, f.metadata.get("help", ""))
        for f in dataclasses.fields(config_type)
    ]


def parse_assignments(assignments: Iterable[str]) -> dict[str, str]:
    """`["a=1", "b=x"]` as a dict; the values stay text until `resolve` knows their type."""
    parsed = {}
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if not equals or not key.strip():
            raise RequestError(
                f"'{assignment}' is not of the form key=value", "Write for instance `--set lr=0.1`."
            )
        parsed[key.strip()] = value.strip()
    return parsed


def resolve(config_type: type[C], *layers: Mapping[str, Any], owner: str, see: str) -> C:
    """The config that results from the defaults and `layers`, later ones winning.

    `owner` names the method or scenario in messages, `see` the command that lists its options.
    """
    fields = {f.name: f for f in dataclasses.fields(config_type)}  # type: ignore[arg-type]
    hints = typing.get_type_hints(config_type)
    values: dict[str, Any] = {}
    for layer in layers:
        for key, value in layer.items():
            if key not in fields:
                error = unknown(f"option of {owner}:", key, fields, see)
                valid = ", ".join(fields) or "none"
                raise RequestError(error.message, f"Valid options: {valid}. {error.remedy}")
            values[key] = _checked(value, hints[key], fields[key].metadata, f"{owner}: {key}")
    return config_type(**values)


def as_dict(config: Any) -> dict[str, Any]:
    """A config as plain JSON types, for run ids and records."""
    plain: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(config)))
    return plain


def _checked(value: Any, wanted: Any, limits: Mapping[str, Any], where: str) -> Any:
    try:
        value = _coerce(value, wanted)
    except (ValueError, TypeError, OverflowError, RecursionError):
        raise RequestError(
            f"{where} = {value!r:.200} does not fit", f"It takes {_type_name(wanted)}."
        ) from None
    low, high = limits.get("minimum"), limits.get("maximum")
    too_low = low is not None and value is not None and value < low
    too_high = high is not None and value is not None and value > high
    if too_low or too_high:
        bounds = f"at least {low}" if high is None else f"from {low} to {high}"
        raise RequestError(f"{where} = {value!r} is out of range", f"It takes a value {bounds}.")
    return value


def _coerce(value: Any, wanted: Any) -> Any:
    origin, arguments = typing.get_origin(wanted), typing.get_args(wanted)
    if origin in (Union, types.UnionType):
        return _coerce_optional(value, arguments)
    if origin is Literal:
        if value in arguments:
            return value
        raise ValueError(value)
    if origin is tuple:
        return tuple(_coerce(item, arguments[0]) for item in _items(value))
    if wanted is bool:
        return _coerce_bool(value)
    if wanted is int:
        if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
            raise ValueError(value)
        return int(value)
    if wanted is float:
        if isinstance(value, bool) or not math.isfinite(float(value)):
            raise ValueError(value)
        return float(value)
    if wanted is str and isinstance(value, str):
        value.encode()  # half of a character has no place in an id or a record
        return value
    raise ValueError(value)


def _coerce_optional(value: Any, choices: tuple[Any, ...]) -> Any:
    if value is None or (isinstance(value, str) and value.lower() == "none"):
        if type(None) in choices:
            return None
        raise ValueError(value)
    for choice in choices:
        if choice is not type(None):
            try:
                return _coerce(value, choice)
            except (ValueError, TypeError):
                continue
    raise ValueError(value)


def _coerce_bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    if isinstance(value, str) and value.lower() in words:
        return words[value.lower()]
    raise ValueError(value)


def _items(value: Any) -> list[Any]:
    """A sequence as given by a file (a list) or on the command line (a,b or a JSON list)."""
    if isinstance(value, str):
        if value.startswith("["):
            return list(json.loads(value))
        return [item.strip() for item in value.split(",") if item.strip()]
    if isinstance(value, list | tuple):
        return list(value)
    raise ValueError(value)


def _type_name(wanted: Any) -> str:
    origin, arguments = typing.get_origin(wanted), typing.get_args(wanted)
    if origin in (Union, types.UnionType):
        return " or ".join(_type_name(a) for a in arguments)
    if origin is Literal:
        return "one of " + ", ".join(str(a) for a in arguments)
    if origin is tuple:
        return f"a comma-separated list of {_type_name(arguments[0])}"
    names = {int: "a whole number", float: "a finite number", bool: "true or false", str: "text"}
    return "none" if wanted is type(None) else names.get(wanted, str(wanted))
