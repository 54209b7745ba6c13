"""What a sweep asks for: a TOML file, or flags for the common case, as a list of wishes.

    name = "drawn"                    # settings of the sweep: see `wishes`
    jobs = 2

    [[grid]]                          # one cell for every combination of the lists
    methods = ["ncm", "cvlc*"]
    scenarios = ["drawn"]             # with `shots` data sets, otherwise ids such as "drawn-1shot"
    shots = [1, 2, 4, 8]
    seeds = "0-2"
    exclude = [{ method = "cvlc-lora", shots = 8 }]

    [method.finetune]                 # options of runs for one method
    config = { steps = 50 }

    [resources.cvlc]                  # what its runs need
    memory_gb = 4

A mistake is said with the file, the line and the remedy.
"""

from __future__ import annotations

import dataclasses
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import product
from pathlib import Path
from typing import Any

from fsdil_bench.data.scenario import ScenarioId
from fsdil_bench.errors import RequestError, unknown
from fsdil_bench.plugins.options import as_dict, resolve
from fsdil_bench.plugins.registry import Registry

from .launchers.launcher import Resources
from .request import (
    LISTS,
    ResourceOptions,
    RunOptions,
    Selection,
    Settings,
    Sweep,
    Wish,
    threads_per_run,
)
from .values import (
    excluded,
    exclusions,
    line_of,
    number_list,
    seconds,
    tables,
    texts,
)

_SEE = "docs/sweeps.md"
_PLURAL = {"method": "methods", "scenario": "scenarios", "seed": "seeds"}
_TABLES = ("config", "scenario_options")


def read_sweep(
    path: Path | None,
    registry: Registry,
    selection: Selection = Selection(),  # noqa: B008  (frozen)
    settings: Mapping[str, Any] | None = None,
) -> Sweep:
    """The sweep in a file, or, without one, the grid that `selection` names.

    `settings` are those of the command line. Methods are looked up in `registry`.
    """
    if path is None:
        content, text = {"grid": [selection.grid()], "name": "sweep"}, ""
    else:
        content, text = read_toml(path), path.read_text(encoding="utf-8")
    return _Reader(path, text, content, registry).sweep(selection, settings or {})


def plugin_files(path: Path) -> list[str]:
    """The plugin files that a sweep names: they are needed before anything else is looked up."""
    found = read_toml(path).get("plugins", [])
    return [found] if isinstance(found, str) else [str(file) for file in found]


