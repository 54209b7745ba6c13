"""Finding plugins and collecting what they offer, so that one broken plugin costs only itself.

Every step (import, API version, hook names, the call of each hook, the names it claims) is taken
per plugin; what fails is kept as a problem of that plugin, shown by `fsdil-bench list plugins`
and as one warning line, and everything else continues.
"""

from __future__ import annotations

import importlib.util
import inspect
import re
import sys
from collections.abc import Container, Iterable
from dataclasses import dataclass, field, replace
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import pluggy

from fsdil_bench.errors import PluginError, RequestError, unknown

from . import hookspecs
from .cell_code import in_no_file
from .descriptors import (
    API_VERSION,
    BackboneInfo,
    LauncherInfo,
    MethodInfo,
    ScenarioInfo,
    TrackerInfo,
    name_problem,
)
from .harness_guard import changed, snapshot

Info = TypeVar("Info", MethodInfo, ScenarioInfo, BackboneInfo, LauncherInfo, TrackerInfo)

#: Descriptor type and collecting hook of each kind of thing a plugin offers.
KINDS: dict[str, tuple[type, str]] = {
    "method": (MethodInfo, "fsdil_methods"),
    "scenario": (ScenarioInfo, "fsdil_scenarios"),
    "backbone": (BackboneInfo, "fsdil_backbones"),
    "launcher": (LauncherInfo, "fsdil_launchers"),
    "tracker": (TrackerInfo, "fsdil_trackers"),
}


_SHOWN = 5  # names of changed functions in a message

#: This distribution, and the packages in which its own plugins are.
_OWN = "fsdil-bench"
_OWN_PACKAGES = ("fsdil_bench", "fsdil_methods", "fsdil_scenarios")

_NAME_IT = "Name it: MethodInfo('my-idea', 'what it does', MyIdea) in place of the class."

_imported_here: dict[str, str] = {}


@dataclass
class Plugin:
    """A plugin as found: where it comes from, what it offers, what is wrong with it.

    `module` is the name of an installed one. `third_party` is false for what comes with the
    harness, `imported` for plugins that this process knows only by name.
    """

    name: str
    source: str
    version: str = ""
    module: str = ""
    third_party: bool = True
    imported: bool = False
    offers: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def key(self) -> str:
        """What distinguishes it from all others: a file, or a distribution and an entry point."""
        return f"{self.source}:{self.name}" if self.module else str(Path(self.source).absolute())

    @property
    def label(self) -> str:
        """Its distribution with the version, or its file without folders."""
        return f"{self.source} {self.version}" if self.module else Path(self.source).name


@dataclass
class Registry:
    """All that can be run, by name, and the plugins it came from."""

    manager: pluggy.PluginManager
    plugins: list[Plugin] = field(default_factory=list)
    methods: dict[str, MethodInfo] = field(default_factory=dict)
    scenarios: dict[str, ScenarioInfo] = field(default_factory=dict)
    backbones: dict[str, BackboneInfo] = field(default_factory=dict)
    launchers: dict[str, LauncherInfo] = field(default_factory=dict)
    trackers: dict[str, TrackerInfo] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    files: list[Path] = field(default_factory=list)
    _closed: dict[str, tuple[Plugin, EntryPoint | Path]] = field(default_factory=dict)

    def method(self, name: str) -> MethodInfo:
        """The method called `name`."""
        return _find("method", name, self.methods)

    def scenario(self, name: str) -> ScenarioInfo:
        """The data set called `name` (without shots and variant)."""
        return _find("scenario", name, self.scenarios)

    def launcher(self, name: str) -> LauncherInfo:
        """The launcher called `name`."""
        return _find("launcher", name, self.launchers)

    def tracker(self, name: str) -> TrackerInfo:
        """The tracker called `name`."""
        return _find("tracker", name, self.trackers)

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

    def add(self, plugin: Plugin, origin: EntryPoint | Path) -> None:
        """Add a plugin without importing it."""
        self.plugins.append(plugin)
        self._closed[plugin.key] = plugin, origin

    def add_files(self, files: Iterable[str | Path]) -> None:
        """Add plugin files without importing them."""
        for file in files:
            path = Path(file)
            if not path.is_file():
                raise RequestError(
                    f"plugin file '{file}' does not exist", "Check the path of --plugin."
                )
            self.add(Plugin(path.stem, str(path)), path)
            self.files.append(path.absolute())

    def open(self, keys: Iterable[str]) -> None:
        """Import listed plugins and collect what they offer."""
        for key in keys:
            if key in self._closed:
                _add(self, *self._closed.pop(key))

    def origin(self, kind: str, name: str) -> Plugin | None:
        """The plugin that offers a method, scenario or backbone; None if that is not known."""
        offered = f"{kind} {name}"
        return next((plugin for plugin in self.plugins if offered in plugin.offers), None)

    def imported(self) -> list[Plugin]:
        """The plugins of third parties whose code runs in this process."""
        return [plugin for plugin in self.plugins if plugin.third_party and plugin.imported]

    def check_harness(self) -> None:
        """Raise an error if a plugin has changed the harness since it was imported."""
        if not self.imported() or not (names := changed(snapshot())):
            return
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        loaded = ", ".join(plugin.label for plugin in self.imported())
        raise PluginError(
            f"a plugin has changed the harness: {', '.join(names[:_SHOWN])}{more}",
            f"The result would not be the harness's own. Plugins in this process: {loaded}.",
        )

    def warnings(self) -> list[str]:
        """One line per problem, for the head of every command's output."""
        return [
            f"plugin '{p.name}' ({p.source}): {text}" for p in self.plugins for text in p.problems
        ]

    def offering(self, method: type | MethodInfo) -> tuple[str, Registry]:
        """The name of a method that no plugin offers, and this registry with it besides.

        A class is called after its name: `NearestMean` becomes "nearest-mean".
        """
        info = method if isinstance(method, MethodInfo) else _described(method)
        if problem := name_problem("method", info.name):
            raise RequestError(problem, _NAME_IT)
        if info.name in self.methods:
            owner = self.sources[f"method {info.name}"]
            raise RequestError(f"there is a method '{info.name}' already, of '{owner}'", _NAME_IT)
        plugin = _plugin_of(info)
        snapshot()
        _imported_here[plugin.key] = plugin.label
        more = replace(
            self,
            plugins=[*self.plugins, plugin],
            methods={**self.methods, info.name: info},
            sources={**self.sources, f"method {info.name}": plugin.name},
        )
        return info.name, more

    def notify_finished(self, record: Any) -> list[str]:
        """Call every `fsdil_run_finished`; what raises is returned as text, one line each."""
        return self._notify("fsdil_run_finished", record=record)

    def notify_domain(self, domain: Any) -> list[str]:
        """Call every `fsdil_domain_finished`, in the same way."""
        return self._notify("fsdil_domain_finished", domain=domain)

    def _notify(self, hook: str, **given: Any) -> list[str]:
        failures = []
        for impl in getattr(self.manager.hook, hook).get_hookimpls():
            arguments = {name: value for name, value in given.items() if name in impl.argnames}
            try:
                impl.function(**arguments)
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                failures.append(f"plugin '{impl.plugin_name}' in {hook}: {_say(error)}")
        return failures


