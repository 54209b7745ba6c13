"""`fsdil-bench completion`: the script with which a shell completes the words of a command."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from .common import debug_option

PROGRAM = "fsdil-bench"
#: What the script sets when it asks for words, and click looks for when a command begins.
VARIABLE = "_FSDIL_BENCH_COMPLETE"


@click.command(
    epilog="Examples:\n\n\b\n"
    '  eval "$(fsdil-bench completion bash)"                 in ~/.bashrc\n'
    '  eval "$(fsdil-bench completion zsh)"                  in ~/.zshrc, after compinit\n'
    "  fsdil-bench completion fish > ~/.config/fish/completions/fsdil-bench.fish"
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
@debug_option
def completion(context: click.Context, shell: str) -> None:
    """Print the script that completes commands, options and names in a shell."""
    kind = get_completion_class(shell)
    assert kind is not None
    script = kind(context.find_root().command, {}, PROGRAM, VARIABLE).source()
    # click's script for fish cuts a line at every comma: `ncm,slda` would become `ncm`.
    script = script.replace('(string split "," ', '(string split --max 1 "," ')
    click.echo(script, nl=False)
