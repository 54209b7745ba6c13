"""`fsdil-bench list`: what can be run. Nothing here may import torch before it must."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from fsdil_bench.plugins.descriptors import (
    BackboneInfo,
    LauncherInfo,
    MethodInfo,
    ScenarioInfo,
    TrackerInfo,
    load_factory,
)
from fsdil_bench.plugins.registry import Plugin, Registry

from . import names
from .common import (
    console,
    debug_option,
    json_option,
    open_registry,
    plugin_option,
    print_json,
)
from .names import Completer

_MOST_SHOWN = 12  # items of a default

Row = dict[str, Any]


@click.group(name="list", epilog="Example:  fsdil-bench list methods")
def listing() -> None:
    """List methods, scenarios, backbones, launchers, trackers or plugins."""


def _method(info: MethodInfo, plugin: str) -> Row:
    return {
        "method": info.name,
        "summary": info.summary,
        "needs_text": info.needs_text,
        "exemplar_free": info.exemplar_free,
        "keeps_features": info.keeps_features,
        "paper": info.paper,
        "plugin": plugin,
    }


def _method_cells(row: Row) -> Row:
    kept = "features" if row["keeps_features"] else ""
    return {
        "method": row["method"],
        "summary": row["summary"],
        "text tower": "needed" if row["needs_text"] else "",
        "old images": kept if row["exemplar_free"] else "keeps",
        "paper": row["paper"],
        "plugin": row["plugin"],
    }


def _scenario(info: ScenarioInfo, plugin: str) -> Row:
    return {
        "scenario": info.name,
        "summary": info.summary,
        "shots": info.shots,
        "domains": info.domains,
        "classes": info.classes,
        "variants": info.all_variants,
        "backbone": info.default_backbone,
        "needs_data": info.needs_data,
        "plugin": plugin,
    }


def _scenario_cells(row: Row) -> Row:
    return {
        "scenario": f"{row['scenario']}-{{{','.join(str(k) for k in row['shots'])}}}shot",
        "summary": row["summary"],
        "domains": ", ".join(row["domains"]) or "from the folder",
        "classes": row["classes"] or "from the folder",
        "variants": ", ".join(f"@{variant}" for variant in row["variants"]),
        "backbone": row["backbone"],
        "data": "--data" if row["needs_data"] else "built in",
    }


def _backbone(info: BackboneInfo, plugin: str) -> Row:
    return {
        "backbone": info.pattern or info.name,
        "summary": info.summary,
        "example": info.example,
        "has_text": info.has_text,
        "plugin": plugin,
    }


def _backbone_cells(row: Row) -> Row:
    return {
        ("text tower" if name == "has_text" else name): {True: "yes", False: "no"}.get(value, value)
        for name, value in row.items()
    }


def _launcher(info: LauncherInfo, plugin: str) -> Row:
    return {
        "launcher": info.name,
        "summary": info.summary,
        "extra": info.extra,
        "plugin": plugin,
    }


def _launcher_cells(row: Row) -> Row:
    needs = f"fsdil-bench[{row['extra']}]" if row["extra"] else ""
    return {
        "launcher": row["launcher"],
        "summary": row["summary"],
        "needs": needs,
        "plugin": row["plugin"],
    }


def _tracker(info: TrackerInfo, plugin: str) -> Row:
    return {
        "tracker": info.name,
        "summary": info.summary,
        "extra": info.extra,
        "plugin": plugin,
    }


def _tracker_cells(row: Row) -> Row:
    needs = f"fsdil-bench[{row['extra']}]" if row["extra"] else ""
    return {
        "tracker": row["tracker"],
        "summary": row["summary"],
        "needs": needs,
        "plugin": row["plugin"],
    }


def _plugin(info: Plugin, plugin: str) -> Row:
    del plugin
    broken = "problems" if info.offers else "broken"
    return {
        "plugin": info.name,
        "source": info.source,
        "version": info.version,
        "status": broken if info.problems else "ok",
        "offers": info.offers,
        "problems": info.problems,
    }


def _plugin_cells(row: Row) -> Row:
    return {
        "plugin": row["plugin"],
        "from": f"{row['source']} {row['version']}".strip(),
        "status": row["status"],
        "offers": ", ".join(row["offers"]),
        "problems": "; ".join(row["problems"]),
    }


@dataclass(frozen=True)
class Kind:
    """One kind of thing that can be listed.

    `known` are all descriptors, `row` says what JSON shows of one and the plugin it comes from, and
    `cells` what the table shows of such a row. `one` finds a descriptor by name, `flag` sets
    options and `completer` knows the names; without them, a single one cannot be shown.
    """

    name: str
    help: str
    example: str
    known: Callable[[Registry], Iterable[Any]]
    row: Callable[[Any, str], Row]
    cells: Callable[[Row], Row]
    one: Callable[[Registry, str], Any] | None = None
    flag: str = ""
    completer: Completer | None = None


_KINDS = (
    Kind(
        "method", "List all methods, or show one with its options.", "methods ncm",
        lambda registry: registry.methods.values(), _method, _method_cells, Registry.method,
        "--set", names.methods,
    ),
    Kind(
        "scenario", "List all scenarios, or show one with its domains, variants and options.",
        "scenarios --json",
        lambda registry: registry.scenarios.values(), _scenario, _scenario_cells,
        Registry.scenario, "--scenario-set", names.scenario_names,
    ),
    Kind(
        "backbone", "List all backbones.", "backbones",
        lambda registry: registry.backbones.values(), _backbone, _backbone_cells,
    ),
    Kind(
        "launcher", "List what can run a sweep, or show one launcher with its options.",
        "launchers local",
        lambda registry: registry.launchers.values(), _launcher, _launcher_cells,
        Registry.launcher, "--launcher-set", names.launchers,
    ),
    Kind(
        "tracker", "List the programs that a run can be logged with.", "trackers",
        lambda registry: registry.trackers.values(), _tracker, _tracker_cells,
    ),
    Kind(
        "plugin", "List plugins, what they offer and what is wrong with them.",
        "plugins --plugin my_method.py", lambda registry: registry.plugins, _plugin, _plugin_cells,
    ),
)  # fmt: skip


def _list(kind: Kind, name: str | None, as_json: bool, plugins: Sequence[str]) -> None:
    registry = open_registry(plugins, warn=kind.name != "plugin")  # its rows show all problems

    def row(info: Any) -> Row:
        return kind.row(info, registry.sources.get(f"{kind.name} {info.name}", ""))

    if name is not None and kind.one is not None:
        info = kind.one(registry, name)
        _show_one(kind, info, row(info), as_json)
        return
    rows = [row(info) for info in kind.known(registry)]
    if as_json:
        print_json(rows)
    else:
        _print_rows([kind.cells(row) for row in rows])


def _show_one(kind: Kind, info: Any, row: Row, as_json: bool) -> None:
    """One thing with all that can be set of it."""
    from fsdil_bench.plugins.options import options_of

    overrides: Mapping[str, Any] = {}
    presets: dict[str, dict[str, Any]] = {}
    config = None
    if isinstance(info, MethodInfo):
        method = load_factory(info.factory, f"method '{info.name}'")
        config, overrides = method.Config, info.overrides
        presets = info.presets_over(method.presets)
    elif info.options:
        config = load_factory(info.options, f"{kind.name} '{info.name}'")
    if as_json:
        options = {
            each.name: {
                "type": each.type,
                "default": overrides.get(each.name, each.default),
                "help": each.help,
            }
            for each in (options_of(config) if config else ())
        }
        more = {"presets": presets} if isinstance(info, MethodInfo) else {}
        print_json(row | {"options": options} | more)
        return
    if isinstance(info, MethodInfo):
        click.echo(f"{info.name}: {info.summary}" + (f" ({info.paper})" if info.paper else ""))
    else:
        _print_rows([kind.cells(row)])
    if config:
        _print_options(config, kind.flag, overrides)
    for dataset, preset in presets.items():
        values = ", ".join(f"{key}={value}" for key, value in preset.items())
        click.echo(f"preset for {dataset}: {values}")


def _command(kind: Kind) -> click.Command:
    def run(as_json: bool, plugins: Sequence[str], name: str | None = None) -> None:
        _list(kind, name, as_json, plugins)

    run.__doc__ = kind.help
    command = json_option()(plugin_option(debug_option(run)))
    if kind.one:
        command = click.argument("name", required=False, shell_complete=kind.completer)(command)
    return click.command(f"{kind.name}s", epilog=f"Example:  fsdil-bench list {kind.example}")(
        command
    )


for _kind in _KINDS:
    listing.add_command(_command(_kind))


def _print_rows(rows: list[Row]) -> None:
    from fsdil_bench.report.terminal import table

    # A column that is empty everywhere is not worth its width.
    columns = [name for name in rows[0] if any(row[name] for row in rows)] if rows else []
    console().print(table(columns, [[row[name] for name in columns] for row in rows]))


def _print_options(config: type, flag: str, overrides: Mapping[str, Any]) -> None:
    from fsdil_bench.plugins.options import options_of
    from fsdil_bench.report.terminal import table

    rows = [
        [each.name, each.type, _shown(overrides.get(each.name, each.default)), each.help]
        for each in options_of(config)
    ]
    if rows:
        console().print(table([f"option ({flag} option=value)", "takes", "default", "what"], rows))
    else:
        click.echo("It has no options.")


def _shown(value: Any) -> Any:
    """A default as it is, unless it is too long for a table."""
    if isinstance(value, tuple) and len(value) > _MOST_SHOWN:
        return f"{value[0]!r} and {len(value) - 1} more (see --json)"
    return value
