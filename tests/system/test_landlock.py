"""Landlock: a process that may write to one folder alone."""

from __future__ import annotations

import subprocess
import sys

import pytest

from fsdil_bench.system import landlock

CODE = """
import os, sys
from pathlib import Path
from fsdil_bench.system.landlock import write_only_below
own, other = map(Path, sys.argv[1:])
write_only_below([str(own)], existing=["/dev"])
(own / "file").write_text("x")
(own / "file").rename(own / "renamed")
(own / "renamed").unlink()
Path("/dev/null").write_text("x")
print((other / "given").read_text())
for action in (
    lambda: (other / "file").write_text("x"),
    lambda: (other / "given").write_text("x"),
    lambda: (other / "given").unlink(),
    lambda: (other / "folder").mkdir(),
):
    try:
        action()
    except PermissionError:
        print("refused")
os.system(f"echo x > {other}/from-a-program")
"""


@pytest.mark.skipif(not landlock.version(), reason="this kernel has no Landlock")
def test_only_the_own_folder_can_be_written(tmp_path):
    own, other = tmp_path / "own", tmp_path / "other"
    own.mkdir()
    other.mkdir()
    (other / "given").write_text("readable")
    command = [sys.executable, "-c", CODE, str(own), str(other)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["readable", *["refused"] * 4]
    assert [path.name for path in other.iterdir()] == ["given"]


def test_a_kernel_without_it_is_said(monkeypatch):
    monkeypatch.setattr(landlock, "version", lambda: 0)
    with pytest.raises(OSError, match="no Landlock"):
        landlock.write_only_below([])
