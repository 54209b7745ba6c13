"""`fsdil-bench check`: does a method follow the rules?"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from fsdil_bench.errors import RequestError
from fsdil_bench.exit_codes import FAILED

from . import names
from .common import (
    console,
    debug_option,
    json_option,
    open_registry,
    plugin_option,
    print_json,
    run_progress,
)

if TYPE_CHECKING:
    from fsdil_bench.checks import Finding


@click.command(
    epilog="Examples:\n\n"
    "\b\n"
    "  fsdil-bench check ncm\n"
    "  fsdil-bench check my-method --plugin my_method.py --only leaks --only seeds\n"
    "\n"
    "Ends with 0 if all checks pass and with 1 if not."
)
@click.argument("method", required=False, shell_complete=names.methods)
@click.option("--only", multiple=True, metavar="NAME", help="Only this check; may be repeated.")
@click.option("--list", "listed", is_flag=True, help="List the checks.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="A method's option.")
@click.option(
    "--scenario", "-s", default="drawn-2shot", show_default=True, shell_complete=names.scenarios,
    help="The scenario that a small part is taken from; two shots or more.",
)  # fmt: skip
@click.option(
    "--backbone", "-b", default="", help="Default: the scenario's. See `list backbones`.",
    shell_complete=names.backbones,
)  # fmt: skip
@json_option("Print the findings as JSON.")
@click.option("--quiet", "-q", is_flag=True, help="No progress.")
@plugin_option
@debug_option
def check(
    method: str | None,
    only: Sequence[str],
    listed: bool,
    settings: Sequence[str],
    scenario: str,
    backbone: str,
    as_json: bool,
    quiet: bool,
    plugins: Sequence[str],
) -> None:
    """Check that a method keeps to contract, seeds and protocol, on a small part of a scenario."""
    from fsdil_bench.checks import check_method
    from fsdil_bench.plugins.options import parse_assignments

    if listed:
        _list(as_json)
        return
    if method is None:
        raise RequestError(
            "no method is named", "Write `fsdil-bench check METHOD`; `list methods` shows them."
        )
    import torch

    torch.set_num_threads(1)  # little data: more threads would wait for each other
    findings = check_method(
        method,
        only=only,
        scenario=scenario,
        registry=open_registry(plugins),
        config=parse_assignments(settings),
        backbone=backbone,
        progress=run_progress(quiet),
    )
    if as_json:
        print_json([asdict(finding) for finding in findings])
    else:
        _print(method, findings)
    if not all(finding.passed for finding in findings):
        sys.exit(FAILED)


def _print(method: str, findings: Sequence[Finding]) -> None:
    from rich.text import Text

    from fsdil_bench.report.terminal import table

    marks = {True: Text("passed", "green"), False: Text("FAILED", "bold red")}
    rows = [
        [finding.name, marks[finding.passed], finding.found + _remedy(finding)]
        for finding in findings
    ]
    console().print(table(["check", "", "what was found"], rows))
    passed = sum(finding.passed for finding in findings)
    click.echo(f"{method}: {passed} of {len(findings)} checks passed")


def _remedy(finding: Finding) -> str:
    return "" if finding.passed else f"\nTo fix it: {finding.remedy}"


def _list(as_json: bool) -> None:
    from fsdil_bench.checks import CHECKS
    from fsdil_bench.report.terminal import table

    rows = [[name, (check.__doc__ or "").partition("\n")[0]] for name, check in CHECKS.items()]
    if as_json:
        print_json([{"check": name, "what": what} for name, what in rows])
        return
    console().print(table(["check", "what it asks"], rows))