def _described(method: type) -> MethodInfo:
    """A class of a method with what can be read off it."""
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", method.__name__)
    said = (inspect.getdoc(method) or "").partition("\n")[0] if "__doc__" in vars(method) else ""
    return MethodInfo("-".join(words).lower(), said.rstrip("."), method)


def _plugin_of(info: MethodInfo) -> Plugin:
    """The plugin that a method stands for which was handed over: its file, or a notebook."""
    offers = [f"method {info.name}"]
    if isinstance(info.factory, str) or in_no_file(info.factory):
        # Called like this in records, where a file or a package would stand.
        return Plugin("notebook", "notebook", imported=True, offers=offers)
    file = inspect.getfile(info.factory)
    return Plugin(Path(file).stem, file, imported=True, offers=offers)


def load_registry(
    files: Iterable[str | Path] = (), third_party: Container[str] | None = None
) -> Registry:
    """Load all installed plugins, then the plugin `files`.

    With `third_party`, only those of third parties are imported whose key is in it; all others are
    listed without what they offer.
    """
    manager = pluggy.PluginManager(hookspecs.GROUP)
    manager.add_hookspecs(hookspecs)
    registry = Registry(manager)
    for entry in _installed():
        plugin = Plugin(entry.name, entry.value, module=entry.value)
        if entry.dist is not None:
            plugin.source, plugin.version = entry.dist.name, entry.dist.version
        plugin.third_party = not _is_own(entry)
        registry.add(plugin, entry)
    registry.add_files(files)
    listed = [p.key for p in registry.plugins if p.third_party]
    own = [p.key for p in registry.plugins if not p.third_party]
    registry.open(own + [key for key in listed if third_party is None or key in third_party])
    return registry


def imported_here() -> dict[str, str]:
    """The plugins of third parties that this process has ever imported: labels by key."""
    return dict(_imported_here)


def _installed() -> list[EntryPoint]:
    """Entry points of the group, this distribution's first: no other takes a built-in name."""
    found = {(entry.name, entry.value): entry for entry in entry_points(group=hookspecs.GROUP)}
    return sorted(found.values(), key=lambda entry: (not _is_own(entry), entry.name, entry.value))


def _is_own(entry: EntryPoint) -> bool:
    """Whether a plugin comes with the harness: its distribution says so, not only its name."""
    top = entry.value.partition(":")[0].partition(".")[0]
    return entry.dist is not None and entry.dist.name == _OWN and top in _OWN_PACKAGES


def _add(registry: Registry, plugin: Plugin, origin: EntryPoint | Path) -> None:
    plugin.imported = True
    if plugin.third_party:
        snapshot()  # before its code can change anything
        _imported_here[plugin.key] = plugin.label
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
