"""The command line: `fsdil-bench run | list | show | leaderboard`.

Only what a command needs is imported inside it, so that `list` and `--help` answer at once.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import __version__
from .errors import FsdilError, RequestError
from .plugins import Registry, load_registry

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from .progress import Progress
    from .record import Record

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


def main() -> None:
    """Run the command line; errors a user can mend are one message, without a traceback."""
    debug = "--debug" in sys.argv
    try:
        cli.main(standalone_mode=False)
    except click.exceptions.Abort:
        _fail("interrupted; the same command goes on after the last finished domain", 130)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except FsdilError as error:
        if debug:
            raise
        _fail("\n".join(part for part in (error.message, error.remedy) if part), error.exit_code)
    except BrokenPipeError:
        sys.exit(141)
    except Exception as error:
        if debug:
            raise
        _fail(
            f"unexpected {type(error).__name__}: {error}\n"
            "This is a fault of fsdil-bench; --debug shows the traceback for a report.",
            1,
        )


def _fail(text: str, code: int) -> None:
    click.secho("error: ", fg="red", bold=True, nl=False, err=True)
    click.echo(text, err=True)
    sys.exit(code)


@click.group(
    context_settings=CONTEXT,
    epilog="Examples:\n\n"
    "\b\n"
    "  fsdil-bench run --method ncm --scenario drawn-1shot\n"
    "  fsdil-bench list methods\n"
    "  fsdil-bench leaderboard runs --out leaderboards",
)
@click.version_option(__version__, prog_name="fsdil-bench")
@click.option("--debug", is_flag=True, help="Show tracebacks.")
def cli(debug: bool) -> None:
    """Benchmark few-shot domain-incremental learning: methods learn streams of domains."""
    del debug  # read by main(), where errors are caught


def plugin_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """The `--plugin` option shared by all commands that need the registry."""
    return click.option(
        "--plugin", "plugins", multiple=True, metavar="FILE.py",
        help="Also load this plugin file; may be given several times.",
    )(command)  # fmt: skip


def debug_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--debug` behind a sub-command works like before it."""
    return click.option("--debug", is_flag=True, expose_value=False, help="Show tracebacks.")(
        command
    )


