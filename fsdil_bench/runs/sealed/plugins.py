"""Plugins in a sealed run: which of them the process of the harness imports, and which not.

The harness imports what comes with it, and no plugin that offers the method. Another process
imports that one and describes its methods (`plugins.described`). A scenario is the source of the
data and a backbone makes the features, so their code must run in the harness: a third party may
offer them in a plugin that does not offer the method.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from fsdil_bench.errors import RequestError
from fsdil_bench.plugins.described import described_method
from fsdil_bench.plugins.descriptors import BackboneInfo
from fsdil_bench.plugins.registry import Plugin, Registry, load_registry
from fsdil_bench.runs.request import RunRequest

from .process import SealedProcess
from .task import surroundings


def sealed_registry(request: RunRequest, registry: Registry) -> Registry:
    """The registry for a sealed run of a request: the method's plugin is described, not imported.

    Of `registry` only the list of plugins counts.
    """
    third = [plugin for plugin in registry.plugins if plugin.third_party]
    known = load_registry(registry.files, ()) if registry.imported() else registry
    dataset = request.scenario.dataset
    method = _offering(known, third, "method", request.method)
    scenario = _offering(known, third, "scenario", dataset)
    backbone = _offering(
        known, third, "backbone", request.backbone or _usual(known, third, dataset)
    )
    for kind, plugin in (("scenario", scenario), ("backbone", backbone)):
        if plugin is not None and method is not None and plugin.key == method.key:
            raise RequestError(
                f"plugin '{plugin.name}' offers both the method '{request.method}' and the {kind}: "
                "in a sealed run the harness must import the one and not the other",
                f"Put the {kind} into a plugin of its own, then a sealed run can keep them apart.",
            )
    wanted = frozenset(plugin.key for plugin in (scenario, backbone) if plugin is not None)
    described = (method,) if method is not None else ()
    return _loaded(_files(registry), wanted, tuple(plugin.key for plugin in described))


#: Plugin files with the time of their last change.
Files = tuple[tuple[Path, int], ...]


def _files(registry: Registry) -> Files:
    return tuple((file, file.stat().st_mtime_ns) for file in registry.files)


@cache
def _loaded(files: Files, wanted: frozenset[str], described: tuple[str, ...]) -> Registry:
    """A registry in which some plugins are imported and some described; the same for all seeds."""
    registry = load_registry([file for file, _ in files], wanted)
    for plugin in registry.plugins:
        if plugin.key in described:
            said = _description(plugin.key, files)
            plugin.problems = said["problems"]
            for info in map(described_method, said["methods"]):
                if registry.methods.setdefault(info.name, info) is info:
                    plugin.offers.append(f"method {info.name}")
                    registry.sources[f"method {info.name}"] = plugin.name
    return registry


def _offering(known: Registry, third: list[Plugin], kind: str, name: str) -> Plugin | None:
    """The plugin of a third party that offers something; None if the harness itself does."""
    if kind == "backbone":
        if any(info.covers(name) for info in known.backbones.values()):
            return None
    elif name in getattr(known, f"{kind}s"):
        return None
    files = _files(known)
    for plugin in third:
        if name in _names(_description(plugin.key, files), kind, name):
            return plugin
    problems = [
        f"plugin '{plugin.name}': {text}"
        for plugin in third
        for text in _description(plugin.key, files)["problems"]
    ]
    if problems and name:
        raise RequestError(f"no plugin offers the {kind} '{name}'", "; ".join(problems))
    return None


def _names(said: dict[str, Any], kind: str, name: str) -> list[str]:
    if kind == "method":
        return [each["info"]["name"] for each in said["methods"]]
    if kind == "scenario":
        return list(said["scenarios"])
    families = [BackboneInfo(own, "", "", pattern=form) for own, form in said["backbones"].items()]
    return [name for info in families if info.covers(name)]


def _usual(known: Registry, third: list[Plugin], dataset: str) -> str:
    """The backbone that a scenario takes by default."""
    if dataset in known.scenarios:
        return known.scenarios[dataset].default_backbone
    for plugin in third:
        usual: dict[str, str] = _description(plugin.key, _files(known))["scenarios"]
        if dataset in usual:
            return usual[dataset]
    return ""


@cache
def _description(key: str, files: Files) -> dict[str, Any]:
    """What a plugin offers, said by a process of its own that has imported it."""
    nothing: dict[str, Any] = {"methods": [], "scenarios": {}, "backbones": {}}
    process = SealedProcess()
    try:
        process.send(
            "describe", {}, scratch=process.scratch, plugins=[key],
            refused=[], **surroundings(load_registry([file for file, _ in files], ())),
        )  # fmt: skip
        message = process.receive()
        if message is not None and message.kind == "described":
            return message.fields
    finally:
        ended = process.close()
    why = message.fields.get("message", "") if message is not None else ended.printed[-500:]
    return nothing | {"problems": [f"cannot be imported: {' '.join(why.split()) or ended.code}"]}
