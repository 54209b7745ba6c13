"""`fsdil-bench cache`: what is cached, how large it is, and clearing it."""

from __future__ import annotations

import click

from fsdil_bench.cache.eviction import array_files, cache_limit
from fsdil_bench.cache.folder import cache_folder
from fsdil_bench.cache.inventory import KINDS, CacheFile, cache_files
from fsdil_bench.cache.inventory import clear as clear_files

from .common import console, debug_option, json_option, print_json


@click.group(
    epilog="Examples:\n\n"
    "\b\n"
    "  fsdil-bench cache info\n"
    "  fsdil-bench cache clear pictures\n"
    "\n"
    "The cache is the folder FSDIL_CACHE, or else the user's cache folder. FSDIL_CACHE_LIMIT (for\n"
    "instance 20GB) bounds features, texts and pictures: what was used longest ago goes first."
)
def cache() -> None:
    """Show or clear what is cached: features, texts, pictures."""


@cache.command("info", epilog="Example:  fsdil-bench cache info --json")
@json_option()
@debug_option
def info(as_json: bool) -> None:
    """Show the files of the cache, their size and the limit."""
    folder, limit, files = cache_folder(), cache_limit(), list(cache_files(cache_folder()))
    counted = sum(array_files(folder).values())
    if as_json:
        facts = {
            "folder": str(folder),
            "bytes": sum(file.bytes for file in files),
            "limit": limit,
            "limited_bytes": counted,
            "files": [_plain(file) for file in files],
        }
        print_json(facts)
        return
    from rich.filesize import decimal

    from fsdil_bench.report.terminal import table

    if files:
        rows = [
            [
                file.kind,
                file.path.name,
                "" if file.entries is None else file.entries,
                decimal(file.bytes),
                KINDS[file.kind][1],
            ]
            for file in files
        ]
        console().print(table(["kind", "file", "entries", "size", "what"], rows))
    bound = f"{decimal(counted)} of {decimal(limit)}" if limit else "none (FSDIL_CACHE_LIMIT)"
    click.echo(f"folder  {folder}")
    click.echo(f"size    {decimal(sum(file.bytes for file in files))}")
    click.echo(f"limit   {bound}")


@cache.command(
    "clear",
    epilog="Examples:\n\n\b\n"
    "  fsdil-bench cache clear\n"
    "  fsdil-bench cache clear features\n"
    "\n"
    "Current runs are not disturbed: they compute again what they need.",
)
@click.argument("kind", required=False, type=click.Choice(list(KINDS)))
@json_option("Print what was removed as JSON.")
@debug_option
def clear(kind: str | None, as_json: bool) -> None:
    """Remove everything that is cached, or one kind of it, without asking.

    Everything in the cache can be computed again. Run records and data sets are not in it.
    """
    removed = clear_files(cache_folder(), kind)
    if as_json:
        print_json([_plain(file) for file in removed])
        return
    from rich.filesize import decimal

    total = decimal(sum(file.bytes for file in removed))
    files = "1 file" if len(removed) == 1 else f"{len(removed)} files"
    click.echo(f"removed {files}, {total}, from {cache_folder()}")


def _plain(file: CacheFile) -> dict[str, str | int | None]:
    return {
        "kind": file.kind,
        "file": file.path.name,
        "entries": file.entries,
        "bytes": file.bytes,
    }