@cli.command(
    epilog="Examples:\n\n"
    "\b\n"
    "  fsdil-bench run --method ncm --scenario drawn-1shot\n"
    "  fsdil-bench run --method ncm --scenario drawn-4shot --seeds 0-2 --set mode=balanced\n"
    "  fsdil-bench run --method slda --scenario folder-8shot --data ~/pacs --base photo\n"
    "\n"
    "Runs are kept below --out. The same command again goes on where a killed run stopped and\n"
    "does not repeat what is done."
)
@click.option("--method", "-m", required=True, help="See `fsdil-bench list methods`.")
@click.option("--scenario", "-s", required=True, help="<dataset>-<K>shot, e.g. drawn-1shot.")
@click.option("--seed", type=int, help="Seed of everything random in the run.  [default: 0]")
@click.option("--seeds", help="Several seeds: 0,1,2 or 0-2.")
@click.option("--backbone", "-b", default="", help="Default: the one of the scenario.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="A method's option.")
@click.option(
    "--config", "config_file", type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="TOML file with the method's options; --set wins over it.",
)  # fmt: skip
@click.option("--data", type=click.Path(path_type=Path), help="Where a scenario's images are.")
@click.option("--order", default="", help="Domains in order, comma-separated; may be a selection.")
@click.option("--base", default="", help="The domain that comes first.")
@click.option("--base-limit", type=click.IntRange(1), help="At most so many base images per class.")
@click.option("--names", type=click.Path(path_type=Path), help="JSON file with class names.")
@click.option("--synonyms", type=click.Path(path_type=Path), help="JSON file with synonyms.")
@click.option(
    "--scenario-set", "scenario_settings", multiple=True, metavar="KEY=VALUE",
    help="A scenario's option.",
)  # fmt: skip
@click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda, cuda:1 ...")
@click.option("--precision", default="auto", show_default=True, help="auto, fp32 or bf16 (CUDA).")
@click.option("--out", default="runs", show_default=True, type=click.Path(path_type=Path),
              help="Folder for run records.")  # fmt: skip
@click.option("--resume/--fresh", default=True, help="Go on with what is there, or start over.")
@click.option("--keep-checkpoints", is_flag=True, help="Keep the state after every domain.")
@click.option("--json", "as_json", is_flag=True, help="Print the records as JSON.")
@click.option("--quiet", "-q", is_flag=True, help="No progress.")
@plugin_option
@debug_option
def run(
    method: str,
    scenario: str,
    seed: int | None,
    seeds: str | None,
    settings: Sequence[str],
    config_file: Path | None,
    scenario_settings: Sequence[str],
    order: str,
    resume: bool,
    as_json: bool,
    quiet: bool,
    plugins: Sequence[str],
    **options: Any,
) -> None:
    """Run a method on a scenario, for one seed or several."""
    from .config import parse_assignments
    from .runner import run as run_once

    registry = _registry(plugins)
    config = _read_toml(config_file) if config_file else {}
    config |= parse_assignments(settings)
    console = _console()
    progress = _progress(quiet)
    records = []
    for each in _parse_seeds(seed, seeds):
        progress.say(f"{method} on {scenario}, seed {each}")
        record = run_once(
            method,
            scenario,
            seed=each,
            config=config,
            order=[name.strip() for name in order.split(",") if name.strip()],
            scenario_options=parse_assignments(scenario_settings),
            fresh=not resume,
            registry=registry,
            progress=progress,
            **options,
        )
        records.append(record)
    if as_json:
        click.echo(json.dumps([json.loads(record.to_json()) for record in records], indent=1))
        return
    from .tables import summary

    console.print(summary(records))
    for record in records:
        click.echo(f"record: {record.folder}")
    click.echo(f"more:   fsdil-bench show {records[-1].folder}")


@cli.group(name="list", epilog="Example:  fsdil-bench list methods")
def list_() -> None:
    """List methods, scenarios, backbones or plugins."""


@list_.command("methods", epilog="Example:  fsdil-bench list methods ncm")
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@plugin_option
@debug_option
def list_methods(name: str | None, as_json: bool, plugins: Sequence[str]) -> None:
    """List all methods, or show one with its options."""
    registry = _registry(plugins)
    if name:
        _show_method(registry, name, as_json)
        return
    rows = [
        {
            "method": info.name,
            "summary": info.summary,
            "text tower": "needed" if info.needs_text else "",
            "old images": "" if info.exemplar_free else "keeps",
            "paper": info.paper,
            "plugin": registry.sources[f"method {info.name}"],
        }
        for info in registry.methods.values()
    ]
    _print_rows(rows, as_json)


@list_.command("scenarios", epilog="Example:  fsdil-bench list scenarios --json")
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@plugin_option
@debug_option
def list_scenarios(name: str | None, as_json: bool, plugins: Sequence[str]) -> None:
    """List all scenarios, or show one with its domains, variants and options."""
    registry = _registry(plugins)
    infos = [registry.scenario(name)] if name else list(registry.scenarios.values())
    rows = [
        {
            "scenario": f"{info.name}-{{{','.join(str(k) for k in info.shots)}}}shot",
            "summary": info.summary,
            "domains": ", ".join(info.domains) or "from the folder",
            "classes": info.classes or "from the folder",
            "variants": ", ".join(f"@{variant}" for variant in info.variants),
            "backbone": info.default_backbone,
            "data": "--data" if info.needs_data else "built in",
        }
        for info in infos
    ]
    _print_rows(rows, as_json)
    if name and infos[0].options and not as_json:
        from .descriptors import load_factory

        _print_knobs(load_factory(infos[0].options, f"scenario '{name}'"), "--scenario-set")


@list_.command("backbones", epilog="Example:  fsdil-bench list backbones")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@plugin_option
@debug_option
def list_backbones(as_json: bool, plugins: Sequence[str]) -> None:
    """List all backbones."""
    registry = _registry(plugins)
    rows = [
        {
            "backbone": info.name,
            "summary": info.summary,
            "text tower": "yes" if info.has_text else "no",
            "plugin": registry.sources[f"backbone {info.name}"],
        }
        for info in registry.backbones.values()
    ]
    _print_rows(rows, as_json)


@list_.command("plugins", epilog="Example:  fsdil-bench list plugins --plugin my_method.py")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@plugin_option
@debug_option
def list_plugins(as_json: bool, plugins: Sequence[str]) -> None:
    """List plugins, what they offer and what is wrong with them."""
    registry = _registry(plugins, warn=False)
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


@cli.command(epilog="Example:  fsdil-bench show runs/drawn-1shot/ncm/seed0-*")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the record as JSON.")
@debug_option
def show(run: Path, as_json: bool) -> None:
    """Show a finished run: matrix, scores, curves, cost, provenance.

    RUN is a run's folder, or a folder below which there is exactly one run.
    """
    record = _one_record(run)
    if as_json:
        click.echo(record.to_json(), nl=False)
        return
    from . import tables

    parts: list[RenderableType] = [tables.summary([record]), tables.curves(record)]
    if record.oracle_matrix:
        names = [domain["name"] for domain in record.scenario["domains"]]
        parts.append(tables.matrix(record.oracle_matrix, names, "accuracy (%) with oracle domain"))
    parts += [tables.cost(record), tables.provenance(record)]
    for part in parts:
        _console().print(part)


@cli.command(epilog="Example:  fsdil-bench leaderboard runs --out leaderboards")
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--out", default="leaderboards", show_default=True, type=click.Path(path_type=Path),
              help="Folder for the boards.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the written files as JSON.")
