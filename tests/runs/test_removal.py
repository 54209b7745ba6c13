"""Taking one plugin away, or breaking one, costs nothing but that plugin."""

from __future__ import annotations

import importlib.abc
import json
import re
import sys
from pathlib import Path

import pytest

import fsdil_bench
from fsdil_bench.plugins import registry as plugins
from fsdil_bench.plugins.descriptors import load_factory
from fsdil_bench.plugins.registry import load_registry
from fsdil_bench.runs.job import load_method_class
from fsdil_bench.runs.lookup import describe_backbone

TOY = Path(__file__).parent.parent / "toy_plugin.py"
ENTRIES = {entry.name: entry for entry in plugins._installed() if entry.dist.name == "fsdil-bench"}
ALL = load_registry()
#: The modules that hold methods, and the methods each of them holds.
MODULES: dict[str, list[str]] = {}
for _info in ALL.methods.values():
    if ALL.sources[f"method {_info.name}"] in ENTRIES:
        MODULES.setdefault(_info.factory.partition(":")[0], []).append(_info.name)


def things(registry) -> dict[str, str]:
    """Everything that the built-in plugins offer, and which of them does."""
    return {thing: plugin for thing, plugin in registry.sources.items() if plugin in ENTRIES}


class Broken(importlib.abc.MetaPathFinder):
    """Lets the import of one module fail."""

    def __init__(self, module):
        self.module = module

    def find_spec(self, name, path=None, target=None):
        if name == self.module:
            raise ImportError("broken on purpose")


#: The packages that plugins are in: `fsdil_methods`, `fsdil_bench.models.clip` and so on.
PACKAGES = {re.match(r"fsdil_bench\.\w+|\w+", entry.value)[0] for entry in ENTRIES.values()}


def own_modules() -> list[str]:
    return [name for name in sys.modules if f"{name}.".startswith(tuple(f"{p}." for p in PACKAGES))]


@pytest.fixture
def break_module(monkeypatch):
    """From now on a module of the project cannot be imported, nor one that imports it."""
    kept = {name: sys.modules[name] for name in own_modules()}

    def broken(module):
        for name in kept:
            del sys.modules[name]
        monkeypatch.setattr(sys, "meta_path", [Broken(module), *sys.meta_path])

    yield broken
    for name in own_modules():  # copies that were made meanwhile
        del sys.modules[name]
    sys.modules.update(kept)
    for name in PACKAGES & set(kept):
        parent, _, own = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], own, kept[name])


def assert_others_work(lost: str, tmp_path) -> None:
    """What the plugins besides `lost` offer is listed and can be loaded; a run goes through."""
    registry = load_registry([TOY])
    assert things(registry) == {t: p for t, p in things(ALL).items() if p != lost}
    for thing in things(registry):
        kind, name = thing.split()
        info = getattr(registry, f"{kind}s")[name]
        if kind == "method":
            load_method_class(info)
        elif kind == "scenario":
            assert callable(load_factory(info.factory, thing))
        elif kind == "backbone" and not info.pattern:
            assert describe_backbone(info, name).embed_dim
    if lost != "drawn":
        stream = fsdil_bench.load_stream("drawn-1shot", registry=registry)
        assert stream.domains[0].test.load(stream.domains[0].test.ids[0]).ndim == 3
    method = "ncm" if lost != "methods" else "toy-means"
    record = fsdil_bench.run(method, "toy-1shot", registry=registry, out=tmp_path)
    assert record.metrics["Last"] > 0


def test_the_plugins_of_the_project_are_known():
    assert {"methods", "drawn", "tiny-clip", "open-clip", "core50", "folder"} <= set(ENTRIES)
    assert {"method", "scenario", "backbone"} <= {thing.split()[0] for thing in things(ALL)}


@pytest.mark.parametrize("lost", ENTRIES)
def test_without_an_entry_point(lost, monkeypatch, tmp_path, call):
    found = plugins.entry_points

    def fewer(**query):
        return [entry for entry in found(**query) if entry.name != lost]

    monkeypatch.setattr(plugins, "entry_points", fewer)
    assert_others_work(lost, tmp_path)
    code, out, _ = call("list", "plugins", "--json")
    assert code == 0
    rows = {row["plugin"]: row["status"] for row in json.loads(out)}
    assert lost not in rows
    assert {rows[name] for name in ENTRIES if name != lost} == {"ok"}


@pytest.mark.parametrize("lost", ENTRIES)
def test_with_a_module_that_cannot_be_imported(lost, break_module, tmp_path, call):
    break_module(ENTRIES[lost].value)
    code, out, _ = call("list", "plugins", "--json")
    assert code == 0
    rows = {row["plugin"]: row for row in json.loads(out)}
    assert rows[lost]["status"] == "broken"
    assert "broken on purpose" in " ".join(rows[lost]["problems"])
    assert {rows[name]["status"] for name in ENTRIES if name != lost} == {"ok"}
    code, _, err = call("list", "methods")
    assert code == 0
    assert err.count("warning: ") == 1
    assert f"plugin '{lost}'" in err
    assert_others_work(lost, tmp_path)


def test_a_scenario_without_its_backbone_names_the_missing_one(break_module, call):
    """`drawn` stays usable with another one."""
    break_module("fsdil_scenarios.tiny_clip")
    drawn = ["run", "-m", "ncm", "-s", "drawn-1shot", "--order", "real,sketch", "-q"]
    code, _, err = call(*drawn)
    assert code == 2
    assert "unknown backbone 'tiny-clip'" in err
    toy = ["--base-limit", 1, "--plugin", TOY, "--backbone", "toy-clip"]
    assert call(*drawn[:-3], "--order", "real", *toy)[0] == 0


@pytest.mark.parametrize("module", MODULES)
def test_with_a_broken_implementation(module, break_module, call, tmp_path):
    """All methods are listed and all but those of the module run; these say what is wrong."""
    break_module(module)
    code, out, err = call("list", "methods", "--json")
    assert code == 0
    assert err == ""
    assert {row["method"] for row in json.loads(out)} >= set(ALL.methods)

    toy = ["--scenario", "toy-1shot", "--plugin", TOY, "-q"]
    for method in MODULES[module]:
        for command in (["run", "--method", method, *toy], ["list", "methods", method]):
            code, _, err = call(*command)
            assert code == 1
            [said, remedy] = err.removeprefix("error: ").strip().splitlines()
            assert said.startswith(f"method '{method}' cannot be loaded from '{module}:")
            assert said.endswith("ImportError: broken on purpose")
            assert "list plugins" in remedy

    registry = load_registry([TOY])
    for other in (m for name, of_module in MODULES.items() if name != module for m in of_module):
        load_method_class(registry.method(other))
    other = "ncm" if "ncm" not in MODULES[module] else "slda"
    assert call("run", "--method", other, *toy)[0] == 0
