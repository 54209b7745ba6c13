"""`fsdil-bench view`: the boards as a page that is current while runs are made."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from fsdil_bench.errors import RequestError

from .common import debug_option, open_registry, plugin_option, print_warning


@click.command(
    epilog="Examples:\n\n\b\n"
    "  fsdil-bench view\n"
    "  fsdil-bench view runs ~/runs-of-others --open\n"
    "  fsdil-bench view runs --port 0\n"
    "\n"
    "Only this machine can reach the page. For a page on another machine, use a tunnel:\n"
    "ssh -L 8377:127.0.0.1:8377 MACHINE."
)
@click.argument("runs", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--port", type=click.IntRange(0, 65535),
    help="0 takes any that is free.  [default: 8377, or any that is free]",
)  # fmt: skip
@click.option("--host", default="127.0.0.1", show_default=True, help="127.0.0.1 or ::1.")
@click.option("--open", "opened", is_flag=True, help="Open a browser.")
@plugin_option
@debug_option
def view(
    runs: Sequence[Path], port: int | None, host: str, opened: bool, plugins: Sequence[str]
) -> None:
    """Show the boards of all runs below RUNS (default: runs) in a browser while they are made.

    The page is the one that `leaderboard` writes. It also says what is running and what failed, and
    is current within seconds. Ctrl-C ends it. Nothing is written.
    """
    from fsdil_bench.view.live_board import LiveBoard
    from fsdil_bench.view.server import BoardServer

    roots = list(runs) or [Path("runs")]
    for root in roots:
        if not root.is_dir():
            raise RequestError(
                f"there is no folder '{root}'",
                "Name the folder that holds runs, or will hold them.",
            )
    board = LiveBoard(roots, open_registry(plugins), print_warning)
    with BoardServer(board, host, port) as server:
        try:
            click.echo(f"{server.url} (Ctrl-C ends it)")
            if opened:
                click.launch(server.url)
            server.serve_forever()
        except KeyboardInterrupt:  # this is how it ends: no answer is lost
            click.echo("ended", err=True)
