"""Copies of one run: which of them counts, and when none does."""

from __future__ import annotations

import dataclasses
import os

import numpy as np
import pytest

from fsdil_bench import Record
from fsdil_bench.analysis.evidence import differing_copies
from fsdil_bench.analysis.grouping import distinct_runs
from fsdil_bench.errors import RecordError
from fsdil_bench.records.record import file_sha256, find_records

LEVELS = (0.6, 0.9)


@pytest.fixture
def copy(made, tmp_path):
    """Write a copy of one run below a folder; a different level makes different predictions."""

    def write(place, level=LEVELS[0], **options):
        record = made.make_record(tmp_path / "runs" / place, "one", level=level, **options)
        record = dataclasses.replace(record, run_id="a" * 16)
        (record.folder / "record.json").write_text(record.to_json())
        return Record.load(record.folder)

    return write


def found_below(folder):
    told = []
    return find_records(folder, tell=told.append), told


@pytest.mark.parametrize("sealed", [False, True])
def test_copies_that_contradict_each_other_do_not_count(copy, tmp_path, sealed):
    copies = [copy(place, level, sealed=sealed) for place, level in zip("ab", LEVELS, strict=True)]
    records, told = found_below(tmp_path / "runs")
    assert records == []
    [line] = told
    assert line.startswith("left out: ")
    assert all(str(record.folder) in line for record in copies)
    with pytest.raises(RecordError, match="made different predictions"):
        find_records(tmp_path / "runs", strict=True)
    with pytest.warns(UserWarning, match="made different predictions"):
        assert distinct_runs(copies) == []
    assert "none counts" in differing_copies(copies)["a" * 16]


def test_the_only_sealed_one_counts(copy, tmp_path):
    sealed = copy("sealed", sealed=True)
    for place, level in zip("ab", LEVELS, strict=True):
        copy(place, level)
    records, told = found_below(tmp_path / "runs")
    assert told == []
    assert distinct_runs(records) == [sealed]
    assert "the sealed one counts" in differing_copies(records)["a" * 16]


def test_the_same_predictions_in_different_files_agree(copy, tmp_path):
    copy("a")
    other = copy("b")
    path = other.folder / "predictions.npz"
    np.savez_compressed(path, **other.predictions())
    packed = dataclasses.replace(other, predictions_sha256=file_sha256(path))
    (other.folder / "record.json").write_text(packed.to_json())
    records, told = found_below(tmp_path / "runs")
    assert told == []
    assert len(records) == 2
    assert len(distinct_runs(records)) == 1
    assert differing_copies(records) == {}


def test_boards_name_both_folders(copy, call):
    copies = [copy(place, level) for place, level in zip("ab", LEVELS, strict=True)]
    code, _, err = call("leaderboard", "runs", "--out", "boards")
    assert code == 2
    for record in copies:
        assert os.path.relpath(record.folder) in err


def test_a_link_within_the_folder_is_read(copy):
    folder = copy("a").folder
    (folder / "record.json").rename(folder / "first.json")
    (folder / "record.json").symlink_to("first.json")
    assert Record.load(folder).run_id == "a" * 16


def test_verify_names_a_record_that_is_a_link_to_another_folder(copy, call, tmp_path):
    folder = copy("a").folder
    (folder / "record.json").rename(tmp_path / "first.json")
    (folder / "record.json").symlink_to(tmp_path / "first.json")
    code, out, _ = call("verify", "--no-run", "runs")
    assert code == 1
    assert "record.json cannot be read: it is a symbolic link to another folder" in out
