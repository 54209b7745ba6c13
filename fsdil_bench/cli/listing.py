"""`fsdil-bench list`: what can be run. Nothing here may import torch before it must."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from fsdil_bench.plugins.descriptors import (
    BackboneInfo,
    LauncherInfo,
    MethodInfo,
    ScenarioInfo,
    load_factory,
)
from fsdil_bench.plugins.registry import Plugin, Registry

from .common import console, debug_option, open_registry, plugin_option

_MOST_SHOWN = 12  # items of a default

Row = dict[str, Any]


@click.group(name="list", epilog="Example:  fsdil-bench list methods")
def listing() -> None:
    """List methods, scenarios, backbones, launchers or plugins."""


def _method(info: MethodInfo, plugin: str) -> Row:
    kept = "features" if info.keeps_features else ""
    return {
        "method": info.name,
        "summary": info.summary,
        "text tower": "needed" if info.needs_text else "",
        "old images": kept if info.exemplar_free else "keeps",
        "paper": info.paper,
        "plugin": plugin,
    }


def _scenario(info: ScenarioInfo, plugin: str) -> Row:
    del plugin
    return {
        "scenario": f"{info.name}-{{{','.join(str(k) for k in info.shots)}}}shot",
        "summary": info.summary,
        "domains": ", ".join(info.domains) or "from the folder",
        "classes": info.classes or "from the folder",
        "variants": ", ".join(f"@{variant}" for variant in info.all_variants),
        "backbone": info.default_backbone,
        "data": "--data" if info.needs_data else "built in",
    }


def _backbone(info: BackboneInfo, plugin: str) -> Row:
    return {
        "backbone": info.pattern or info.name,
        "summary": info.summary,
        "example": info.example,
        "text tower": "yes" if info.has_text else "no",
        "plugin": plugin,
    }


def _launcher(info: LauncherInfo, plugin: str) -> Row:
    return {
        "launcher": info.name,
        "summary": info.summary,
        "needs": f"fsdil-bench[{info.extra}]" if info.extra else "",
        "plugin": plugin,
    }


def _plugin(info: Plugin, plugin: str) -> Row:
    del plugin
    broken = "problems" if info.offers else "broken"
    return {
        "plugin": info.name,
        "from": f"{info.source} {info.version}".strip(),
        "status": broken if info.problems else "ok",
        "offers": ", ".join(info.offers),
        "problems": "; ".join(info.problems),
    }


@dataclass(frozen=True)
class Kind:
    """One kind of thing that can be listed.

    `known` are all descriptors, `row` makes a row of one and the plugin it comes from. `one` finds
    a descriptor by name, and `flag` sets options; without them, a single one cannot be shown.
    """

    name: str
    help: str
    example: str
    known: Callable[[Registry], Iterable[Any]]
    row: Callable[[Any, str], Row]
    one: Callable[[Registry, str], Any] | None = None
    flag: str = ""


_KINDS = (
    Kind(
        "method", "List all methods, or show one with its options.", "methods ncm",
        lambda registry: registry.methods.values(), _method, Registry.method, "--set",
    ),
    Kind(
        "scenario", "List all scenarios, or show one with its domains, variants and options.",
        "scenarios --json",
        lambda registry: registry.scenarios.values(), _scenario, Registry.scenario,
        "--scenario-set",
    ),
    Kind(
        "backbone", "List all backbones.", "backbones",
        lambda registry: registry.backbones.values(), _backbone,
    ),
    Kind(
        "launcher", "List what can run a sweep, or show one launcher with its options.",
        "launchers local",
        lambda registry: registry.launchers.values(), _launcher, Registry.launcher,
        "--launcher-set",
    ),
    Kind(
        "plugin", "List plugins, what they offer and what is wrong with them.",
        "plugins --plugin my_method.py", lambda registry: registry.plugins, _plugin,
    ),
)  # fmt: skip


def _list(kind: Kind, name: str | None, as_json: bool, plugins: Sequence[str]) -> None:
    registry = open_registry(plugins, warn=kind.name != "plugin")  # its rows show all problems
    if name is None or kind.one is None:
        infos = list(kind.known(registry))
    else:
        infos = [kind.one(registry, name)]
        if isinstance(infos[0], MethodInfo):
            _show_method(infos[0], as_json)
            return
    origins = [registry.sources.get(f"{kind.name} {info.name}", "") for info in infos]
    rows = [kind.row(info, origin) for info, origin in zip(infos, origins, strict=True)]
    _print_rows(rows, as_json)
    if name and not as_json and infos[0].options:
        _print_options(load_factory(infos[0].options, f"{kind.name} '{name}'"), kind.flag)


def _command(kind: Kind) -> click.Command:
    def run(as_json: bool, plugins: Sequence[str], name: str | None = None) -> None:
        _list(kind, name, as_json, plugins)

    run.__doc__ = kind.help
    command = plugin_option(debug_option(run))
    command = click.option("--json", "as_json", is_flag=True, help="Print as JSON.")(command)
    if kind.one:
        command = click.argument("name", required=False)(command)
    return click.command(f"{kind.name}s", epilog=f"Example:  fsdil-bench list {kind.example}")(
        command
    )


for _kind in _KINDS:
    listing.add_command(_command(_kind))


def _print_rows(rows: list[Row], as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(rows, indent=1))
        return
    from fsdil_bench.report.terminal import table

    # A column that is empty everywhere is not worth its width.
    columns = [name for name in rows[0] if any(row[name] for row in rows)] if rows else []
    console().print(table(columns, [[row[name] for name in columns] for row in rows]))


def _show_method(info: MethodInfo, as_json: bool) -> None:
    from fsdil_bench.plugins.options import options_of

    method = load_factory(info.factory, f"method '{info.name}'")
    if as_json:
        described = {
            each.name: {
                "type": each.type,
                "default": info.overrides.get(each.name, each.default),
                "help": each.help,
            }
            for each in options_of(method.Config)
        }
        click.echo(
            json.dumps({"method": info.name, "options": described, "presets": method.presets})
        )
        return
    click.echo(f"{info.name}: {info.summary}" + (f" ({info.paper})" if info.paper else ""))
    _print_options(method.Config, "--set", info.overrides)
    for dataset, preset in method.presets.items():
        values = ", ".join(f"{key}={value}" for key, value in preset.items())
        click.echo(f"preset for {dataset}: {values}")


def _print_options(config: type, flag: str, overrides: Mapping[str, Any] | None = None) -> None:
    from fsdil_bench.plugins.options import options_of
    from fsdil_bench.report.terminal import table

    rows = [
        [each.name, each.type, _shown((overrides or {}).get(each.name, each.default)), each.help]
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
