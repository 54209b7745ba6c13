"""Commands where output or the current folder are not as usual: closed, full, removed, narrow."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest


def shell(line, folder):
    """Exit code, output and errors of a line of the shell, in which `{}` is fsdil-bench."""
    command = f"{shlex.quote(sys.executable)} -m fsdil_bench"
    done = subprocess.run(
        ["sh", "-c", line.format(command)], cwd=folder, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{} list methods >&-", "standard output is closed"),
        ("{} list methods > /dev/full", "the output cannot be written: No space left on device"),
        ("{} --version > /dev/full", "the output cannot be written: No space left on device"),
        ("mkdir x; cd x; rmdir ../x; {} list methods", "the current folder was removed"),
    ],
)
def test_it_is_said_in_one_message(line, words, tmp_path):
    if "/dev/full" in line and not Path("/dev/full").is_char_device():
        pytest.skip("this machine has no /dev/full")
    code, out, err = shell(line, tmp_path)
    assert (code, out) == (1, "")
    assert err.startswith(f"error: {words}\n")
    assert len(err.splitlines()) == 2  # the message and the remedy


def test_nowhere_to_complain_is_no_success(tmp_path):
    assert shell("{} list methods >&- 2>&-", tmp_path) == (1, "", "")


def test_a_reader_that_leaves_hears_nothing(tmp_path):
    code, out, err = shell("{} list methods --json | true", tmp_path)
    assert (code, out, err) == (0, "", "")


def widest(out):
    return max(map(len, out.splitlines()))


def test_columns_set_the_width_in_a_pipe(call, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    code, out, _ = call("list", "methods")
    assert code == 0
    assert 50 < widest(out) <= 60


@pytest.mark.parametrize("columns", ["", "0", "-3", "x", "6 0", "1e2", "\u00b2", "9" * 5000])
def test_columns_that_are_no_width_do_not_count(columns, call, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    usual = call("list", "methods")
    assert widest(usual[1]) > 100
    monkeypatch.setenv("COLUMNS", columns)
    assert call("list", "methods") == usual
