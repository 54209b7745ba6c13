"""Wrong sweeps: one clear message each, exit code 2, and nothing is run."""

from __future__ import annotations

import pytest
from sweep_processes import TOY

ONE = ["-m", "toy-means", "-s", "toy-1shot"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--shots", "1,x", "-m", "toy-means", "-s", "toy"], ["--shots = '1,x'", "'x' is not"]),
        ([*ONE, "--seeds", "0,1,2x,3"], ["--seeds = '0,1,2x,3'", "'2x' is not a number", "0-2"]),
        ([*ONE, "--seeds", "0,5-2"], ["'5-2' goes down"]),
        ([*ONE, "--seeds", "0,,1"], ["'' is not a number"]),
        ([*ONE, "--seeds", "-1"], ["'-1' is not a number"]),
        ([*ONE, "--seeds", "0-99999999999"], ["100,000,000,000 values", "at most 10,000"]),
        ([*ONE, "--seeds", "9" * 40], ["is not a number"]),
        ([*ONE, "--seeds", "4294967296"], ["4294967296", "from 0 to 4294967295"]),
        (["-m", "toy-means", "-s", "toy", "--shots", "1-99999999"], ["99,999,999 values"]),
        (["-m", "toy-means", "-s", "toy", "--shots", "0"], ["0 does not fit", "from 1 on"]),
        (
            [*ONE, "--seeds", "0-999", "--orders", "999"],
            ["999,000 runs are asked for", "at most 100,000"],
        ),
        ([*ONE, "--orders", "0"], ["--orders"]),
        ([*ONE, "--orders", "99"], ["99 orders are asked for", "--free-base"]),
        ([*ONE, "--free-base"], ["no effect without orders", "--orders 5"]),
        ([*ONE, "--set", "zzz.mode=1"], ["unknown method of this sweep", "'zzz'", "toy-means"]),
        ([*ONE, "--set", "mode"], ["key=value"]),
        ([], ["--methods is missing", "--scenarios", "or a file"]),
        (["-m", "toy-means"], ["--scenarios is missing"]),
        (["-m", ",", "-s", "toy-1shot"], ["--methods is missing"]),
        (["."], [". cannot be read", "directory"]),
        (["nowhere.toml"], ["nowhere.toml cannot be read"]),
    ],
)
def test_on_the_command_line(call, tmp_path, arguments, words):
    code, out, err = call("sweep", "--plugin", TOY, *arguments)
    assert (code, out) == (2, "")
    for word in words:
        assert word in err
    assert "Traceback" not in err
    assert "fault of fsdil-bench" not in err
    assert not (tmp_path / "runs").exists()


GRID = 'methods = ["toy-means"]\nscenarios = ["toy-1shot"]\n'


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", ["no run is asked for", "[[grid]]"]),
        (b"# nothing\n", ["no run is asked for"]),
        (b"jobs = 2\n", ["methods is missing"]),
        (b"\x00\x01\xff\xfe", ["not valid TOML", "UTF-8"]),
        (b"PK\x03\x04\x00", ["not valid TOML"]),
        (b"a = 1\na = 2\n", ["not valid TOML", "overwrite"]),
        (b"a = " + b"[" * 100_000, ["not valid TOML", "nested too deeply"]),
        (f"{GRID}config.{'a.' * 5000}b = 1".encode(), ["nested more than 20 levels"]),
        (f"{GRID}jobs = {'9' * 5000}".encode(), ["not valid TOML"]),
        (f"{GRID}jobs = 0x{'f' * 5000}".encode(), ["line 3", "jobs", "64 bits"]),
        (f"{GRID}seeds = [nan]".encode(), ["line 3", "seeds = nan is not a finite number"]),
        (f"{GRID}seeds = [1.5]".encode(), ["seeds = [1.5] is not a list of numbers"]),
        (f"{GRID}seeds = [-1]".encode(), ["-1 does not fit", "from 0 on"]),
        (f"{GRID}seeds = '0-99999999999'".encode(), ["100,000,000,000 values"]),
        (f"{GRID}seeds = [{'7,' * 10_001}]".encode(), ["10,001 values"]),
        (f"{GRID}seeds = 1999-12-31".encode(), ["not a list of numbers"]),
        (f"{GRID}shots = '1-99999999'".encode(), ["99,999,999 values"]),
        (f"{GRID}time_limit = inf".encode(), ["time_limit = inf"]),
        (f"{GRID}time_limit = '{'9' * 400}'".encode(), ["time_limit", "does not fit"]),
        (f"{GRID}[resources]\nmemory_gb = nan".encode(), ["line 4", "memory_gb = nan"]),
        (f"{GRID}[resources.toy-meens]\ncpus = 1".encode(), ["'toy-meens'", "'toy-means'"]),
        (f"{GRID}[method.toy-means]\nconfig = {{x = inf}}".encode(), ["x = inf"]),
        (f"{GRID}name = '../../elsewhere'".encode(), ["line 3", "name = '../../elsewhere'"]),
        (f"{GRID}name = '..'".encode(), ["name = '..'"]),
        (f'{GRID}out = "a\\u0000b"'.encode(), ["out", "NUL"]),
        (f"{GRID}plugins = 3".encode(), ["plugins = 3 does not fit"]),
        (f"[[grid]]\n{GRID}data = '~nobody-of-this-name/x'".encode(), ["line 1", "no home folder"]),
        (f"{GRID}grid = 3".encode(), ["grid is not a list of tables"]),
        (f"{GRID}metods = []".encode(), ["'metods'", "'methods'"]),
        (f"{GRID}methods.x = 1".encode(), ["not valid TOML"]),
        (b"[[include]]\nmethod = 'toy-means'\n", ["line 1", "scenarios is missing"]),
        (
            f"{GRID}exclude = []\n".encode(),
            ["'exclude'"],
        ),
        (
            f"[[grid]]\n{GRID}exclude = [{{ method = '*' }}]".encode(),
            ["no run is asked for", "`exclude` leaves nothing"],
        ),
    ],
    ids=lambda value: repr(value[:40]) if isinstance(value, bytes) else "",
)
def test_in_a_file(call, tmp_path, content, words):
    (tmp_path / "some.toml").write_bytes(content)
    code, out, err = call("sweep", "--plugin", TOY, "some.toml")
    assert (code, out) == (2, ""), err
    assert "error: some.toml" in err
    for word in words:
        assert word in err
    assert "Traceback" not in err
    assert "fault of fsdil-bench" not in err
    assert len(err) < 1500
    assert not (tmp_path / "runs").exists()


def test_single_cells_need_no_grid(call, tmp_path):
    (tmp_path / "some.toml").write_text("[[include]]\nmethod = 'toy-means'\nscenario='toy-1shot'\n")
    code, out, _ = call("sweep", "--plugin", TOY, "some.toml", "--dry-run", "--on=records")
    assert code == 0
    assert "1 runs: 1 missing" in out
    code, _, err = call("sweep", "--plugin", TOY, "some.toml", "--seeds", "7", "--dry-run")
    assert code == 2
    assert "choose none of its runs" in err
