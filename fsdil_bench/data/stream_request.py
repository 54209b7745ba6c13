"""What can be asked of a stream: the fields are listed here and nowhere else.

A run asks for more (`fsdil_bench.runs.request`). Values as users and files write them become a
request at one place, `StreamRequest.of`.
"""

from __future__ import annotations

import json
import os
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields, make_dataclass, replace
from functools import cache
from inspect import signature
from pathlib import Path
from typing import Any, Self

from fsdil_bench.errors import RequestError, unknown
from fsdil_bench.plugins.options import option, resolve
from fsdil_bench.seeds import check_seed

from .scenario import TRANSFORMS, ScenarioId


def path_option(help: str) -> Any:
    """A field for a file or folder, kept as text."""
    return field(default=None, metadata={"help": help, "path": True})


def table_option(help: str) -> Any:
    """A field for options that a plugin defines; their names and values are checked later."""
    return field(default_factory=dict, metadata={"help": help})


@dataclass(frozen=True, kw_only=True)
class StreamRequest:
    """A scenario, the seed of its shots, and the options that change its stream."""

    scenario: ScenarioId
    seed: int = option(0, "Seed of everything random in the run.")
    data: str | None = path_option("Where a scenario's images are.")
    order: tuple[str, ...] = option((), "Domains in order, comma-separated; may be a selection.")
    base: str = option("", "The domain that comes first.")
    base_limit: int | None = option(None, "At most so many base images per class.", minimum=1)
    names: str | None = path_option("JSON file with class names.")
    synonyms: str | None = path_option("JSON file with synonyms.")
    scenario_options: Mapping[str, Any] = table_option("A scenario's option.")
    transform: str = option(
        "",
        f"How images are cut, augmented and normalised: {', '.join(TRANSFORMS)}."
        "  [default: the scenario's own]",
    )

    def __post_init__(self) -> None:
        check_seed(self.seed)

    @classmethod
    def of(cls, **given: Any) -> Self:
        """A request from values as users and files write them; None is the default.

        The scenario may be text, a path an object, a list text such as "a,b". What to_dict()
        returned makes the same request again.
        """
        check_arguments(given, cls)
        given = {name: value for name, value in given.items() if value is not None}
        if isinstance(given.get("scenario"), str):
            given["scenario"] = ScenarioId.parse(given["scenario"])
        simple = simple_options(cls)  # type: ignore[arg-type]  # a class can be hashed
        for name, value in given.items():
            if isinstance(value, os.PathLike):
                given[name] = os.fspath(value)
            elif isinstance(value, Mapping):
                given[name] = dict(value)
            elif name in _tables(cls):
                raise RequestError(f"{name} = {value!r} does not fit", "It takes keys and values.")
        names = [each.name for each in fields(simple) if each.name in given]
        checked = resolve(simple, {name: given[name] for name in names}, owner="run", see="")
        return cls(**given | {name: getattr(checked, name) for name in names})

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types. Fields at their default are left out."""
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        default = {each.name: _default(each) for each in fields(self)}
        changed = {name: value for name, value in found.items() if value != default[name]}
        plain: dict[str, Any] = json.loads(json.dumps(changed, default=str))
        return plain

    def with_absolute_paths(self) -> Self:
        """The same request for a process that works in another folder."""
        paths = [each.name for each in fields(self) if each.metadata.get("path")]
        absolute: dict[str, Any] = {
            name: str(Path(text).expanduser().absolute())
            for name in paths
            if (text := getattr(self, name))
        }
        return replace(self, **absolute)


@cache
def simple_options(kind: type[Any]) -> type[Any]:
    """The fields of a request that are texts, numbers, lists, or yes and no, as a class for
    `resolve`: all that have a default, without the tables."""
    hints = typing.get_type_hints(kind)
    simple = [
        (each.name, hints[each.name], field(default=each.default, metadata=each.metadata))
        for each in fields(kind)
        if each.default is not MISSING
    ]
    return make_dataclass(f"{kind.__name__}Options", simple, frozen=True)


def check_arguments(
    given: Iterable[str], kind: type[StreamRequest], function: Callable[..., Any] | None = None
) -> None:
    """Refuse names that are no fields of a request, nor arguments of the function that makes it."""
    known = [each.name for each in fields(kind)]
    if function is not None:
        own = signature(function).parameters.values()
        known = [*(each.name for each in own if each.kind is not each.VAR_KEYWORD), *known]
    owner = kind.__name__ if function is None else function.__name__
    for name in given:
        if name not in known:
            raise unknown(f"argument of {owner}:", name, dict.fromkeys(known))


def _tables(kind: type[StreamRequest]) -> list[str]:
    return [each.name for each in fields(kind) if each.default_factory is not MISSING]


def _default(each: Any) -> Any:
    return each.default_factory() if each.default_factory is not MISSING else each.default
