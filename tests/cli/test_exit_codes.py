"""Every exit code is one of the table, and means the same for all commands."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import fsdil_bench
from fsdil_bench import exit_codes
from fsdil_bench.errors import DataError, FsdilError, HeldError, PluginError, RecordError
from fsdil_bench.exit_codes import BAD_INPUT, BUSY, DONE, FAILED, INTERRUPTED, PIPE_CLOSED
from fsdil_bench.runs.run_folder import RunFolder
from fsdil_bench.sweeps.launchers.launcher import Resources, Task
from fsdil_bench.sweeps.worker import work

HARNESS = Path(fsdil_bench.__file__).parent
TESTS = Path(__file__).parent.parent
TOY = TESTS / "toy_plugin.py"
RUN = ["run", "-q", "--plugin", TOY, "-s", "toy-1shot", "-m"]


def test_every_code_is_in_the_table():
    named = {value for name, value in vars(exit_codes).items() if isinstance(value, int)}
    assert named == set(exit_codes.MEANINGS)


def test_no_module_has_a_code_of_its_own():
    for path in HARNESS.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("sys.exit", "_fail"):
                assert not isinstance(node.args[-1], ast.Constant), f"{path}:{node.lineno}"
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "exit_code":
                assert not isinstance(node.value, ast.Constant), f"{path}:{node.lineno}"


@pytest.mark.parametrize("words", [["list", "methods"], ["--version"], ["run", "--help"]])
def test_done(call, words):
    assert call(*words)[0] == DONE


def test_a_question_is_answered(call, toy_run, tmp_path):
    toy_run(out=tmp_path / "runs")
    assert call("verify", "--no-run", "runs")[0] == DONE
    next((tmp_path / "runs").rglob("predictions.npz")).unlink()
    assert call("verify", "--no-run", "runs")[0] == FAILED
    assert call("data", "path", "core50", "--data", "nowhere")[0] == FAILED


def test_a_run_that_fails(call):
    assert call(*RUN, "toy-raisesinlearn")[0] == FAILED


@pytest.mark.parametrize(
    "words",
    [
        ["run"],
        ["list", "nothing"],
        ["run", "-m", "ncm", "-s", "drawn-1shot", "--seed", "x"],
        ["run", "-m", "nmc", "-s", "drawn-1shot"],
        ["show", "nowhere"],
        ["leaderboard", "nowhere"],
        ["compare", "a", "b", "nowhere"],
        ["rank", "nowhere"],
        ["paper", "nowhere"],
        ["verify", "nowhere"],
        ["submit", "nowhere", "--out", "x.zip"],
        ["sweep", "nowhere.toml"],
        ["new-method", "good-name", "--out", TOY],
    ],
    ids=lambda words: " ".join(map(str, words[:2])),
)
def test_bad_input(call, words):
    assert call(*words)[0] == BAD_INPUT


def test_a_record_that_is_damaged_is_bad_input(call, made, tmp_path):
    folder = made.make_record(tmp_path / "runs", "good").folder
    (folder / "record.json").write_text("{")
    assert call("show", folder)[0] == BAD_INPUT


def test_a_run_that_another_process_has(call, toy_run, tmp_path):
    folder = toy_run(out=tmp_path / "runs").folder
    (folder / "record.json").unlink()
    with RunFolder(folder).locked():
        code, _, err = call(*RUN, "toy-means")
    assert code == BUSY
    assert "another process is at work" in err


def test_ctrl_c(call):
    code, _, err = call(*RUN, "interrupts", "--plugin", TESTS / "exits_plugin.py")
    assert code == INTERRUPTED
    assert "interrupted" in err


@pytest.mark.parametrize(
    "words",
    ["list methods --json", "list methods", "paper", "--help", "run --help", "completion zsh"],
)
def test_a_reader_that_has_ended(words):
    code = (
        "import sys, os, fsdil_bench.cli as cli\n"
        f"sys.argv = ['fsdil-bench', *{words.split()}]\n"
        "reading, writing = os.pipe()\n"
        "os.close(reading)\n"
        "os.dup2(writing, 1)\n"
        "cli.entry_point()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (PIPE_CLOSED, "")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (FsdilError("x"), FAILED),
        (PluginError("x"), FAILED),
        (OSError("x"), FAILED),
        (DataError("x"), BAD_INPUT),
        (RecordError("x"), BAD_INPUT),
        (HeldError("x"), BUSY),
        (KeyboardInterrupt(), INTERRUPTED),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_processes_of_a_sweep_have_the_same_codes(error, code, tmp_path, monkeypatch):
    def fail(task):
        raise error

    monkeypatch.setattr("fsdil_bench.sweeps.worker._run", fail)
    task = Task("key", {}, tmp_path / "run", tmp_path, resources=Resources())
    assert work(task) == code