def read_toml(path: Path) -> dict[str, Any]:
    """The content of a TOML file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RequestError(f"{path} cannot be read: {error.strerror}", "Check the path.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RequestError(f"{path} is not valid TOML: {error}", f"See {_SEE}.") from None


@dataclass(frozen=True)
class _Reader:
    """A file on its way to a sweep; knows where in the text a mistake is."""

    path: Path | None
    text: str
    content: Mapping[str, Any]
    registry: Registry

    def sweep(self, selection: Selection, given: Mapping[str, Any]) -> Sweep:
        own = {field.name for field in dataclasses.fields(Settings)}
        tables = ("grid", "method", "resources", "launcher_options", "include")
        for key in self.content:
            if key not in own and key not in tables and key not in LISTS:
                near = unknown("key", key, [*own, *tables, *LISTS], _SEE)
                with self.at(key):
                    raise near
        settings = self.settings(own, given)
        wishes = list(self.wishes(settings))
        if self.path is not None:
            wishes = [wish for wish in wishes if selection.takes(wish)]
        wishes = [self.with_config(wish, selection.config) for wish in wishes]
        if not wishes:
            raise RequestError(f"{self.name}: no cell is asked for", "Give methods and scenarios.")
        launcher_options = self.table("launcher_options")
        known = [wish for wish in wishes if wish.method in self.registry.methods]
        return Sweep(
            settings,
            tuple(known),
            tuple(wish for wish in wishes if wish.method not in self.registry.methods),
            launcher_options,
        )

    @property
    def name(self) -> str:
        return str(self.path) if self.path else "the command line"

    def settings(self, own: set[str], given: Mapping[str, Any]) -> Settings:
        values = {key: value for key, value in self.content.items() if key in own}
        for key, value in values.items():
            with self.at(key):
                resolve(Settings, {key: value}, owner="the sweep", see=_SEE)
        default = {"name": self.path.stem if self.path else "sweep"}
        found = resolve(Settings, default, values, given, owner="the sweep", see=_SEE)
        with self.at("time_limit"):
            seconds(found.time_limit)
        return found

    def wishes(self, settings: Settings) -> Iterator[Wish]:
        """All cells, those of several grids once."""
        seen: set[str] = set()
        for wish in self.all_wishes(settings):
            text = repr((wish.method, wish.scenario, wish.seed, sorted(wish.options.items())))
            if text not in seen:
                seen.add(text)
                yield wish

    def all_wishes(self, settings: Settings) -> Iterator[Wish]:
        self.check_method_tables()
        shared = {name: self.content[name] for name in LISTS if name in self.content}
        with self.at("grid"):
            grids = tables("grid", self.content.get("grid", [{}]))
        for number, grid in enumerate(grids):
            yield from self.expand(shared | grid, settings, "grid", number)
        with self.at("include"):
            extras = tables("include", self.content.get("include", []))
        for number, extra in enumerate(extras):
            lists = {_PLURAL.get(key, key): value for key, value in extra.items()}
            yield from self.expand(lists, settings, "include", number)

    def expand(
        self, grid: Mapping[str, Any], settings: Settings, table: str, number: int
    ) -> Iterator[Wish]:
        """The cells of one grid."""
        options = {f.name for f in dataclasses.fields(RunOptions)}
        for key in grid:
            if key not in options and key not in (*LISTS, *_TABLES, "exclude"):
                valid = ", ".join([*LISTS, "exclude", *_TABLES, *sorted(options)])
                with self.at(key, table, number):
                    near = unknown(f"key of [[{table}]]:", key, [*LISTS, *options], _SEE)
                    raise RequestError(near.message, f"{near.remedy} Valid keys: {valid}.")
        with self.at("methods", table, number):
            methods = self.methods(grid.get("methods"), settings)
        with self.at("scenarios", table, number):
            scenarios = self.scenarios(grid.get("scenarios"), grid.get("shots"))
        with self.at("seeds", table, number):
            seeds = number_list("seeds", grid.get("seeds", [0]))
        with self.at("exclude", table, number):
            exclude = exclusions(grid.get("exclude", []))
        for method, scenario, seed in product(methods, scenarios, seeds):
            if not any(excluded(rule, method, scenario, seed) for rule in exclude):
                yield Wish(
                    method,
                    str(scenario),
                    seed,
                    self.options(method, grid, settings, table, number),
                    self.resources(method, settings),
                )

    def methods(self, given: Any, settings: Settings) -> list[str]:
        """Names and patterns as names."""
        names = texts("methods", given)
        found: list[str] = []
        for name in names:
            known = [*self.registry.methods, *settings.planned]
            matching = [each for each in known if fnmatchcase(each, name)]
            if not matching:
                raise unknown("method", name, known, "fsdil-bench list methods")
            found += matching
        return list(dict.fromkeys(found))

    def scenarios(self, given: Any, shots: Any) -> list[ScenarioId]:
        """Scenario ids, or data sets times shots."""
        names = texts("scenarios", given)
        several = [] if shots is None else number_list("shots", shots)
        if shots is None:
            found = [ScenarioId.parse(name) for name in names]
        else:
            parts = [name.partition("@") for name in names]
            suffix = [f"@{variant}" if at else "" for _, at, variant in parts]
            pairs = [(part[0], end) for part, end in zip(parts, suffix, strict=True)]
            for name, _ in pairs:
                if re.fullmatch(r".*-\d+shot", name):
                    raise RequestError(
                        f"'{name}' names its shots, and `shots` does too", "Name the data set only."
                    )
            found = [
                ScenarioId.parse(f"{name}-{k}shot{end}") for name, end in pairs for k in several
            ]
        for scenario in found:
            variants = self.registry.scenario(scenario.dataset).all_variants
            if scenario.variant and scenario.variant not in variants:
                raise unknown("variant", scenario.variant, variants, "fsdil-bench list scenarios")
        return found

    def options(
        self, method: str, grid: Mapping[str, Any], settings: Settings, table: str, number: int
    ) -> dict[str, Any]:
        """The arguments of `fsdil_bench.run` that are not the defaults."""
        names = {f.name for f in dataclasses.fields(RunOptions)}
        own = self.table("method").get(method, {})
        layers = [{k: v for k, v in layer.items() if k in names} for layer in (own, grid)]
        with self.at(next(iter(layers[1]), ""), table, number):
            chosen = resolve(RunOptions, *layers, owner=f"[[{table}]]", see=_SEE)
        plain, default = as_dict(chosen), as_dict(RunOptions())
        options = {name: value for name, value in plain.items() if value != default[name]}
        for name in ("data", "names", "synonyms"):
            if options.get(name):
                options[name] = str(Path(options[name]).expanduser().absolute())
        for name in _TABLES:
            merged: dict[str, Any] = {}
            for layer, place in ((own, ("method", method)), (grid, (table, number))):
                values = layer.get(name, {})
                if not isinstance(values, dict):
                    with self.at(name, *place):
                        raise RequestError(
                            f"{name} = {values!r} does not fit",
                            f"Write {name} = {{ key = value }}.",
                        )
                merged |= values
            if merged:
                options[name] = merged
        if settings.reuse_base:
            options["reuse_base"] = True
        return options

    def check_method_tables(self) -> None:
        names = [*(f.name for f in dataclasses.fields(RunOptions)), *_TABLES]
        for method, values in self.table("method").items():
            with self.at("", "method", method):
                if method not in self.registry.methods and method not in self._planned():
                    raise unknown(
                        "method", method, self.registry.methods, "fsdil-bench list methods"
                    )
                if not isinstance(values, dict):
                    raise RequestError(f"method.{method} is not a table", f"See {_SEE}.")
            for key, value in values.items():
                with self.at(key, "method", method):
                    if key not in names:
                        near = unknown(f"key of [method.{method}]:", key, names, _SEE)
                        raise RequestError(
                            near.message,
                            f"{near.remedy} Valid keys: {', '.join(names)}. The method's own "
                            f"options belong into config = {{ {key} = ... }}.",
                        )
                    if key not in _TABLES:
                        resolve(RunOptions, {key: value}, owner=f"[method.{method}]", see=_SEE)

    def _planned(self) -> Sequence[str]:
        planned: Sequence[str] = self.content.get("planned", ())
        return planned

    def resources(self, method: str, settings: Settings) -> Resources:
        """What [resources] says, and [resources.METHOD] over it."""
        everything = self.table("resources")
        shared = {k: v for k, v in everything.items() if not isinstance(v, dict)}
        own = everything.get(method, {})
        with self.at("", "resources", method if own else None):
            found = resolve(ResourceOptions, shared, own, owner="[resources]", see=_SEE)
            limit = found.time_limit if found.time_limit is not None else settings.time_limit
            return Resources(
                cpus=found.cpus or threads_per_run(settings),
                gpus=found.gpus,
                memory_gb=found.memory_gb,
                time_limit=seconds(limit),
            )

    def with_config(self, wish: Wish, assignments: Iterable[str]) -> Wish:
        """`--set key=value` for every method, `--set method.key=value` for one."""
        config = dict(wish.options.get("config", {}))
        for assignment in assignments:
            key, equals, value = assignment.partition("=")
            if not equals or not key.strip():
                raise RequestError(
                    f"'{assignment}' is not of the form key=value",
                    "Write `--set lr=0.1`, or `--set finetune.lr=0.1` for one method.",
                )
            method, dot, option = key.strip().rpartition(".")
            if not dot or method == wish.method:
                config[option] = value.strip()
        if not config:
            return wish
        return dataclasses.replace(wish, options={**wish.options, "config": config})

    def table(self, name: str) -> Mapping[str, Any]:
        found = self.content.get(name, {})
        if not isinstance(found, dict):
            with self.at(name):
                raise RequestError(f"{name} = {found!r} does not fit", f"Write it as [{name}].")
        return found

    @contextmanager
    def at(self, key: str, table: str = "", which: int | str | None = None) -> Iterator[None]:
        """Put file and line before the message of a mistake made inside."""
        try:
            yield
        except RequestError as error:
            if self.path is None or error.message.startswith(f"{self.path}"):
                raise
            line = line_of(self.text, key, table, which)
            where = f"{self.path}, line {line}" if line else f"{self.path}"
            raise RequestError(f"{where}: {error.message}", error.remedy) from None
