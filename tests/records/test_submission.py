"""Submissions: what is packed, what is left out, and archives from strangers."""

from __future__ import annotations

import dataclasses
import json
import shutil
import zipfile
from pathlib import Path

import pytest

import fsdil_bench
from fsdil_bench import Record
from fsdil_bench.errors import FsdilError
from fsdil_bench.records import redaction as private
from fsdil_bench.records import submission
from fsdil_bench.records.checks import Checked, check_folder
from fsdil_bench.records.record import content_hash
from fsdil_bench.records.redaction import names_in, without_paths
from fsdil_bench.records.submission import manifest_problems, open_archive, pack

TOY = Path(__file__).parent.parent / "toy_plugin.py"


@pytest.fixture(scope="module")
def finished(toy_registry, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FSDIL_CACHE", str(tmp_path_factory.mktemp("cache")))
        out = tmp_path_factory.mktemp("runs")
        for seed in (0, 1):
            fsdil_bench.run("toy-means", "toy-1shot", seed=seed, out=out, registry=toy_registry)
        return out


@pytest.fixture
def runs(finished, tmp_path):
    return Path(shutil.copytree(finished, tmp_path / "runs"))


def set_command(runs, text):
    """Have every record say that it was made by another command."""
    for path in runs.rglob("record.json"):
        values = json.loads(path.read_text())
        values["provenance"]["command"] = text
        values["content_sha256"] = content_hash(values)
        path.write_text(json.dumps(values))


def test_submit_and_verify(call, runs, tmp_path):
    code, out, err = call("submit", runs, "--unsealed", "--out", "mine.zip")
    assert code == 0, err
    assert "2 records" in out
    assert "provenance" in out
    with zipfile.ZipFile("mine.zip") as archive:
        names = archive.namelist()
    kinds = sorted(name.rsplit("/", 1)[-1] for name in names)
    assert kinds == [
        "SUBMISSION.md",
        *["predictions.npz"] * 2,
        *["record.json"] * 2,
        "submission.json",
    ]
    assert all(n.startswith("records/toy-1shot/toy-means/seed") for n in names if "/" in n)
    code, out, err = call("verify", "mine.zip", "--plugin", TOY, "-q")
    assert code == 0, err
    assert out.count("identical") == 2


def test_the_same_records_give_the_same_bytes(runs, tmp_path):
    checked = [check_folder(path.parent) for path in sorted(runs.rglob("record.json"))]
    pack(checked, tmp_path / "one.zip")
    pack(checked[::-1], tmp_path / "two.zip")
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()


def test_a_folder_for_a_pull_request(call, runs, tmp_path):
    assert call("submit", runs, "--unsealed", "--out", "mine")[0] == 0
    for path in runs.rglob("record.json"):
        name = path.parent.name
        copy = tmp_path / "mine/records/toy-1shot/toy-means" / name / "record.json"
        assert copy.read_bytes() == path.read_bytes()  # nothing private in it, so as it was
    guide = (tmp_path / "mine/SUBMISSION.md").read_text()
    assert "pull request" in guide
    assert "| toy-1shot | toy-means | toy-clip | 0 |" in guide
    assert call("verify", "--no-run", "mine")[0] == 0
    code, _, err = call("submit", runs, "--unsealed", "--out", "mine")
    assert code == 2
    assert "exists already" in err


def test_records_that_are_not_valid_are_not_packed(call, runs):
    path = next(runs.rglob("record.json"))
    path.write_text(path.read_text().replace('"AA*": ', '"AA*": 1', 1))
    code, out, err = call("submit", runs, "--unsealed", "--out", "mine.zip")
    assert code == 1
    assert "metrics" in out
    assert "1 of 2 records are not valid; nothing was packed" in err
    assert not Path("mine.zip").exists()


def test_two_records_of_one_run(call, runs, tmp_path):
    shutil.copytree(runs, tmp_path / "copy")
    code, out, _ = call("submit", runs, tmp_path / "copy", "--unsealed", "--out", "same.zip")
    assert code == 0
    assert "2 records" in out
    set_command(tmp_path / "copy", "fsdil-bench run --again")
    code, _, err = call("submit", runs, tmp_path / "copy", "--unsealed", "--out", "other.zip")
    assert code == 2
    assert "two different records of run" in err


def test_the_guide_lists_the_ordinary_and_the_sealed_run_of_one_id(made, tmp_path):
    """Seven records of six methods: as many as the table has lines."""
    records = [made.make_record(tmp_path / "runs", f"method-{i}") for i in range(6)]
    sealed = made.make_record(tmp_path / "sealed", "method-0", sealed=True)
    records.append(dataclasses.replace(sealed, run_id=records[0].run_id))
    (sealed.folder / "record.json").write_text(records[-1].to_json())
    packed = pack([Checked(record.folder, record, ()) for record in records], tmp_path / "mine")
    assert packed.records == 7
    assert len(list((tmp_path / "mine/records").rglob("record.json"))) == 7
    guide = (tmp_path / "mine/SUBMISSION.md").read_text()
    assert "Records: 7." in guide
    table = [line for line in guide.splitlines() if line.startswith("| made-1shot |")]
    assert len(table) == 7
    own = [line for line in table if records[0].run_id in line]
    assert [line.split(" | ")[-2] for line in own] == ["no", "yes"]


# --- what is private ---


def test_paths_are_cut_and_the_hash_renewed(call, runs, tmp_path):
    set_command(runs, "fsdil-bench run --out /home/anna/thesis/runs --data=~/pics -s toy-1shot")
    code, out, _ = call("submit", runs, "--unsealed", "--out", "mine")
    assert code == 0
    assert "cut down to their last part in 2 records" in out
    for path in (tmp_path / "mine").rglob("record.json"):
        record = Record.load(path.parent)
        assert record.provenance["command"] == "fsdil-bench run --out runs --data=pics -s toy-1shot"
        assert "anna" not in path.read_text()


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("run --out /a/b/c", "run --out c"),
        ("run --out=/a/b/c/", "run --out=c"),
        ("run --data ~/x/y", "run --data y"),
        (r"run --out C:\Users\me\runs", "run --out runs"),
        ("-b ViT-B/16:openai", "-b ViT-B/16:openai"),
        ("-b ViT-B-16:/home/me/w.pt+/home/me/t.npz", "-b ViT-B-16:w.pt+t.npz"),
        ("--out runs/deep --plugin my/plugin.py", "--out runs/deep --plugin my/plugin.py"),
        ("--out ../other", "--out ../other"),
    ],
)
def test_what_counts_as_a_path(text, cut):
    assert without_paths({"k": [text]}) == {"k": [cut]}


