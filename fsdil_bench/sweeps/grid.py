"""The grids of a sweep file: a run for every combination of methods, scenarios, shots, seeds and
orders of domains.

The options of a run come from its [method.NAME] table and then from its grid. Which options there
are is said by the fields of `RunRequest`.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import product
from typing import Any

from fsdil_bench.data.scenario import ScenarioId
from fsdil_bench.data.stream_request import simple_options
from fsdil_bench.errors import RequestError, unknown
from fsdil_bench.plugins.options import resolve
from fsdil_bench.plugins.registry import Registry
from fsdil_bench.runs.request import RunRequest

from .orders import orders_of
from .request import LISTS, MOST_RUNS, SweepRun
from .sweep_text import SweepText
from .values import check_length, number_list, seed_list, short, tables, texts

SEE = "docs/sweeps.md"

#: Fields that are lists of a grid, or settings of the whole sweep.
_NOT_HERE = ("method", "scenario", "seed", "reuse_base", "track")
_SIMPLE = simple_options(RunRequest)
#: The options of a run that a grid or a method may set, and those that are tables.
OPTIONS = tuple(f.name for f in dataclasses.fields(_SIMPLE) if f.name not in _NOT_HERE)
TABLES = tuple(
    f.name for f in dataclasses.fields(RunRequest) if f.name not in (*OPTIONS, *_NOT_HERE)
)
KEYS = (*LISTS, "free_base")
_PLURAL = {"method": "methods", "scenario": "scenarios", "seed": "seeds"}
_MATCHES = ("method", "scenario", "dataset", "shots", "seed")


@dataclass(frozen=True)
class Grids:
    """The grids of a file. `planned` are methods that may be named although no plugin has them;
    `about_orders` is what flags say about orders of domains, which wins over every grid."""

    file: SweepText
    registry: Registry
    planned: Collection[str]
    reuse_base: bool
    track: tuple[str, ...] = ()
    about_orders: Mapping[str, Any] = field(default_factory=dict)

    def runs(self) -> Iterator[SweepRun]:
        """All runs that are asked for; some perhaps by several grids."""
        self._check_method_tables()
        self._check_shared_options()
        content = self.file.content
        shared = {name: content[name] for name in KEYS if name in content}
        with self.file.at("grid"):
            default: list[Any] = [{}] if shared or "include" not in content else []
            grids = tables("grid", content.get("grid", default))
        for number, grid in enumerate(grids):
            yield from self._expand(shared | grid, "grid", number)
        with self.file.at("include"):
            extras = tables("include", content.get("include", []))
        for number, extra in enumerate(extras):
            lists = {_PLURAL.get(key, key): value for key, value in extra.items()}
            yield from self._expand(lists, "include", number)

    def _expand(self, grid: Mapping[str, Any], table: str, number: int) -> Iterator[SweepRun]:
        """The runs of one grid."""
        self._check_keys(grid, table, number)
        grid = {**grid, **self.about_orders}
        with self.file.at("methods", table, number):
            methods = self._methods(grid.get("methods"))
        with self.file.at("scenarios", table, number):
            scenarios = self._scenarios(grid.get("scenarios"), grid.get("shots"))
        with self.file.at("seeds", table, number):
            seeds = seed_list("seeds", grid.get("seeds", [0]))
        with self.file.at("orders", table, number):
            orders = orders_of(grid)
        with self.file.at("exclude", table, number):
            exclude = exclusions(grid.get("exclude", []))
        size = len(methods) * len(scenarios) * len(seeds) * len(orders)
        if size > MOST_RUNS:
            with self.file.at("", table, number):
                raise RequestError(
                    f"{size:,} runs are asked for", f"A sweep has at most {MOST_RUNS:,}."
                )
        for method in methods:
            options = self._options(method, grid, table, number)
            with self.file.at("", table, number):
                request = RunRequest.of(method=method, scenario=scenarios[0], **options)
                request = request.with_absolute_paths()
            for scenario, seed, (order, domains) in product(scenarios, seeds, orders):
                if not any(excluded(rule, method, scenario, seed) for rule in exclude):
                    asked = replace(
                        request, scenario=scenario, seed=seed, order=domains or request.order
                    )
                    yield SweepRun(asked, order=order)

    def _check_keys(self, grid: Mapping[str, Any], table: str, number: int) -> None:
        for key in grid:
            if key not in (*KEYS, "exclude", *TABLES, *OPTIONS):
                valid = ", ".join([*KEYS, "exclude", *TABLES, *sorted(OPTIONS)])
                with self.file.at(key, table, number):
                    near = unknown(f"key of [[{table}]]:", key, [*KEYS, *OPTIONS], SEE)
                    raise RequestError(near.message, f"{near.remedy} Valid keys: {valid}.")
        for key in ("methods", "scenarios"):
            if key not in grid:
                with self.file.at(key, table, number):
                    raise self._missing(key)

    def _missing(self, key: str) -> RequestError:
        """In the words of the place where the user left it out."""
        if self.file.path is None:
            return RequestError(
                f"--{key} is missing", "Give --methods and --scenarios, or a file (docs/sweeps.md)."
            )
        if not self.file.content:
            return RequestError("no run is asked for", f"Write a [[grid]]: see {SEE}.")
        return RequestError(f"{key} is missing", f'Write {key} = ["..."].')

    def _methods(self, given: Any) -> list[str]:
        """Names and patterns as names."""
        found: list[str] = []
        for name in texts("methods", given):
            known = [*self.registry.methods, *self.planned]
            matching = [each for each in known if fnmatchcase(each, name)]
            if not matching:
                raise unknown("method", name, known, "fsdil-bench list methods")
            found += matching
        return list(dict.fromkeys(found))

    def _scenarios(self, given: Any, shots: Any) -> list[ScenarioId]:
        """Scenario ids, or data sets times shots."""
        names = texts("scenarios", given)
        if shots is None:
            found = [ScenarioId.parse(name) for name in names]
        else:
            numbers = number_list("shots", shots, least=1)
            check_length("scenarios with shots", len(names) * len(numbers))
            found = [_with_shots(name, number) for name in names for number in numbers]
        for scenario in found:
            variants = self.registry.scenario(scenario.dataset).all_variants
            if scenario.variant and scenario.variant not in variants:
                raise unknown("variant", scenario.variant, variants, "fsdil-bench list scenarios")
        return found

    def _options(
        self, method: str, grid: Mapping[str, Any], table: str, number: int
    ) -> dict[str, Any]:
        """The fields of the request that the file, a method's table and a grid set, checked."""
        own = self.file.table("method").get(method, {})
        shared = {key: value for key, value in self.file.content.items() if key in OPTIONS}
        given = {key: value for key, value in grid.items() if key in OPTIONS}
        with self.file.at(next(iter(given), ""), table, number):
            resolve(_SIMPLE, given, owner=f"[[{table}]]", see=SEE)
        options = shared | {key: value for key, value in own.items() if key in OPTIONS} | given
        for name in TABLES:
            options[name] = {}
            for layer, place in ((own, ("method", method)), (grid, (table, number))):
                values = layer.get(name, {})
                if not isinstance(values, dict):
                    with self.file.at(name, *place):
                        raise RequestError(
                            f"{name} = {short(values)} does not fit",
                            f"Write {name} = {{ key = value }}.",
                        )
                options[name] |= values
        return options | {"reuse_base": self.reuse_base, "track": self.track}

    def _check_shared_options(self) -> None:
        for key, value in self.file.content.items():
            if key in OPTIONS:
                with self.file.at(key):
                    resolve(_SIMPLE, {key: value}, owner="the sweep", see=SEE)

    def _check_method_tables(self) -> None:
        for method, values in self.file.table("method").items():
            with self.file.at("", "method", method):
                if method not in self.registry.methods and method not in self.planned:
                    raise unknown(
                        "method", method, self.registry.methods, "fsdil-bench list methods"
                    )
                if not isinstance(values, dict):
                    raise RequestError(f"method.{method} is not a table", f"See {SEE}.")
            for key, value in values.items():
                with self.file.at(key, "method", method):
                    _check_method_key(method, key, value)


