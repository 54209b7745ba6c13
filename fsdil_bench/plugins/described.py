"""Methods that are known by their description alone: their code is imported in other processes.

`describe` turns what a plugin offers into JSON types, in a process that has imported it. From that
`described_method` makes a descriptor for a process that must not import the plugin: the factory is
a stand-in class, which has the options and inputs of the method and can do nothing else.
"""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from collections.abc import Mapping
from typing import Any, Literal, Union

from fsdil_bench.errors import FsdilError, PluginError

from .code_hash import code_version
from .descriptors import Factory, MethodInfo, load_factory
from .method import Method, RouterMethod
from .registry import KINDS, Plugin, Registry

_PLAIN = {"int": int, "float": float, "bool": bool, "str": str}


def describe(registry: Registry, plugin: Plugin) -> dict[str, Any]:
    """What a plugin offers, as JSON types: all that is known about its methods, the default
    backbones of its scenarios, the patterns of its backbones."""
    offers = [offer.split(" ", 1) for offer in plugin.offers]
    names = {kind: [name for each, name in offers if each == kind] for kind in KINDS}
    methods = []
    problems = list(plugin.problems)
    for name in names["method"]:
        try:
            methods.append(_describe_method(registry.methods[name]))
        except Exception as error:
            said = error.message if isinstance(error, FsdilError) else repr(error)
            problems.append(f"method '{name}' cannot be described: {said}")
    return {
        "problems": problems,
        "methods": methods,
        "scenarios": {
            name: registry.scenarios[name].default_backbone for name in names["scenario"]
        },
        "backbones": {name: registry.backbones[name].pattern for name in names["backbone"]},
    }


def described_method(said: Mapping[str, Any]) -> MethodInfo:
    """The descriptor of a method that was described elsewhere."""
    return MethodInfo(**said["info"], factory=_stand_in(said["info"]["name"], said["facts"]))


def described_code(factory: Factory) -> str | None:
    """The hash of the code that a stand-in stands for; None for any other factory."""
    return getattr(factory, "_described_code", None)


def _describe_method(info: MethodInfo) -> dict[str, Any]:
    fields = {field.name for field in dataclasses.fields(info)} - {"factory"}
    known = {name: getattr(info, name) for name in fields}
    known |= {"overrides": dict(info.overrides), "presets": info.presets_over({})}
    kind = load_factory(info.factory, f"method '{info.name}'")
    if not (isinstance(kind, type) and issubclass(kind, Method)):
        raise PluginError(f"its factory is {kind!r}, not a subclass of Method")
    facts = {
        "code": code_version(info.factory),
        "inputs": sorted(kind.inputs),
        "libraries": sorted(kind.libraries),
        "routes": issubclass(kind, RouterMethod),
        "presets": {name: dict(values) for name, values in kind.presets.items()},
        "options": [*_describe_options(kind.Config)],
    }
    described: dict[str, Any] = json.loads(json.dumps({"info": known, "facts": facts}))
    return described


def _stand_in(name: str, facts: Mapping[str, Any]) -> Factory:
    options = [
        (
            each["name"],
            _type(each["type"]),
            dataclasses.field(metadata=each["metadata"], **_default(each)),
        )
        for each in facts["options"]
    ]
    attributes = {
        "Config": dataclasses.make_dataclass("Config", options, frozen=True),
        "presets": facts["presets"],
        "inputs": frozenset(facts["inputs"]),
        "libraries": frozenset(facts["libraries"]),
        "_described_code": facts["code"],
    }
    made: Factory = type(name, (RouterMethod if facts["routes"] else Method,), attributes)
    return made


def _describe_options(kind: type) -> typing.Iterator[dict[str, Any]]:
    hints = typing.get_type_hints(kind)
    for each in dataclasses.fields(kind):
        default = each.default
        if each.default_factory is not dataclasses.MISSING:
            default = each.default_factory()
        yield {
            "name": each.name,
            "type": _type_words(hints[each.name]),
            "metadata": dict(each.metadata),
            **({} if default is dataclasses.MISSING else {"default": default}),
        }


def _default(said: Mapping[str, Any]) -> dict[str, Any]:
    if "default" not in said:
        return {}
    value = said["default"]
    return {"default": tuple(value) if isinstance(value, list) else value}


def _type_words(hint: Any) -> Any:
    """The type of an option as JSON: those that `options.resolve` knows."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return ["literal", *arguments]
    if origin in (Union, types.UnionType):
        return ["union", *map(_type_words, arguments)]
    if origin is tuple:
        return ["tuple", _type_words(arguments[0])]
    if hint is type(None):
        return "none"
    return next((word for word, kind in _PLAIN.items() if kind is hint), "object")


def _type(words: Any) -> Any:
    if isinstance(words, str):
        return type(None) if words == "none" else _PLAIN.get(words, object)
    kind, *parts = words
    if kind == "literal":
        return Literal[tuple(parts)]
    if kind == "tuple":
        return tuple[_type(parts[0]), ...]  # type: ignore[misc]
    return Union[tuple(map(_type, parts))]  # noqa: UP007 - of parts known only now
