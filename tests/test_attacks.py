"""Every attack in `tests/attacks` ends as the file says, and as the table in docs/sealed.md says.

An attack is a plugin file that tries to get a better score than it deserves. Its `EXPECTED` says
how it ends in an ordinary run, in a sealed one, in `fsdil-bench check`, in `verify --sealed` of its
ordinary record and on a board.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parent
ATTACKS = sorted((TESTS / "attacks").glob("a*.py"))
WORLD = TESTS / "toy_world_plugin.py"
ENDS = {"prevented", "detected", "documented", "lost", "-"}
#: These are tried in every run of the tests; the others only in the slow ones.
QUICK = {
    "sealed": ("a04", "a10", "a13", "a17"),
    "check": ("a08", "a17", "a19"),
    "verify": ("a10",),
    "board": (),
}
#: Files that spoil the process that imports them.
SPOILS = ("a17", "a26")
_SCENARIO = {"scenario": "toy-1shot", "order": ("d0", "d3"), "seed": 0}


def said_by(path: Path, name: str, default: Any = None) -> Any:
    """A constant of an attack, without importing it."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            return ast.literal_eval(node.value)
    return default


def expected(path: Path) -> dict[str, str]:
    """How an attack says that it ends."""
    return said_by(path, "EXPECTED")


def cells(column: str) -> list:
    """The attacks that have something to try in a column; all but a few are slow."""
    quick = QUICK.get(column)
    return [
        pytest.param(
            path,
            id=path.stem,
            marks=[pytest.mark.slow] if quick is not None and path.stem[:3] not in quick else [],
        )
        for path in ATTACKS
        if expected(path)[column] != "-"
    ]


@pytest.fixture
def attack(tmp_path, monkeypatch):
    """Let an attack try something; returns how it ends."""
    from fsdil_bench.plugins.registry import load_registry

    stream = _published(load_registry([WORLD]))
    for name, value in stream.items():
        monkeypatch.setenv(name, value)
    place = Path(f"/tmp/fsdil-attack-{os.getuid()}.pt")
    place.unlink(missing_ok=True)
    monkeypatch.setenv("KEPT", "[]")

    def run(path, what):
        if path.stem[:3] not in SPOILS:
            return ending(path, what, tmp_path / "runs")
        paths = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
        command = [sys.executable, __file__, str(path), what, str(tmp_path / "runs")]
        done = subprocess.run(
            command, env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.split()[-1]

    yield run
    place.unlink(missing_ok=True)
    vars(sys.modules.get("colorsys", sys)).pop("kept_by_an_attack", None)


def _published(registry) -> dict[str, str]:
    """What everybody can know of a stream."""
    from fsdil_bench import load_stream

    stream = load_stream(**_SCENARIO, registry=registry)
    labels = [domain.test.labels.tolist() for domain in stream.domains]
    return {"PUBLISHED_DIGEST": stream.digest(), "PUBLISHED_LABELS": json.dumps(labels)}


def ending(path: Path, what: str, out: Path) -> str:
    """How an attack ends."""
    if what == "check":
        return _check(path)
    if what == "verify":
        return _verify(path, out)
    if what == "board":
        return _board(path, out)
    if what == "sealed" and path.stem[:3] not in SPOILS:
        _run(path, out, sealed=False)  # a sealed run compares itself with this
    return _run(path, out, sealed=what == "sealed")


def _run(path: Path, out: Path, *, sealed: bool) -> str:
    import fsdil_bench
    from fsdil_bench import FsdilError
    from fsdil_bench.plugins import registry

    os.environ["KEPT"] = "[]"
    registry._imported_here.clear()  # as if the ordinary run had been in another process
    asked = _SCENARIO | {"order": said_by(path, "ORDER", _SCENARIO["order"])}
    method = said_by(path, "METHOD", "cheat")
    try:
        record = fsdil_bench.run(method, plugins=[WORLD, path], out=out, sealed=sealed, **asked)
    except FsdilError:
        return "prevented"
    if not _module(path).worked(record):
        return "lost"
    marks = [record.provenance.get("suspicions"), record.warnings]
    marks.append(record.provenance.get("ordinary_run") == "other predictions")
    return "detected" if any(marks) else "works"


def _module(path: Path):
    """The attack as a module, to ask whether it has worked."""
    import runpy
    from types import SimpleNamespace

    return SimpleNamespace(**runpy.run_path(str(path)))


def _check(path: Path) -> str:
    from fsdil_bench.checks import check_method

    method = said_by(path, "METHOD", "cheat")
    findings = check_method(method, plugins=[WORLD, path], scenario="toy-2shot")
    return "works" if all(finding.passed for finding in findings) else "detected"


def _verify(path: Path, out: Path) -> str:
    from fsdil_bench import Record
    from fsdil_bench.plugins import registry
    from fsdil_bench.records.checks import check_folder
    from fsdil_bench.runs.rerun import verify

    _run(path, out, sealed=False)
    [folder] = [file.parent for file in out.rglob("record.json")]
    if check_folder(folder).problems:
        return "detected"
    record = Record.load(folder)
    os.environ["KEPT"] = "[]"
    registry._imported_here.clear()
    known = registry.load_registry([WORLD, path], ())
    verdict = verify(record, registry=known, out=out.with_name("again"), sealed=True)
    return "works" if verdict.outcome.value in ("identical", "same accuracy") else "detected"


def _board(path: Path, out: Path) -> str:
    from fsdil_bench import FsdilError, find_records, write_leaderboards

    _run(path, out, sealed=False)
    noticed = expected(path)["sealed"] == "detected"
    if noticed:
        _run(path, out, sealed=True)
    boards = out.with_name("boards")
    try:
        write_leaderboards(find_records(out), boards)
    except FsdilError:
        return "detected"
    if noticed:
        pages = "".join(each.read_text(encoding="utf-8") for each in boards.glob("toy-1shot*.md"))
        return "detected" if "differs from the ordinary run" in pages else "works"
    shown = "".join(each.read_text(encoding="utf-8") for each in boards.rglob("*.csv"))
    return "works" if "99.9" in shown else "detected"


def same(found: str, said: str) -> bool:
    """Whether an attack ends as it should; what is documented works."""
    return found == ("works" if said == "documented" else said)


@pytest.mark.parametrize("path", ATTACKS, ids=lambda path: path.stem)
def test_an_attack_says_how_it_ends(path):
    said = expected(path)
    assert list(said) == ["ordinary", "sealed", "check", "verify", "board"]
    assert said.pop("ordinary") in ENDS | {"works"}, "only an ordinary run may be cheated"
    assert set(said.values()) <= ENDS


@pytest.mark.parametrize("path", cells("ordinary"))
def test_ordinary(attack, path):
    assert same(attack(path, "ordinary"), expected(path)["ordinary"])


@pytest.mark.parametrize("path", cells("sealed"))
def test_sealed(attack, path):
    from fsdil_bench.system import landlock

    said = expected(path)["sealed"]
    if path.stem.startswith("a04") and landlock.version() < 1:
        said = "detected"  # the kernel cannot prevent it
    assert same(attack(path, "sealed"), said)


@pytest.mark.parametrize("path", cells("check"))
def test_check(attack, path):
    assert same(attack(path, "check"), expected(path)["check"])


@pytest.mark.parametrize("path", cells("verify"))
def test_verify(attack, path):
    assert same(attack(path, "verify"), expected(path)["verify"])


@pytest.mark.parametrize("path", cells("board"))
def test_board(attack, path):
    assert same(attack(path, "board"), expected(path)["board"])


if __name__ == "__main__":
    print(ending(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])))