@debug_option
def leaderboard(runs: Sequence[Path], out: Path, as_json: bool) -> None:
    """Make Markdown and CSV boards from all complete runs below RUNS."""
    from .leaderboard import write_leaderboards
    from .record import find_records

    records = find_records(*runs)
    if not records:
        raise RequestError(
            f"there is no complete run below {', '.join(str(r) for r in runs)}",
            "Run something first: fsdil-bench run --method ncm --scenario drawn-1shot",
        )
    files = write_leaderboards(records, out)
    if as_json:
        click.echo(json.dumps([str(file) for file in files]))
        return
    for file in files:
        click.echo(file)


def _registry(plugins: Sequence[str], *, warn: bool = True) -> Registry:
    registry = load_registry(plugins)
    if warn:
        for line in registry.warnings():
            click.secho(f"warning: {line}", fg="yellow", err=True)
    return registry


def _console() -> Console:
    from rich.console import Console

    console = Console(highlight=False)
    # Tables in a pipe or a file must not be folded to an assumed 80 columns.
    return console if console.is_terminal else Console(highlight=False, width=200)


def _progress(quiet: bool) -> Progress:
    from rich.console import Console

    from .progress import PlainProgress, Progress, RichProgress

    if quiet:
        return Progress()
    console = Console(stderr=True)
    return RichProgress(console) if console.is_terminal else PlainProgress()


def _parse_seeds(seed: int | None, seeds: str | None) -> list[int]:
    if seeds is None:
        return [seed or 0]
    if seed is not None:
        raise RequestError("--seed and --seeds exclude each other", "Give one of them.")
    parsed: list[int] = []
    try:
        for part in seeds.split(","):
            first, dash, last = part.strip().partition("-")
            parsed += range(int(first), int(last) + 1) if dash else [int(first)]
    except ValueError:
        parsed = []
    if not parsed:
        raise RequestError(f"--seeds {seeds} is not a list of seeds", "Write 0,1,2 or 0-2.")
    return list(dict.fromkeys(parsed))


def _read_toml(path: Path) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RequestError(
            f"{path} is not valid TOML: {error}", "Write lines like `lr = 0.1`."
        ) from None


def _one_record(path: Path) -> Record:
    from .record import Record, find_records

    if (path / "spec.json").is_file() or (path / "record.json").is_file():
        return Record.load(path)
    records = find_records(path)
    if len(records) != 1:
        found = "\n".join(f"  {record.folder}" for record in records[:10])
        raise RequestError(
            f"there are {len(records)} complete runs below {path}",
            f"Name one of them:\n{found}" if records else "Give the folder of a run.",
        )
    return records[0]


def _print_rows(rows: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(rows, indent=1))
        return
    from .tables import table

    # A column that says nothing about anything is not worth its width.
    columns = [name for name in rows[0] if any(row[name] for row in rows)] if rows else []
    _console().print(table(columns, [[row[name] for name in columns] for row in rows]))


def _show_method(registry: Registry, name: str, as_json: bool) -> None:
    from .config import knobs
    from .descriptors import load_factory

    info = registry.method(name)
    method = load_factory(info.factory, f"method '{name}'")
    defaults = {k.name: info.overrides.get(k.name, k.default) for k in knobs(method.Config)}
    if as_json:
        described = {k.name: {"type": k.type, "default": defaults[k.name], "help": k.help}
                     for k in knobs(method.Config)}  # fmt: skip
        click.echo(json.dumps({"method": name, "options": described, "presets": method.presets}))
        return
    click.echo(f"{name}: {info.summary}" + (f" ({info.paper})" if info.paper else ""))
    _print_knobs(method.Config, "--set", info.overrides)
    for dataset, preset in method.presets.items():
        values = ", ".join(f"{key}={value}" for key, value in preset.items())
        click.echo(f"preset for {dataset}: {values}")


def _print_knobs(config: type, flag: str, overrides: Any = None) -> None:
    from .config import knobs
    from .tables import table

    rows = [
        [k.name, k.type, (overrides or {}).get(k.name, k.default), k.help] for k in knobs(config)
    ]
    if rows:
        _console().print(table([f"option ({flag} option=value)", "takes", "default", "what"], rows))
    else:
        click.echo("It has no options.")
