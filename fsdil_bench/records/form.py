"""The form of a record: does it have the fields and types of `record.schema.json`?"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from .files import levels

_COSTS_PER_DOMAIN = ("state_bytes", "trained_parameters", "per_domain")
_MOST_VALUES = 200_000  # in a record, without what a method says of itself; most have a thousand

#: The version of the form that this version of fsdil-bench writes and reads.
SCHEMA = 1


def form_problems(values: Any) -> list[str]:
    """What is wrong with the form of a record; each problem begins with the name of the field."""
    found = values.get("schema") if isinstance(values, dict) else None
    if found != SCHEMA:
        return [f"schema: this version of fsdil-bench reads {SCHEMA}, the record has {found!r}"]
    own = {name: value for name, value in values.items() if name != "diagnostics"}
    if sum(levels(own)) > _MOST_VALUES:  # the checks below would take minutes
        return [f"the record: it holds more than {_MOST_VALUES:,} values"]
    errors = sorted(_validator().iter_errors(values), key=lambda error: list(map(str, error.path)))
    return [_describe(error) for error in errors] or list(_length_problems(values))


def _length_problems(values: Mapping[str, Any]) -> Iterator[str]:
    """Do all lists about domains have an entry for each?"""
    names = [domain["name"] for domain in values["scenario"]["domains"]]
    if values["spec"]["order"] != names:
        yield "spec.order does not name the domains of scenario.domains"
    lists = {f"cost.{key}": values["cost"][key] for key in _COSTS_PER_DOMAIN}
    if diagnostics := values["diagnostics"]:
        lists["diagnostics.per_domain"] = diagnostics.get("per_domain", [])
    for place, entries in lists.items():
        if len(entries) != len(names):
            yield f"{place} has {len(entries)} entries for {len(names)} domains"


@cache
def _validator() -> Any:
    from jsonschema import Draft202012Validator

    text = files(__package__).joinpath("record.schema.json").read_text(encoding="utf-8")
    schema = json.loads(text)
    return Draft202012Validator(_without_references(schema, schema.pop("$defs")))


def _without_references(part: Any, definitions: dict[str, Any]) -> Any:
    """A schema with every `$ref` replaced by its definition, which makes checks twice as fast."""
    if isinstance(part, list):
        return [_without_references(each, definitions) for each in part]
    if not isinstance(part, dict):
        return part
    own = {k: _without_references(each, definitions) for k, each in part.items() if k != "$ref"}
    if "$ref" not in part:
        return own
    definition = definitions[part["$ref"].removeprefix("#/$defs/")]
    return _without_references(definition, definitions) | own


def _describe(error: Any) -> str:
    place = error.json_path.removeprefix("$").removeprefix(".")
    if error.validator == "required":
        missing = next(name for name in error.validator_value if name not in error.instance)
        return f"{place}.{missing} is missing".removeprefix(".")
    if error.validator == "additionalProperties":
        return f"{place or 'the record'}: {error.message}"
    return f"{place}: {error.message[:200]}"