def test_new_records_hold_no_absolute_path(runs, finished):
    record = Record.load(next(runs.rglob("record.json")).parent)
    assert str(TOY.parent) not in record.to_json()
    assert "toy_plugin.py" in record.provenance["plugins"]


def test_names_of_user_and_machine_are_found(monkeypatch):
    monkeypatch.setattr(private, "_own_names", lambda: {"anna"})
    values = {"command": "run --out ../anna/x", "list": ["annabel", "by anna"]}
    assert list(names_in(values)) == ["command names 'anna'", "list[1] names 'anna'"]


# --- archives from strangers ---


def make_zip(path, files):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


@pytest.mark.parametrize("name", ["../outside.txt", "/outside.txt", "records/../../outside.txt"])
def test_nothing_is_written_outside(call, tmp_path, name):
    code, _, err = call("verify", make_zip(tmp_path / "evil.zip", {name: "x"}))
    assert code == 2
    assert "not safe" in err
    assert not list(tmp_path.parent.rglob("outside.txt"))


def test_bombs_and_junk_are_refused(call, tmp_path, monkeypatch):
    code, _, err = call("verify", make_zip(tmp_path / "bomb.zip", {"zeros": bytes(80 << 20)}))
    assert code == 2
    assert "no honest archive" in err
    (tmp_path / "junk.zip").write_bytes(b"PK no zip")
    assert call("verify", tmp_path / "junk.zip")[0] == 2
    monkeypatch.setattr(submission, "_MAX_ARCHIVE", 10)
    with pytest.raises(FsdilError, match="larger"):
        open_archive(tmp_path / "bomb.zip", tmp_path / "there")


def test_the_manifest_is_held_to(call, runs, tmp_path):
    assert call("submit", runs, "--unsealed", "--out", "mine")[0] == 0
    mine = tmp_path / "mine"
    assert manifest_problems(mine) == []
    (mine / "SUBMISSION.md").write_text("changed")
    (mine / "more.txt").write_text("x")
    next(mine.rglob("predictions.npz")).unlink()
    found = " | ".join(manifest_problems(mine))
    assert "SUBMISSION.md is not the file" in found
    assert "more.txt is not listed" in found
    assert "predictions.npz is listed in submission.json but missing" in found
    code, out, _ = call("verify", "--no-run", "mine")
    assert code == 1
    assert "more.txt" in out
    (mine / "submission.json").write_text("[]")
    assert "cannot be read" in manifest_problems(mine)[0]
