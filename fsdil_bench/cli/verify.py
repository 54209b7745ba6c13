"""`fsdil-bench verify` and `fsdil-bench submit`: results that everybody can trust."""

from __future__ import annotations

import random
import secrets
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fsdil_bench.errors import FsdilError, RequestError
from fsdil_bench.exit_codes import DONE, FAILED

from . import names
from .common import (
    Points,
    debug_option,
    json_option,
    open_registry,
    plugin_option,
    print_json,
    print_warning,
    run_progress,
)

if TYPE_CHECKING:
    from fsdil_bench.plugins.registry import Registry
    from fsdil_bench.records.checks import Checked
    from fsdil_bench.records.record import Record
    from fsdil_bench.runs.rerun_agreement import Verified

_RUNS = click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path))


@click.command(
    epilog="Examples:\n\n\b\n"
    "  fsdil-bench verify --no-run leaderboards/records\n"
    "  fsdil-bench verify --per-row submission.zip\n"
    "  fsdil-bench verify runs/drawn-1shot/ncm/seed0-*\n"
    "\n"
    "Ends with 0 if every record is valid and came out the same or within the tolerance, and with\n"
    "1 if one is not valid, came out differently or could not be run again."
)
@_RUNS
@click.option("--no-run", is_flag=True, help="Validate only.")
@click.option("--sample", type=click.IntRange(1), metavar="N", help="Run N of them again, drawn.")
@click.option("--per-row", is_flag=True, help="Run one drawn seed of every row again.")
@click.option("--sample-seed", type=int, help="Draw the same ones again.")
@click.option(
    "--tolerance", type=Points(), metavar="POINTS",
    help="By how much scores may differ where predictions do.  [default: not at all where the same"
    " bits are expected, else 0.2, in bf16 0.5]",
)  # fmt: skip
@click.option("--sealed", is_flag=True, help="Run again sealed, whatever the record was.")
@click.option("--anyway", is_flag=True, help="Run again even if code, weights or samples differ.")
@click.option("--data", type=click.Path(path_type=Path), help="Where a scenario's images are.")
@click.option(
    "--backbone", "-b", default="", help="Where files are: MODEL:path, CONFIG.json:path.",
    shell_complete=names.backbones,
)  # fmt: skip
@click.option("--names", type=click.Path(path_type=Path), help="JSON file with class names.")
@click.option("--synonyms", type=click.Path(path_type=Path), help="JSON file with synonyms.")
@click.option("--device", default="", help="Default: the record's, if this machine has it.")
@click.option("--batch-size", type=click.IntRange(1), help="Default: the record's.")
@click.option("--out", type=click.Path(path_type=Path), help="Keep the new runs in this folder.")
@click.option(
    "--by",
    default="",
    metavar="NAME",
    help="Who verifies, for verdict.json.  [default: git's user.name]",
)
@click.option("--no-verdict", is_flag=True, help="Write no verdict.json beside the records.")
@json_option("Print the findings as JSON.")
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
    by: str,
    no_verdict: bool,
    as_json: bool,
    quiet: bool,
    plugins: Sequence[str],
    **options: Any,
) -> None:
    """Validate records, run them again and compare the predictions.

    RUNS are folders of runs, folders above them, or submissions (zip files or folders). The verdict
    is written beside each record that was run again (verdict.json), and boards show it.
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
        if not no_verdict:
            _save_verdicts(again, by, Path(scratch), options["sealed"])
        _recommend_sealed(again, options["sealed"])
        answer = _answer(len(valid) < len(checked) or bool(problems), again)
        if as_json:
            print_json({"answer": answer} | _findings(checked, problems, again))
    sys.exit(DONE if answer in ("valid", "confirmed") else FAILED)


@click.command(
    epilog="Example:  fsdil-bench submit runs/drawn-1shot/my-idea --out my-idea.zip\n\n"
    "The zip file or folder holds records and predictions, no checkpoints. It says what to do next."
)
@_RUNS
@click.option("--out", required=True, type=click.Path(path_type=Path),
              help="Where to pack them: FILE.zip, or a folder.")  # fmt: skip
@click.option(
    "--unsealed",
    is_flag=True,
    help="Also pack ordinary runs of third-party methods; boards mark them.",
)
@json_option("Print what was packed as JSON.")
@debug_option
def submit(runs: Sequence[Path], out: Path, unsealed: bool, as_json: bool) -> None:
    """Check records and pack them for a pull request.

    Runs of third-party methods must be sealed (`fsdil-bench run --sealed`). Verdicts are not
    packed: what counts is who runs it again, not what the submitter says.
    """
    from rich.filesize import decimal

    from fsdil_bench.records.submission import GUIDE, pack

    with tempfile.TemporaryDirectory(prefix="fsdil-submit-") as scratch:
        checked, problems = _check(runs, Path(scratch))
        bad = [each for each in checked if each.problems]
        if bad or problems:
            _tell_checks(checked, problems)
            raise FsdilError(
                f"{len(bad)} of {len(checked)} records are not valid; nothing was packed",
                "Run them again with --fresh.",
            )
        if not unsealed:
            _refuse_unsealed(checked)
        packed = pack(checked, out)
    if as_json:
        values = {"path": str(packed.path), "records": packed.records, "bytes": packed.size}
        print_json(values | {"cut": packed.cut, "names": packed.names})
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


def _refuse_unsealed(checked: Sequence[Checked]) -> None:
    from fsdil_bench.analysis.evidence import for_development

    records = [each.record for each in checked if each.record and for_development([each.record])]
    if records:
        names = ", ".join(sorted({record.spec["method"] for record in records}))
        raise RequestError(
            f"{len(records)} of {len(checked)} records are ordinary runs of third-party methods"
            f" ({names})",
            "Run them with --sealed and submit those; --unsealed packs the ordinary ones, which"
            " boards show apart as 'not sealed'.",
        )


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


def _save_verdicts(
    again: Sequence[tuple[Record, Verified]], by: str, scratch: Path, sealed: bool
) -> None:
    """Write a verdict beside every record that was run again, where that is possible."""
    from fsdil_bench.records.verdict_file import git_user, make_verdict, save_verdict
    from fsdil_bench.runs.rerun_agreement import Verdict

    who, packed = by or git_user(), 0
    for record, verified in again:
        assert record.folder is not None
        if verified.outcome == Verdict.NOT_RUN:
            continue
        if record.folder.is_relative_to(scratch):
            packed += 1
            continue
        sealed_again = sealed or record.sealed
        found = make_verdict(record, verified.outcome.name.lower(), who=who, sealed=sealed_again)
        try:
            save_verdict(record, found)
        except OSError as error:
            print_warning(f"no verdict was written beside {record.folder}: {error.strerror}")
    if packed:
        print_warning(
            f"no verdict was written for {packed} records inside an archive; unpack it first"
        )


def _recommend_sealed(again: Sequence[tuple[Record, Verified]], sealed: bool) -> None:
    """An ordinary re-run of a third-party method repeats whatever its code does to the harness."""
    found = sorted({r.spec["method"] for r, _ in again if r.third_party and not r.sealed})
    if found and not sealed:
        print_warning(
            f"{', '.join(found)}: an ordinary run of a third-party method can come out the same"
            " and still be wrong; verify with --sealed"
        )


def _tell_checks(checked: Sequence[Checked], problems: Sequence[str]) -> None:
    from fsdil_bench.analysis.evidence import differing_copies

    for text in problems:
        _bad(text)
    for each in checked:
        for problem in each.problems:
            _bad(f"{each.folder}: {problem}")
    sound = [each.record for each in checked if each.record and not each.problems]
    for run_id, text in sorted(differing_copies(sound).items()):
        click.echo(f"note: run {run_id}: {text}")
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


def _answer(invalid: bool, again: Sequence[tuple[Record, Verified]]) -> str:
    """All findings in a word or two; the worst counts."""
    from fsdil_bench.runs.rerun_agreement import Verdict

    found = {verified.outcome for _, verified in again}
    if invalid:
        return "not valid"
    bad = [outcome for outcome in (Verdict.DIFFERS, Verdict.NOT_RUN) if outcome in found]
    return str(bad[0]) if bad else "confirmed" if found else "valid"
