"""`fsdil-bench verify` and `fsdil-bench submit`: results that everybody can trust."""

from __future__ import annotations

import json
import random
import secrets
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fsdil_bench.errors import RecordError, RequestError

from .common import debug_option, open_registry, plugin_option, run_progress

if TYPE_CHECKING:
    from fsdil_bench.plugins.registry import Registry
    from fsdil_bench.records.checks import Checked
    from fsdil_bench.records.record import Record
    from fsdil_bench.runs.rerun_agreement import Verified

INVALID, DIFFERS, NOT_RUN = 3, 4, 5

_RUNS = click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path))


@click.command(
    epilog="Examples:\n\n\b\n"
    "  fsdil-bench verify --no-run leaderboards/records\n"
    "  fsdil-bench verify --per-row submission.zip\n"
    "  fsdil-bench verify runs/drawn-1shot/ncm/seed0-*\n"
    "\n"
    "Exit code: 0 if every record is valid and came out the same or within the tolerance, 3 if\n"
    "one is not valid, 4 if one came out differently, 5 if one could not be run again."
)
@_RUNS
@click.option("--no-run", is_flag=True, help="Validate only.")
@click.option("--sample", type=click.IntRange(1), metavar="N", help="Run N of them again, drawn.")
@click.option("--per-row", is_flag=True, help="Run one drawn seed of every row again.")
@click.option("--sample-seed", type=int, help="Draw the same ones again.")
@click.option(
    "--tolerance", type=click.FloatRange(0), metavar="POINTS",
    help="By how much scores may differ where predictions do.  [default: not at all where the same"
    " bits are expected, else 0.2, in bf16 0.5]",
)  # fmt: skip
@click.option("--sealed", is_flag=True, help="Run again sealed, whatever the record was.")
@click.option("--anyway", is_flag=True, help="Run again even if code, weights or samples differ.")
@click.option("--data", type=click.Path(path_type=Path), help="Where a scenario's images are.")
@click.option("--backbone", "-b", default="", help="For weights from a file: MODEL:path/to/file.")
@click.option("--names", type=click.Path(path_type=Path), help="JSON file with class names.")
@click.option("--synonyms", type=click.Path(path_type=Path), help="JSON file with synonyms.")
@click.option("--device", default="", help="Default: the record's, if this machine has it.")
@click.option("--batch-size", type=click.IntRange(1), help="Default: the record's.")
@click.option("--out", type=click.Path(path_type=Path), help="Keep the new runs in this folder.")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
@click.option("--quiet", "-q", is_flag=True, help="No progress.")
@plugin_option
@debug_option
def verify(
    runs: Sequence[Path],
    no_run: bool,
    sample: int | None,
    per_row: bool,
    sample_seed: int | None,
    out: Path | None,
    as_json: bool,
    quiet: bool,
    plugins: Sequence[str],
    **options: Any,
) -> None:
    """Validate records, run them again and compare the predictions.

    RUNS are folders of runs, folders above them, or submissions (zip files or folders).
    """
    with tempfile.TemporaryDirectory(prefix="fsdil-verify-") as scratch:
        checked, problems = _check(runs, Path(scratch))
        valid = [each.record for each in checked if each.record and not each.problems]
        if not as_json:
            _tell_checks(checked, problems)
        again: list[tuple[Record, Verified]] = []
        if not no_run:
            chosen, drawn_with = _choose(valid, sample, per_row, sample_seed)
            if drawn_with is not None and not as_json:
                click.echo(
                    f"running {len(chosen)} of {len(valid)} again (--sample-seed {drawn_with})"
                )
            again = _run_again(
                chosen, out or Path(scratch) / "again", plugins, quiet, as_json, options
            )
        if as_json:
            click.echo(json.dumps(_findings(checked, problems, again), indent=1))
    sys.exit(_exit_code(len(valid) < len(checked) or bool(problems), [v for _, v in again]))


@click.command(
    epilog="Example:  fsdil-bench submit runs/drawn-1shot/my-idea --out my-idea.zip\n\n"
    "The zip file or folder holds records and predictions, no checkpoints. It says what to do next."
)
@_RUNS
@click.option("--out", required=True, type=click.Path(path_type=Path),
              help="Where to pack them: FILE.zip, or a folder.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print what was packed as JSON.")
@debug_option
def submit(runs: Sequence[Path], out: Path, as_json: bool) -> None:
    """Check records and pack them for a pull request."""
    from rich.filesize import decimal

    from fsdil_bench.records.submission import GUIDE, pack

    with tempfile.TemporaryDirectory(prefix="fsdil-submit-") as scratch:
        checked, problems = _check(runs, Path(scratch))
        bad = [each for each in checked if each.problems]
        if bad or problems:
            _tell_checks(checked, problems)
            raise RecordError(
                f"{len(bad)} of {len(checked)} records are not valid; nothing was packed",
                "Run them again with --fresh.",
            )
        packed = pack(checked, out)
    if as_json:
        values = {"path": str(packed.path), "records": packed.records, "bytes": packed.size}
        click.echo(json.dumps(values | {"cut": packed.cut, "names": packed.names}, indent=1))
        return
    click.echo(f"{packed.path}: {packed.records} records, {decimal(packed.size)}")
    click.echo(
        "Each tells when it was run, the command, versions, commit, platform and processor"
        " (field `provenance`)."
    )
    if packed.cut:
        click.echo(f"Absolute paths were cut down to their last part in {len(packed.cut)} records.")
    for line in packed.names:
        click.secho(f"warning: {line}", fg="yellow", err=True)
    click.echo(f"next: {packed.path}, {GUIDE} says how to open the pull request")


