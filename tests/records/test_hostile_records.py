"""Records that anybody could have written: each is refused by name, and none fails a board."""

from __future__ import annotations

import io
import json
import os
import shutil
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fsdil_bench import Record, find_records
from fsdil_bench.errors import RecordError
from fsdil_bench.records.metrics import scores
from fsdil_bench.records.record import content_hash, file_sha256


def edit(folder, change):
    """Change a record, with a hash that matches."""
    values = json.loads((folder / "record.json").read_text())
    change(values)
    values["content_sha256"] = content_hash(values)
    (folder / "record.json").write_text(json.dumps(values))


def edit_arrays(folder, change):
    """Change predictions, with hashes that match."""
    path = folder / "predictions.npz"
    with np.load(path) as arrays:
        content = {name: arrays[name] for name in arrays.files}
    change(content)
    np.savez_compressed(path, **content)
    edit(folder, lambda v: v.update(predictions_sha256=file_sha256(path)))


def replace_by_fifo(name):
    def damage(folder):
        (folder / name).unlink()
        os.mkfifo(folder / name)

    return damage


def replace_by_link(name, target):
    def damage(folder):
        (folder / name).unlink()
        (folder / name).symlink_to(target)

    return damage


def write(text):
    return lambda folder: (folder / "record.json").write_text(text)


def many_domains(folder):
    def change(values):
        domain = values["scenario"]["domains"][0]
        values["scenario"]["domains"] = [domain | {"name": str(i)} for i in range(2000)]
        values["spec"]["order"] = [str(i) for i in range(2000)]
        values["matrix"] = [[1.0] * (t + 1) for t in range(2000)]

    edit(folder, change)


