"""`fsdil-bench list`: what can be run. Nothing here may import torch before it must."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import click

from fsdil_bench.plugins.descriptors import MethodInfo
from fsdil_bench.plugins.registry import Registry

from .common import console, debug_option, open_registry, plugin_option

_MOST_SHOWN = 12  # items of a default


@click.group(name="list", epilog="Example:  fsdil-bench list methods")
def listing() -> None:
    """List methods, scenarios, backbones, launchers or plugins."""


@listing.command("methods", epilog="Example:  fsdil-bench list methods ncm")
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@plugin_option
@debug_option
def list_methods(name: str | None, as_json: bool, plugins: Sequence[str]) -> None:
    """List all methods, or show one with its options."""
    registry = open_registry(plugins)
    if name:
        _show_method(registry, name, as_json)
        return
    rows = [
        {
            "method": info.name,
            "summary": info.summary,
            "text tower": "needed" if info.needs_text else "",
            "old images": _kept(info),
            "paper": info.paper,
            "plugin": registry.sources[f"method {info.name}"],
        }
        for info in registry.methods.values()
    ]
    _print_rows(rows, as_json)


@listing.command("scenarios", epilog="Example:  fsdil-bench list scenarios --json")
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@plugin_option
@debug_option
def list_scenarios(name: str | None, as_json: bool, plugins: Sequence[str]) -> None:
    """List all scenarios, or show one with its domains, variants and options."""
    registry = open_registry(plugins)
    infos = [registry.scenario(name)] if name else list(registry.scenarios.values())
    rows = [
        {
            "scenario": f"{info.name}-{{{','.join(str(k) for k in info.shots)}}}shot",
            "summary": info.summary,
            "domains": ", ".join(info.domains) or "from the folder",
            "classes": info.classes or "from the folder",
            "variants": ", ".join(f"@{variant}" for variant in info.all_variants),
            "backbone": info.default_backbone,
            "data": "--data" if info.needs_data else "built in",
        }
        for info in infos
    ]
    _print_rows(rows, as_json)
    if name and infos[0].options and not as_json:
        from fsdil_bench.plugins.descriptors import load_factory

        _print_knobs(load_factory(infos[0].options, f"scenario '{name}'"), "--scenario-set")


@listing.command("backbones", epilog="Example:  fsdil-bench list backbones")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@plugin_option
@debug_option
def list_backbones(as_json: bool, plugins: Sequence[str]) -> None:
    """List all backbones."""
    registry = open_registry(plugins)
    rows = [
        {
            "backbone": info.pattern or info.name,
            "summary": info.summary,
            "example": info.example,
            "text tower": "yes" if info.has_text else "no",
            "plugin": registry.sources[f"backbone {info.name}"],
        }
        for info in registry.backbones.values()
    ]
    _print_rows(rows, as_json)


@listing.command("launchers", epilog="Example:  fsdil-bench list launchers local")
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@plugin_option
@debug_option
def list_launchers(name: str | None, as_json: bool, plugins: Sequence[str]) -> None:
    """List what can run a sweep, or show one launcher with its options."""
    registry = open_registry(plugins)
    infos = [registry.launcher(name)] if name else list(registry.launchers.values())
    rows = [
        {
            "launcher": info.name,
            "summary": info.summary,
            "needs": f"fsdil-bench[{info.extra}]" if info.extra else "",
            "plugin": registry.sources[f"launcher {info.name}"],
        }
        for info in infos
    ]
    _print_rows(rows, as_json)
    if name and infos[0].options and not as_json:
        from fsdil_bench.plugins.descriptors import load_factory

        _print_knobs(load_factory(infos[0].options, f"launcher '{name}'"), "--launcher-set")


@listing.command("plugins", epilog="Example:  fsdil-bench list plugins --plugin my_method.py")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@plugin_option
@debug_option
def list_plugins(as_json: bool, plugins: Sequence[str]) -> None:
    """List plugins, what they offer and what is wrong with them."""
    registry = open_registry(plugins, warn=False)
    rows = [
        {
            "plugin": plugin.name,
            "from": f"{plugin.source} {plugin.version}".strip(),
            "status": "broken" if plugin.problems and not plugin.offers
            else "problems" if plugin.problems else "ok",
            "offers": ", ".join(plugin.offers),
            "problems": "; ".join(plugin.problems),
        }
        for plugin in registry.plugins
    ]  # fmt: skip
    _print_rows(rows, as_json)


def _kept(info: MethodInfo) -> str:
    """What of earlier domains a method can hold on to."""
    if not info.exemplar_free:
        return "keeps"
    return "features" if info.keeps_features else ""


def _print_rows(rows: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(rows, indent=1))
        return
    from fsdil_bench.report.terminal import table

    # A column that says nothing about anything is not worth its width.
    columns = [name for name in rows[0] if any(row[name] for row in rows)] if rows else []
    console().print(table(columns, [[row[name] for name in columns] for row in rows]))


def _show_method(registry: Registry, name: str, as_json: bool) -> None:
    from fsdil_bench.plugins.descriptors import load_factory
    from fsdil_bench.plugins.options import options_of

    info = registry.method(name)
    method = load_factory(info.factory, f"method '{name}'")
    defaults = {k.name: info.overrides.get(k.name, k.default) for k in options_of(method.Config)}
    if as_json:
        described = {k.name: {"type": k.type, "default": defaults[k.name], "help": k.help}
                     for k in options_of(method.Config)}  # fmt: skip
        click.echo(json.dumps({"method": name, "options": described, "presets": method.presets}))
        return
    click.echo(f"{name}: {info.summary}" + (f" ({info.paper})" if info.paper else ""))
    _print_knobs(method.Config, "--set", info.overrides)
    for dataset, preset in method.presets.items():
        values = ", ".join(f"{key}={value}" for key, value in preset.items())
        click.echo(f"preset for {dataset}: {values}")


def _print_knobs(config: type, flag: str, overrides: Any = None) -> None:
    from fsdil_bench.plugins.options import options_of
    from fsdil_bench.report.terminal import table

    rows = [
        [k.name, k.type, _shown((overrides or {}).get(k.name, k.default)), k.help]
        for k in options_of(config)
    ]
    if rows:
        console().print(table([f"option ({flag} option=value)", "takes", "default", "what"], rows))
    else:
        click.echo("It has no options.")


def _shown(value: Any) -> Any:
    """A default as it is, if it is not too long to be read in a table."""
    if isinstance(value, tuple) and len(value) > _MOST_SHOWN:
        return f"{value[0]!r} and {len(value) - 1} more (see --json)"
    return value