def _check(runs: Sequence[Path], scratch: Path) -> tuple[list[Checked], list[str]]:
    """All records below `runs` checked, and what is wrong with the submissions they came in."""
    from fsdil_bench.records.checks import check_folder
    from fsdil_bench.records.record import RECORD_FILE, find_folders
    from fsdil_bench.records.submission import manifest_problems, open_archive

    folders: list[Path] = []
    problems: list[str] = []
    for number, path in enumerate(runs):
        if not path.exists():
            raise RequestError(f"'{path}' does not exist", "Give a folder that holds runs.")
        if path.name == RECORD_FILE:
            path = path.parent
        root = open_archive(path, scratch / str(number)) if path.is_file() else path
        problems += [f"{path}: {problem}" for problem in manifest_problems(root)]
        folders += find_folders(root)
    if not folders:
        raise RequestError(
            f"there is no complete run in {', '.join(map(str, runs))}",
            "Give a folder that holds runs, or a submission.",
        )
    return [check_folder(folder) for folder in sorted(set(folders))], problems


def _choose(
    records: list[Record], sample: int | None, per_row: bool, seed: int | None
) -> tuple[list[Record], int | None]:
    """The records to run again, and the seed they were drawn with if they were."""
    from fsdil_bench.analysis.grouping import rows_of_all_boards

    if sample is None and not per_row:
        return records, None
    seed = secrets.randbelow(10**6) if seed is None else seed  # nobody knows it beforehand
    draw = random.Random(seed)
    chosen = records
    if per_row:
        kinds = ([r for r in records if r.sealed == sealed] for sealed in (False, True))
        chosen = [draw.choice(row) for kind in kinds for row in rows_of_all_boards(kind)]
    if sample is not None and sample < len(chosen):
        chosen = draw.sample(chosen, sample)
    return chosen, seed


def _run_again(
    records: Sequence[Record],
    out: Path,
    plugins: Sequence[str],
    quiet: bool,
    silent: bool,
    options: dict[str, Any],
) -> list[tuple[Record, Verified]]:
    from fsdil_bench.runs.rerun import verify

    registries: dict[bool, Registry] = {}
    progress = run_progress(quiet)
    found = []
    # Sealed runs come first: for them no plugin is imported here.
    for record in sorted(records, key=lambda record: not record.sealed):
        sealed = options["sealed"] or record.sealed
        if sealed not in registries:
            registries[sealed] = open_registry(plugins, sealed=sealed)
        progress.say(f"running again: {_name(record)}")
        verified = verify(
            record, registry=registries[sealed], out=out, progress=progress, **options
        )
        found.append((record, verified))
        if not silent:
            _tell_verdict(record, verified)
    return found


def _tell_checks(checked: Sequence[Checked], problems: Sequence[str]) -> None:
    for text in problems:
        _bad(text)
    for each in checked:
        for problem in each.problems:
            _bad(f"{each.folder}: {problem}")
    bad = sum(bool(each.problems) for each in checked)
    notes = Counter(note for each in checked for note in each.notes)
    click.echo(
        f"{len(checked)} records: {len(checked) - bad} valid, {bad} not"
        + "".join(f"; {count} {note}" for note, count in sorted(notes.items()))
    )


def _tell_verdict(record: Record, verified: Verified) -> None:
    from fsdil_bench.runs.rerun_agreement import Verdict

    colours = {Verdict.IDENTICAL: "green", Verdict.CLOSE: "yellow"}
    click.secho(f"{verified.outcome}: ", fg=colours.get(verified.outcome, "red"), nl=False)
    click.echo(f"{_name(record)}: {verified.reason}")
    if verified.outcome in (Verdict.CLOSE, Verdict.DIFFERS):
        for line in verified.surroundings:
            click.echo(f"  {line}")
        if not verified.surroundings:
            click.echo("  nothing in the provenance differs that would explain it")


def _bad(text: str) -> None:
    click.secho("not valid: ", fg="red", nl=False)
    click.echo(text)


def _name(record: Record) -> str:
    spec = record.spec
    return f"{spec['method']} on {spec['scenario']}, seed {spec['seed']} ({record.run_id})"


def _findings(
    checked: Sequence[Checked], problems: Sequence[str], again: Sequence[tuple[Record, Verified]]
) -> dict[str, Any]:
    outcomes = {record.folder: verified.to_dict() for record, verified in again}
    return {
        "problems": list(problems),
        "records": [
            {
                "folder": str(each.folder),
                "run_id": each.record.run_id if each.record else None,
                "problems": each.problems,
                "notes": each.notes,
                "again": outcomes.get(each.folder),
            }
            for each in checked
        ],
    }


def _exit_code(invalid: bool, outcomes: Sequence[Verified]) -> int:
    from fsdil_bench.runs.rerun_agreement import Verdict

    found = {verified.outcome for verified in outcomes}
    if invalid:
        return INVALID
    if Verdict.DIFFERS in found:
        return DIFFERS
    return NOT_RUN if Verdict.NOT_RUN in found else 0
