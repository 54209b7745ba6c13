"""Methods known by their description: the same options, inputs and code as the real ones."""

from __future__ import annotations

import json

import pytest
from fsdil_methods import fsdil_methods

from fsdil_bench.errors import RequestError
from fsdil_bench.plugins.code_hash import code_version
from fsdil_bench.plugins.described import describe, described_code, described_method
from fsdil_bench.plugins.method import RouterMethod
from fsdil_bench.plugins.options import as_dict, options_of
from fsdil_bench.plugins.registry import load_registry
from fsdil_bench.runs.job import load_method_class, method_settings

NAMES = ["ncm", "cvlc", "dualprompt", "s-prompts"]


@pytest.fixture(scope="module")
def stand_ins():
    registry = load_registry()
    plugin = registry.origin("method", "ncm")
    said = json.loads(json.dumps(describe(registry, plugin)))
    return {info.name: info for info in map(described_method, said["methods"])}


def test_every_built_in_method_can_be_described(stand_ins):
    assert set(stand_ins) == {info.name for info in fsdil_methods()}


@pytest.mark.parametrize("name", NAMES)
def test_a_stand_in_has_what_the_method_has(stand_ins, name):
    real = load_registry().method(name)
    kind, made = load_method_class(real), load_method_class(stand_ins[name])
    assert options_of(made.Config) == options_of(kind.Config)
    assert made.inputs == kind.inputs
    assert issubclass(made, RouterMethod) == issubclass(kind, RouterMethod)
    assert described_code(stand_ins[name].factory) == code_version(real.factory)
    for dataset in ("drawn", "core50"):
        same = as_dict(method_settings(real, dataset, {}))
        assert as_dict(method_settings(stand_ins[name], dataset, {})) == same


def test_wrong_options_are_refused_as_by_the_method(stand_ins):
    with pytest.raises(RequestError, match="unknown option of method ncm: 'lr'"):
        method_settings(stand_ins["ncm"], "drawn", {"lr": 1})


def test_a_stand_in_can_do_nothing(stand_ins):
    with pytest.raises(TypeError, match="abstract"):
        stand_ins["ncm"].factory(None)