def bomb(folder):
    with (
        zipfile.ZipFile(folder / "predictions.npz", "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("labels.npy", "w") as file,
    ):
        for _ in range(300):
            file.write(bytes(1 << 20))


def nan(folder):
    path = folder / "record.json"
    values = json.loads(path.read_text())
    values["matrix"][1][0] = float("nan")
    path.write_text(json.dumps(values))


def set_metric(folder):
    edit(folder, lambda v: v["metrics"].update({"AA*": 99.9}))


HOSTILE = {
    "nested brackets": (write("[" * 200_000), "nested"),
    "nested too deep": (
        lambda f: edit(f, lambda v: v.update(diagnostics=json.loads("[" * 200 + "]" * 200))),
        "nested more than",
    ),
    "2,000 domains": (many_domains, "holds more than 200,000 values"),
    "NaN": (nan, "NaN is not a number that JSON knows"),
    "1e999": (write('{"schema": 1e999}'), "too large a number"),
    "long integer": (write('{"schema": ' + "9" * 5000 + "}"), "too large a number"),
    "half a character": (write('{"schema": "\\ud800"}'), "cannot be read"),
    "not UTF-8": (lambda f: (f / "record.json").write_bytes(b"\xff\xfe"), "cannot be read"),
    "path as scenario": (
        lambda f: edit(f, lambda v: v["spec"].update(scenario="../../x-1shot")),
        "spec.scenario: '../../x-1shot'",
    ),
    "line end in an id": (
        lambda f: edit(f, lambda v: v.update(run_id=v["run_id"] + "\n")), "run_id"
    ),
    "no states": (
        lambda f: edit(f, lambda v: v["cost"].update(state_bytes=[])), "state_bytes has 0"
    ),
    "record is a pipe": (replace_by_fifo("record.json"), "no regular file"),
    "predictions are a pipe": (replace_by_fifo("predictions.npz"), "no regular file"),
    "record is a device": (replace_by_link("record.json", "/dev/zero"), "a symbolic link"),
    "record is a link to another folder": (
        replace_by_link("record.json", "../../../../elsewhere.json"), "a symbolic link"
    ),
    "record is a link to itself": (
        replace_by_link("record.json", "record.json"), "record.json cannot be read"
    ),
    "predictions are a device": (
        replace_by_link("predictions.npz", "/dev/zero"), "no regular file"
    ),
    "no predictions": (lambda f: (f / "predictions.npz").unlink(), "predictions.npz is missing"),
    "bomb": (bomb, "predictions.npz"),
    "objects": (
        lambda f: edit_arrays(f, lambda a: a.update(labels=np.array([{}] * 240, dtype=object))),
        "labels in predictions.npz is object",
    ),
    "floats": (
        lambda f: edit_arrays(f, lambda a: a.update(labels=a["labels"] * 1.0)),
        "labels in predictions.npz is float64",
    ),
    "two dimensions": (
        lambda f: edit_arrays(f, lambda a: a.update(labels=a["labels"][None])),
        "of shape (1, 240)",
    ),
    "AA* edited": (set_metric, "metrics.AA* is 99.9, but the predictions say"),
    "routing made up": (
        lambda f: edit(f, lambda v: v.update(routing=[100.0] * 4)),
        "predictions.npz lacks oracle_0",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_it_is_refused_by_name_and_the_rest_is_shown(made, call, tmp_path, name):
    damage, why = HOSTILE[name]
    for seed in range(2):
        made.make_record(tmp_path / "runs", "good", seed=seed)
    folder = made.make_record(tmp_path / "runs", "bad", level=0.5).folder
    damage(folder)
    told = []
    records = find_records(tmp_path / "runs", tell=told.append)
    assert [record.spec["method"] for record in records] == ["good", "good"]
    assert len(told) == 1
    assert str(folder) in told[0]
    assert why in told[0]
    code, out, err = call("show", folder)
    assert code == 2
    assert str(folder) in err
    assert "fault" not in err
    assert not out


def test_a_record_that_a_hook_rewrote_is_on_no_board(made, call, tmp_path):
    for method in ("one", "other"):
        for seed in range(2):
            made.make_record(tmp_path / "runs", method, seed=seed, level=len(method) / 6)
    cheat = made.make_record(tmp_path / "runs", "cheat")
    set_metric(cheat.folder)
    for command in (
        ["leaderboard", "runs", "--out", "boards"],
        ["rank", "runs"],
        ["paper", "runs"],
    ):
        code, out, err = call(*command)
        assert code == 0, err
        assert "metrics.AA* is 99.9, but the predictions say" in err
        assert "cheat" not in out
    text = "".join(path.read_text() for path in (tmp_path / "boards").iterdir())
    assert "cheat" not in text
    code, _, err = call("compare", "one", "cheat", "runs")
    assert code == 2
    assert "unknown method or folder 'cheat'" in err


def relabel(folder):
    """Overwrite the labels with what was predicted, as a plugin in the harness could."""

    def change(arrays):
        arrays["labels"] = arrays["classes_3"].astype(np.int32)

    edit_arrays(folder, change)
    with np.load(folder / "predictions.npz") as arrays:
        labels = arrays["labels"]
        rows = [arrays[f"classes_{t}"] == labels[: 60 * (t + 1)] for t in range(4)]
    matrix = [(100.0 * row.reshape(-1, 60).mean(1)).tolist() for row in rows]
    edit(folder, lambda v: v.update(matrix=matrix, metrics=scores(matrix, [60] * 4)))


def test_labels_of_its_own_are_outvoted(made, tmp_path):
    for method in ("one", "other"):
        made.make_record(tmp_path, method)
    for seed in range(5):  # as many seeds as it likes
        relabel(made.make_record(tmp_path, "cheat", seed=seed).folder)
    told = []
    records = find_records(tmp_path, tell=told.append)
    assert {record.spec["method"] for record in records} == {"one", "other"}
    assert len(told) == 5
    assert all("its test labels are not those of the other records" in line for line in told)
    with pytest.raises(RecordError, match="test labels"):
        find_records(tmp_path, strict=True)


def test_of_two_with_different_labels_nobody_is_believed(made, tmp_path):
    made.make_record(tmp_path, "one")
    cheat = made.make_record(tmp_path, "cheat")
    relabel(cheat.folder)
    told = []
    assert find_records(tmp_path, tell=told.append) == []
    assert len(told) == 2
    edit(cheat.folder, lambda v: v["method"].update(plugin={"name": "theirs", "version": "1"}))
    [record] = find_records(tmp_path, tell=told.append)  # a built-in method decides
    assert record.spec["method"] == "one"


# --- any change ---

_VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
_JSON = st.recursive(
    _VALUES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)


@pytest.fixture(scope="module")
def router(made, tmp_path_factory):
    return made.make_record(tmp_path_factory.mktemp("router"), "router", router=True)


def places(values, path=()):
    yield path
    parts = values.items() if isinstance(values, dict) else enumerate(values)
    for key, value in parts:
        if isinstance(value, (dict, list)):
            yield from places(value, (*path, key))
        else:
            yield (*path, key)


def mutate(values, data):
    *above, key = data.draw(st.sampled_from([path for path in places(values) if path]))
    part = values
    for name in above:
        part = part[name]
    if data.draw(st.booleans()):
        del part[key]
    else:
        part[key] = data.draw(_JSON | st.just(50.0) | st.just([]) | st.just(10**30))


def same_scores_or_refused(folder, original):
    """Reads a changed record as boards do."""
    from fsdil_bench.report.leaderboards import write_leaderboards

    try:
        record = Record.load(folder)
    except RecordError:
        return
    for name in ("matrix", "metrics", "oracle_matrix", "oracle_metrics", "routing"):
        assert getattr(record, name) in (getattr(original, name), None)
    assert record.metrics == original.metrics
    write_leaderboards([record], folder / "boards")
    page = json.loads((folder / "boards/leaderboards.json").read_text(), parse_constant=pytest.fail)
    assert page["boards"]


_SETTINGS = settings(
    max_examples=60, deadline=None, derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip


@_SETTINGS
@given(data=st.data())
def test_any_change_of_a_record_leaves_its_scores_or_is_refused(router, tmp_path, data):
    values = json.loads((router.folder / "record.json").read_text())
    mutate(values, data)
    values["content_sha256"] = content_hash(values)
    copy_of(router, tmp_path)
    (tmp_path / "record.json").write_text(json.dumps(values))
    same_scores_or_refused(tmp_path, router)


@_SETTINGS
@given(data=st.data())
def test_any_change_of_the_predictions_leaves_the_scores_or_is_refused(router, tmp_path, data):
    copy_of(router, tmp_path)
    path = tmp_path / "predictions.npz"
    content = bytearray(path.read_bytes())
    if data.draw(st.booleans()):  # bytes of the file
        at = data.draw(st.integers(0, len(content) - 1))
        content[at : at + 4] = data.draw(st.binary(max_size=8))
    else:  # an array
        with np.load(io.BytesIO(bytes(content))) as arrays:
            found = {name: arrays[name] for name in arrays.files}
        name = data.draw(st.sampled_from(sorted(found)))
        kind = data.draw(st.sampled_from(["<i1", "<i8", ">i4", "<f4", "<U2", "<u2", "<c8"]))
        length = data.draw(st.integers(0, 300))
        found[name] = np.resize(found[name] * data.draw(st.integers(-1, 2)), length).astype(kind)
        file = io.BytesIO()
        np.savez(file, **found)
        content = bytearray(file.getvalue())
    path.write_bytes(bytes(content))
    edit(tmp_path, lambda v: v.update(predictions_sha256=file_sha256(path)))
    same_scores_or_refused(tmp_path, router)


def copy_of(record, folder):
    for name in ("record.json", "predictions.npz"):
        shutil.copyfile(record.folder / name, folder / name)
