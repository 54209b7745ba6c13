"""Kill a run for real, at any moment: nothing finished is lost, the same command resumes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fsdil_bench import Record
from fsdil_bench.analysis.unfinished import find_unfinished
from fsdil_bench.errors import HeldError, RecordError
from fsdil_bench.runs.run_folder import RunFolder

TOY = Path(__file__).parent.parent / "toy_plugin.py"


def command(out):
    return [
        sys.executable, "-m", "fsdil_bench", "run", "--plugin", str(TOY), "--method", "toy-slow",
        "--scenario", "toy-1shot", "--out", str(out),
    ]  # fmt: skip


def run_folder(out):
    return next((out / "toy-1shot" / "toy-slow").iterdir())


def test_kill_in_the_third_domain_then_go_on(tmp_path):
    mark = tmp_path / "mark"
    waiting = os.environ | {"TOY_SLEEP_IN": "2", "TOY_MARK": str(mark)}
    process = subprocess.Popen(command(tmp_path / "a"), env=waiting, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 240
    while not mark.exists():
        assert process.poll() is None, "the run ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    folder = run_folder(tmp_path / "a")
    assert not (folder / "record.json").exists()
    assert RunFolder(folder).finished_domains() == 2

    resumed = subprocess.run(command(tmp_path / "a"), capture_output=True, text=True, check=True)
    assert "resuming after domain 2 of 4" in resumed.stderr
    subprocess.run(command(tmp_path / "b"), capture_output=True, check=True)

    interrupted, whole = Record.load(folder), Record.load(run_folder(tmp_path / "b"))
    assert interrupted.provenance["resumed_after"] == 2
    assert interrupted.matrix == whole.matrix
    assert interrupted.predictions_sha256 == whole.predictions_sha256


def test_half_written_domain_does_not_count(toy_run, tmp_path):
    record = toy_run()
    (record.folder / "record.json").unlink()
    (record.folder / "domain-3").rename(record.folder / "domain-3.tmp")
    again = toy_run()
    assert again.matrix == record.matrix
    assert not (record.folder / "domain-3.tmp").exists()


def test_two_processes_do_not_share_a_run(tmp_path):
    folder = RunFolder(tmp_path / "run")
    with (
        folder.locked(),
        pytest.raises(HeldError, match="another process"),
        RunFolder(tmp_path / "run").locked(),
    ):
        pass


def test_a_second_process_leaves_a_running_run_alone(toy_run):
    record = toy_run()
    (record.folder / "record.json").unlink()  # as while it is under way

    def look():
        files = sorted(record.folder.rglob("*"))
        return [(file, file.stat().st_mtime_ns, file.stat().st_size) for file in files]

    with RunFolder(record.folder).locked():
        before = look()
        for options in ({}, {"fresh": True}, {"reuse_base": True}):
            with pytest.raises(HeldError, match="another process"):
                toy_run(**options)
            assert look() == before
    (unfinished,) = find_unfinished(record.folder)
    assert unfinished.state == "incomplete"


def test_checkpoints_are_kept_on_request(toy_run, tmp_path):
    few = toy_run(out=tmp_path / "few")
    many = toy_run(out=tmp_path / "many", keep_checkpoints=True)
    assert len(list(few.folder.rglob("state.safetensors"))) == 1
    assert len(list(many.folder.rglob("state.safetensors"))) == 4


def test_changed_predictions_are_noticed(toy_run):
    record = toy_run()
    with (record.folder / "predictions.npz").open("ab") as file:
        file.write(b"x")
    with pytest.raises(RecordError, match="does not match"):
        Record.load(record.folder).predictions()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": 99}', '{"schema": 1}'])
def test_damaged_or_newer_records_are_refused(toy_run, text):
    record = toy_run()
    (record.folder / "record.json").write_text(text)
    with pytest.raises(RecordError, match="record"):
        Record.load(record.folder)


def test_full_disk_is_named(toy_run, monkeypatch):
    import errno

    from fsdil_bench.errors import FsdilError

    def no_space(self, *arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(RunFolder, "save_domain", no_space)
    with pytest.raises(FsdilError, match="No space left on device"):
        toy_run()


def test_record_is_plain_json(toy_run):
    record = toy_run()
    values = json.loads((record.folder / "record.json").read_text())
    assert values["spec"]["scenario"] == "toy-1shot"
    assert values["metrics"] == record.metrics