def _check_method_key(method: str, key: str, value: Any) -> None:
    names = [*OPTIONS, *TABLES]
    if key not in names:
        near = unknown(f"key of [method.{method}]:", key, names, SEE)
        raise RequestError(
            near.message,
            f"{near.remedy} Valid keys: {', '.join(names)}. The method's own options belong into "
            f"config = {{ {key} = ... }}.",
        )
    if key not in TABLES:
        resolve(_SIMPLE, {key: value}, owner=f"[method.{method}]", see=SEE)


def _with_shots(name: str, shots: int) -> ScenarioId:
    """The scenario of a data set such as `drawn` or `core50@blocks`."""
    dataset, at, variant = name.partition("@")
    if re.fullmatch(r".*-\d+shot", dataset):
        raise RequestError(
            f"'{dataset}' names its shots, and `shots` does too", "Name the data set only."
        )
    return ScenarioId.parse(f"{dataset}-{shots}shot{at}{variant}")


def exclusions(given: Any) -> list[dict[str, list[Any]]]:
    """Rules such as { method = "cvlc-*", shots = [4, 8] }."""
    for rule in tables("exclude", given):
        if not rule:
            raise RequestError("exclude has an empty rule", 'Write { method = "ncm" }.')
        for key in rule:
            if key not in _MATCHES:
                near = unknown("key of exclude:", key, _MATCHES, SEE)
                raise RequestError(near.message, f"Valid keys: {', '.join(_MATCHES)}.")
    return [
        {key: value if isinstance(value, list) else [value] for key, value in rule.items()}
        for rule in given
    ]


def excluded(rule: Mapping[str, list[Any]], method: str, scenario: ScenarioId, seed: int) -> bool:
    """Whether everything that a rule says is true of a run."""
    facts = {
        "method": method, "scenario": str(scenario), "dataset": scenario.dataset,
        "shots": scenario.shots, "seed": seed,
    }  # fmt: skip
    return all(
        any(fnmatchcase(str(facts[key]), str(pattern)) for pattern in patterns)
        for key, patterns in rule.items()
    )
