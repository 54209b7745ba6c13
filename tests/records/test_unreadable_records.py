"""A record that cannot be used costs itself alone: commands that read many warn and go on."""

from __future__ import annotations

import json

import pytest

from fsdil_bench import find_records
from fsdil_bench.errors import RecordError


def garble(folder):
    (folder / "record.json").write_text("{")


def make_newer(folder):
    (folder / "record.json").write_text(json.dumps({"schema": 99}))


def make_older(folder):
    """Without a field that came later, and without a hash."""
    values = json.loads((folder / "record.json").read_text())
    del values["method"]["code"]
    values.pop("content_sha256", None)
    (folder / "record.json").write_text(json.dumps(values))


def spoil_predictions(folder):
    with (folder / "predictions.npz").open("ab") as file:
        file.write(b"x")


DAMAGES = {
    garble: "record.json cannot be read",
    make_newer: "record.json has schema 99",
    make_older: "record.json does not have the form of this version: method.code is missing",
    spoil_predictions: "predictions.npz does not match its record",
}
COMMANDS = [
    ("leaderboard", "runs", "--out", "boards"),
    ("compare", "one", "other", "runs"),
    ("rank", "runs"),
    ("paper", "runs"),
    ("show", "alone"),
    ("show", "runs", "--plot", "cost", "--out", "cost.svg"),
]


@pytest.fixture(params=DAMAGES, ids=lambda damage: damage.__name__)
def spoiled(request, made, tmp_path):
    """Below `runs` two methods with two seeds, below `alone` a run, below both one that cannot be
    used: the name of its folder, and why."""
    for seed in range(2):
        made.make_record(tmp_path / "runs", "one", seed=seed)
        made.make_record(tmp_path / "runs", "other", seed=seed, level=0.7)
    made.make_record(tmp_path / "alone")
    for out in ("runs", "alone"):
        folder = made.make_record(tmp_path / out, "spoiled").folder
        request.param(folder)
    return folder.name, DAMAGES[request.param]


def test_the_loader_names_what_it_leaves_out(spoiled, tmp_path):
    name, why = spoiled
    with pytest.warns(UserWarning, match=f"{name}/{why}") as caught:
        records = find_records(tmp_path / "runs")
    assert len(caught) == 1
    assert [record.spec["method"] for record in records] == ["one", "one", "other", "other"]
    with pytest.raises(RecordError, match=f"{name}/{why}"):
        find_records(tmp_path / "runs", strict=True)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_that_reads_many_warns_and_goes_on(call, spoiled, command):
    name, why = spoiled
    code, out, err = call(*command)
    assert code == 0, err
    assert out
    assert "warning: left out: " in err
    assert f"{name}/{why}" in err
    code, out, err = call(*command, "--strict")
    assert code == 2
    assert why in err
    assert not out
    assert "Traceback" not in err
