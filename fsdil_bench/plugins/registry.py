"""Finding plugins and collecting what they offer, so that one broken plugin costs only itself.

Every step (import, API version, hook names, the call of each hook, the names it claims) is taken
per plugin; what fails is kept as a problem of that plugin, shown by `fsdil-bench list plugins`
and as one warning line, and everything else continues.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import pluggy

from fsdil_bench.errors import RequestError, unknown

from . import hookspecs
from .descriptors import (
    API_VERSION,
    BackboneInfo,
    LauncherInfo,
    MethodInfo,
    ScenarioInfo,
    name_problem,
)

Info = TypeVar("Info", MethodInfo, ScenarioInfo, BackboneInfo, LauncherInfo)

#: Descriptor type and collecting hook of each kind of thing a plugin offers.
KINDS: dict[str, tuple[type, str]] = {
    "method": (MethodInfo, "fsdil_methods"),
    "scenario": (ScenarioInfo, "fsdil_scenarios"),
    "backbone": (BackboneInfo, "fsdil_backbones"),
    "launcher": (LauncherInfo, "fsdil_launchers"),
}


@dataclass
class Plugin:
    """A plugin as found: where it comes from, what it offers, what is wrong with it."""

    name: str
    source: str
    version: str = ""
    offers: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


@dataclass
class Registry:
    """All that can be run, by name, and the plugins it came from."""

    manager: pluggy.PluginManager
    plugins: list[Plugin] = field(default_factory=list)
    methods: dict[str, MethodInfo] = field(default_factory=dict)
    scenarios: dict[str, ScenarioInfo] = field(default_factory=dict)
    backbones: dict[str, BackboneInfo] = field(default_factory=dict)
    launchers: dict[str, LauncherInfo] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    files: list[Path] = field(default_factory=list)

    def method(self, name: str) -> MethodInfo:
        """The method called `name`."""
        return _find("method", name, self.methods)

    def scenario(self, name: str) -> ScenarioInfo:
        """The data set called `name` (without shots and variant)."""
        return _find("scenario", name, self.scenarios)

    def launcher(self, name: str) -> LauncherInfo:
        """The launcher called `name`."""
        return _find("launcher", name, self.launchers)

    def backbone(self, name: str) -> BackboneInfo:
        """The backbone called `name`, or the family that the name belongs to."""
        for info in sorted(self.backbones.values(), key=lambda info: bool(info.pattern)):
            if info.covers(name):
                return info
        offered = [
            f"{info.pattern} (for instance {info.example})" if info.pattern else info.name
            for info in self.backbones.values()
        ]
        single = [info.name for info in self.backbones.values() if not info.pattern]
        near = unknown("backbone", name, single, "fsdil-bench list backbones")
        raise RequestError(near.message, f"There are: {', '.join(offered)}. {near.remedy}")

    def warnings(self) -> list[str]:
        """One line per problem, for the head of every command's output."""
        return [
            f"plugin '{p.name}' ({p.source}): {text}" for p in self.plugins for text in p.problems
        ]

    def notify_finished(self, record: Any) -> list[str]:
        """Call every `fsdil_run_finished`; what raises is returned as text, one line each."""
        failures = []
        for impl in self.manager.hook.fsdil_run_finished.get_hookimpls():
            arguments = {"record": record} if "record" in impl.argnames else {}
            try:
                impl.function(**arguments)
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                failures.append(f"plugin '{impl.plugin_name}' in fsdil_run_finished: {_say(error)}")
        return failures


def load_registry(files: Iterable[str | Path] = ()) -> Registry:
    """Load all installed plugins, then the plugin `files`."""
    manager = pluggy.PluginManager(hookspecs.GROUP)
    manager.add_hookspecs(hookspecs)
    registry = Registry(manager)
    for entry in _installed():
        plugin = Plugin(entry.name, entry.value)
        if entry.dist is not None:
            plugin.source, plugin.version = entry.dist.name, entry.dist.version
        _add(registry, plugin, entry)
    for file in files:
        path = Path(file)
        if not path.is_file():
            raise RequestError(
                f"plugin file '{file}' does not exist", "Check the path of --plugin."
            )
        _add(registry, Plugin(path.stem, str(path)), path)
        registry.files.append(path.absolute())
    return registry


def _installed() -> list[EntryPoint]:
    """Entry points of the group, this distribution's first: no other takes a built-in name."""
    found = {(entry.name, entry.value): entry for entry in entry_points(group=hookspecs.GROUP)}
    return sorted(found.values(), key=lambda e: (not e.value.startswith("fsdil_"), e.name, e.value))


def _add(registry: Registry, plugin: Plugin, origin: EntryPoint | Path) -> None:
    registry.plugins.append(plugin)
    try:
        module = _import_file(origin) if isinstance(origin, Path) else origin.load()
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        plugin.problems.append(f"cannot be imported: {_say(error)}")
        return
    wanted = getattr(module, "FSDIL_API", API_VERSION)
    if wanted != API_VERSION:
        plugin.problems.append(f"was written for API {wanted}, this is API {API_VERSION}")
        return
    if not _register(registry.manager, plugin, module):
        return
    for kind, (info_type, hook) in KINDS.items():
        known: dict[str, Any] = getattr(registry, kind + "s")
        for info in _collect(registry.manager, plugin, module, hook, info_type):
            if problem := name_problem(kind, info.name):
                plugin.problems.append(problem)
                continue
            if info.name in known:
                owner = registry.sources[f"{kind} {info.name}"]
                plugin.problems.append(f"{kind} '{info.name}' is already provided by '{owner}'")
                continue
            known[info.name] = info
            registry.sources[f"{kind} {info.name}"] = plugin.name
            plugin.offers.append(f"{kind} {info.name}")


def _import_file(path: Path) -> ModuleType:
    name = f"fsdil_plugin_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickle look their module up here
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _register(manager: pluggy.PluginManager, plugin: Plugin, module: Any) -> bool:
    """Register `module`; a misspelt hook or argument is a problem, not a crash."""
    try:
        manager.register(module, f"{plugin.name} ({plugin.source})")
        manager.check_pending()
    except (pluggy.PluginValidationError, ValueError) as error:
        if manager.is_registered(module):
            manager.unregister(module)
        plugin.problems.append(" ".join(str(error).split()))
        return False
    if not manager.get_hookcallers(module):
        plugin.problems.append("has no function marked with @hookimpl, so it does nothing")
        return False
    return True


def _collect(
    manager: pluggy.PluginManager, plugin: Plugin, module: Any, hook: str, info_type: type[Info]
) -> list[Info]:
    infos: list[Info] = []
    for impl in getattr(manager.hook, hook).get_hookimpls():
        if impl.plugin is not module:
            continue
        try:
            offered = list(impl.function())
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            plugin.problems.append(f"{hook} raised {_say(error)}")
            continue
        for info in offered:
            if isinstance(info, info_type):
                infos.append(info)
            else:
                plugin.problems.append(f"{hook} returned {info!r}, not a {info_type.__name__}")
    return infos


def _find(kind: str, name: str, known: dict[str, Info]) -> Info:
    if name not in known:
        raise unknown(kind, name, known, f"fsdil-bench list {kind}s")
    return known[name]


def _say(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"
