"""A record that was changed, damaged or made up carelessly is found out."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest

import fsdil_bench
from fsdil_bench import Record, find_records
from fsdil_bench.errors import RecordError
from fsdil_bench.records import checks as record_checks
from fsdil_bench.records import predictions
from fsdil_bench.records.checks import NO_HASH, check_folder
from fsdil_bench.records.record import content_hash, file_sha256, find_folders

PUBLISHED = Path(fsdil_bench.__file__).parent.parent / "leaderboards" / "records"


@pytest.fixture(scope="module")
def finished(toy_registry, tmp_path_factory):
    """Runs of a router (seeds 0 and 1) to copy from."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FSDIL_CACHE", str(tmp_path_factory.mktemp("cache")))
        out = tmp_path_factory.mktemp("runs")
        return [
            fsdil_bench.run(
                "toy-router", "toy-2shot", seed=s, out=out, registry=toy_registry
            ).folder
            for s in (0, 1)
        ]


@pytest.fixture
def folder(finished, tmp_path):
    return Path(shutil.copytree(finished[0], tmp_path / "run"))


def edit(folder, change, rehash=False):
    """Change a record as somebody with an editor would, or with this package at hand."""
    path = folder / "record.json"
    values = json.loads(path.read_text())
    change(values)
    if rehash:
        values["content_sha256"] = content_hash(values)
    path.write_text(json.dumps(values, indent=1))


def problems(folder):
    return " | ".join(check_folder(folder).problems)


def test_a_new_record_is_valid_and_hashed(folder):
    checked = check_folder(folder)
    assert (checked.problems, NO_HASH in checked.notes) == ((), False)
    assert len(checked.record.content_sha256) == 64
    assert Record.load(folder) == checked.record


def test_the_hash_is_of_the_content_not_of_the_layout(folder):
    path = folder / "record.json"
    values = json.loads(path.read_text())
    path.write_text(json.dumps(dict(reversed(values.items()))))
    assert check_folder(folder).problems == ()


@pytest.mark.parametrize("place", [("cost", "peak_memory_bytes"), ("provenance", "threads")])
def test_an_edit_that_nothing_else_shows_breaks_the_hash(folder, place):
    edit(folder, lambda v: v[place[0]].update({place[1]: 1234}))
    assert "content_sha256 does not match" in problems(folder)
    with pytest.raises(RecordError, match="was changed after it was written"):
        Record.load(folder)
    with pytest.raises(RecordError, match="was changed"):
        find_records(folder, strict=True)


def test_a_tampered_matrix(folder):
    edit(folder, lambda v: v["matrix"][2].__setitem__(1, 99.0), rehash=True)
    assert "matrix[2][1] is 99.0, but the predictions say" in problems(folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda v: v["metrics"].update({"AA*": 99.0}), "metrics.AA* is 99.0"),
        (lambda v: v["metrics"].update({"FA*": None}), "metrics.FA* is None"),
        (lambda v: v["oracle_metrics"].update({"Last": 1.0}), "oracle_metrics.Last is 1.0"),
        (lambda v: v["oracle_matrix"].pop(), "oracle_matrix has 3 instead of 4"),
        (lambda v: v["routing"].__setitem__(0, 3.0), "routing[0] is 3.0"),
        (lambda v: v["spec"].update({"seed": 7}), "run_id is"),
        (lambda v: v["spec"]["order"].reverse(), "spec.order"),
        (lambda v: v["method"]["code"].update({"method": "0" * 16}), "run_id is"),
        (lambda v: v["scenario"].update({"digest": "0" * 64}), "run_id is"),
        (lambda v: v["scenario"]["domains"][1].update({"train": 7}), "domains[1].train is 7"),
        (lambda v: v["cost"]["state_bytes"].pop(), "cost.state_bytes has 3 entries"),
        (lambda v: v["spec"].update({"wish": 1}), "spec has fields"),
    ],
)
def test_inconsistent_fields_are_named_even_with_a_new_hash(folder, change, message):
    edit(folder, change, rehash=True)
    found = problems(folder)
    assert message in found
    assert "content_sha256" not in found


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda v: v.update(schema=2), "schema: this version of fsdil-bench reads 1"),
        (lambda v: v.pop("schema"), "schema: this version"),
        (lambda v: v.pop("matrix"), "matrix is missing"),
        (lambda v: v["spec"].pop("seed"), "spec.seed is missing"),
        (lambda v: v["scenario"]["domains"][2].pop("test"), "scenario.domains[2].test is missing"),
        (lambda v: v["spec"].update(seed="0"), "spec.seed: '0' is not of type 'integer'"),
        (lambda v: v["metrics"].update({"AA*": "x"}), "AA*"),
        (lambda v: v.update(matrix={}), "matrix: {} is not of type 'array'"),
        (lambda v: v["matrix"][0].__setitem__(0, 101.0), "matrix[0][0]: 101.0 is greater"),
        (lambda v: v.update(run_id="../.."), "run_id: '../..' does not match"),
        (lambda v: v["spec"].update(method="../x"), "spec.method: '../x' does not match"),
        (lambda v: v.update(extra=1), "'extra' was unexpected"),
    ],
)
def test_the_form_is_checked_and_the_field_named(folder, change, message):
    edit(folder, change)
    checked = check_folder(folder)
    assert checked.record is None
    assert any(message in problem for problem in checked.problems), checked.problems


@pytest.mark.parametrize("text", ["", "[]", "{", '{"schema": NaN}', "[" * 100_000])
def test_what_is_no_record_is_said_to_be_none(folder, text):
    (folder / "record.json").write_text(text)
    assert check_folder(folder).problems


def rewrite_predictions(folder, change):
    """Other predictions, with their file hash (and so the content hash) brought up to date."""
    path = folder / "predictions.npz"
    with np.load(path) as arrays:
        content = {name: arrays[name] for name in arrays.files}
    change(content)
    np.savez_compressed(path, **content)
    edit(folder, lambda v: v.update(predictions_sha256=file_sha256(path)), rehash=True)


def test_tampered_predictions(folder):
    def change(arrays):
        arrays["classes_3"] = (arrays["labels"] + 1) % 3

    path = folder / "predictions.npz"
    with np.load(path) as arrays:
        content = {name: arrays[name] for name in arrays.files}
    change(content)
    np.savez_compressed(path, **content)
    assert "predictions_sha256 does not match" in problems(folder)
    rewrite_predictions(folder, change)
    found = problems(folder)
    assert "predictions_sha256" not in found
    assert "but the predictions say 0.0" in found


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a: a.pop("routed_1"), "lacks routed_1"),
        (lambda a: a.update(more=np.zeros(3, int)), "holds unknown more"),
        (lambda a: a.update(classes_0=a["classes_0"][:-1]), "classes_0 in predictions.npz is"),
        (lambda a: a.update(classes_0=a["classes_0"] + 0.5), "classes_0 in predictions.npz is"),
        (lambda a: a.update(classes_0=a["classes_0"] + 3), "outside 0 to 2"),
        (lambda a: a.update(domains=a["domains"][::-1]), "domains in predictions.npz"),
    ],
)
def test_predictions_of_another_form(folder, change, message):
    rewrite_predictions(folder, change)
    assert message in problems(folder)


def test_predictions_of_another_run(finished, folder):
    shutil.copyfile(finished[1] / "predictions.npz", folder / "predictions.npz")
    found = problems(folder)
    assert "predictions_sha256 does not match" in found
    assert "matrix[" in found


def test_missing_damaged_pickled_and_huge_predictions(folder, monkeypatch):
    path = folder / "predictions.npz"
    monkeypatch.setattr(predictions, "_MAX_BYTES", path.stat().st_size)
    assert "more than any predictions need" in problems(folder)
    monkeypatch.undo()
    rewrite_predictions(folder, lambda a: a.update(labels=np.array([{}], dtype=object)))
    assert "labels in predictions.npz is object of shape (1,)" in problems(folder)
    path.write_bytes(b"no zip")
    assert "cannot be read" in problems(folder)
    path.unlink()
    assert "predictions.npz is missing" in problems(folder)


def test_an_array_that_claims_to_be_larger_than_its_bytes(folder):
    path = folder / "predictions.npz"
    header = b"{'descr': '<i8', 'fortran_order': False, 'shape': (10000000000000,), }"
    padded = header + b" " * (117 - len(header)) + b"\n"
    rewrite_predictions(folder, lambda a: a.pop("labels"))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(
            "labels.npy", b"\x93NUMPY\x01\x00" + len(padded).to_bytes(2, "little") + padded
        )
    assert "labels in predictions.npz is int64 of shape (10000000000000,)" in problems(folder)


def test_records_without_a_content_hash_are_accepted_with_a_note(folder):
    edit(folder, lambda v: v.pop("content_sha256"))
    checked = check_folder(folder)
    assert checked.problems == ()
    assert NO_HASH in checked.notes
    assert Record.load(folder).content_sha256 is None
    assert "content_sha256" not in json.loads(Record.load(folder).to_json())


def test_every_field_of_a_record_is_in_the_schema():
    import dataclasses

    schema = json.loads(Path(record_checks.__file__).with_name("record.schema.json").read_text())
    names = {each.name for each in dataclasses.fields(Record)} - {"folder"}
    assert set(schema["properties"]) == names


@pytest.mark.skipif(not PUBLISHED.is_dir(), reason="installed without the boards")
def test_the_published_records_are_valid():
    folders = find_folders(PUBLISHED)
    assert len(folders) >= 78
    assert {f: p for f in folders[::5] if (p := check_folder(f).problems)} == {}


def test_unseen_test_sets_are_checked(toy_registry, tmp_path):
    from dataclasses import replace

    from toy_plugin import build_stream, samples

    from fsdil_bench import ScenarioInfo

    def build(request):
        return replace(build_stream(), unseen=(("elsewhere", samples("d9", "test", 5)),))

    registry = replace(
        toy_registry,
        scenarios=toy_registry.scenarios
        | {"away": ScenarioInfo("away", "with an unseen set", build, default_backbone="toy-clip")},
    )
    record = fsdil_bench.run("toy-means", "away-1shot", out=tmp_path, registry=registry)
    assert check_folder(record.folder).problems == ()
    edit(record.folder, lambda v: v["unseen"]["matrix"][1].__setitem__(0, 0.5), rehash=True)
    assert "unseen.matrix[1][0] is 0.5" in problems(record.folder)
    edit(record.folder, lambda v: v["unseen"].update(names=["x"]), rehash=True)
    assert "unseen.names" in problems(record.folder)
