"""Running records again: what is the same, what differs, and why."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import fsdil_bench
from fsdil_bench import Record, cli
from fsdil_bench.errors import RequestError
from fsdil_bench.plugins.registry import load_registry
from fsdil_bench.records.checks import check_folder
from fsdil_bench.records.record import content_hash, file_sha256
from fsdil_bench.runs.rerun import verify
from fsdil_bench.runs.rerun_agreement import (
    EXACT,
    LAST_BITS,
    LAST_BITS_OF_BF16,
    Verdict,
    allowed,
    compare,
    surroundings,
)

TOY = Path(__file__).parent.parent / "toy_plugin.py"


@pytest.fixture(scope="module")
def finished(toy_registry, tmp_path_factory):
    """Runs of seeds 0 and 1."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FSDIL_CACHE", str(tmp_path_factory.mktemp("cache")))
        out = tmp_path_factory.mktemp("runs")
        return [
            fsdil_bench.run("toy-means", "toy-2shot", seed=s, out=out, registry=toy_registry)
            for s in (0, 1)
        ]


@pytest.fixture
def record(finished, tmp_path):
    bare = shutil.ignore_patterns("verdict.json")
    folder = shutil.copytree(finished[0].folder, tmp_path / "runs" / "run", ignore=bare)
    return Record.load(Path(folder))


@pytest.fixture
def again(toy_registry, tmp_path):
    def run(record, **options):
        return verify(record, registry=toy_registry, out=tmp_path / "again", **options)

    return run


def pretend(record, change):
    """A record of other predictions that fit it in every respect."""
    path = record.folder / "predictions.npz"
    arrays = record.predictions()
    change(arrays)
    np.savez_compressed(path, **arrays)
    values = json.loads(record.to_json())
    labels, domains = arrays["labels"], arrays["domains"]
    for t, row in enumerate(values["matrix"]):
        right = arrays[f"classes_{t}"] == labels[: len(arrays[f"classes_{t}"])]
        seen = domains[: len(right)]
        row[:] = [100.0 * float(right[seen == i].mean()) for i in range(t + 1)]
    tests = [domain["test"] for domain in values["scenario"]["domains"]]
    values["metrics"] = fsdil_bench.scores(values["matrix"], tests)
    values["predictions_sha256"] = file_sha256(path)
    values["content_sha256"] = content_hash(values)
    (record.folder / "record.json").write_text(json.dumps(values))
    checked = check_folder(record.folder)
    assert checked.problems == ()
    return checked.record


def flip(arrays, count=1, by=1):
    arrays["classes_3"][:count] = (arrays["classes_3"][:count] + by) % 3


def test_the_same_run_is_identical(record, again):
    found = again(record)
    assert (found.outcome, found.differing, found.largest) == (Verdict.IDENTICAL, 0, 0.0)
    assert found.predictions == sum(30 + 3 * t for t in range(4)) + 30 * 3 + 33 * 2 + 36
    assert found.surroundings == ()


@pytest.mark.slow
def test_sealed_again(record, tmp_path):
    parts = [TOY.with_name("toy_world_plugin.py"), TOY.with_name("toy_methods_plugin.py")]
    registry = load_registry(parts, ())
    found = verify(record, registry=registry, out=tmp_path / "again", sealed=True)
    assert found.outcome == Verdict.IDENTICAL


def test_few_other_predictions_are_close_within_the_tolerance(record, again):
    other = pretend(record, flip)
    by_default = again(other)
    assert "1 of " in by_default.reason
    assert by_default.outcome == Verdict.DIFFERS  # 138 test images: one of them is much
    assert again(other, tolerance=by_default.largest).outcome == Verdict.CLOSE
    assert again(other, tolerance=by_default.largest * 0.99).outcome == Verdict.DIFFERS


def test_made_up_predictions_that_fit_their_record_differ(record, again):
    found = again(pretend(record, lambda arrays: flip(arrays, 60)))
    assert found.outcome == Verdict.DIFFERS
    assert found.differing == 60
    assert found.largest > LAST_BITS.points


def test_a_record_of_another_code_version_says_which(record, again):
    other = replace(
        record,
        run_id="0" * 16,
        method=record.method
        | {"code": {"method": "f" * 16, "scenario": record.method["code"]["scenario"]}},
    )
    found = again(other)
    assert found.outcome == Verdict.NOT_RUN
    assert "the code of the method is different: ffffffffffffffff in the record" in found.reason
    assert "scenario" not in found.reason
    anyway = again(other, anyway=True)
    assert anyway.outcome == Verdict.IDENTICAL
    assert "although the code of the method is different" in anyway.reason


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"method": {"weights": "other"}}, "the weights are different"),
        ({"scenario": {"digest": "0" * 64}}, "the samples are different"),
        ({"spec": {"config": {"option": 1}}}, "unknown option of method toy-means: 'option'"),
        ({"spec": {"method": "gone"}}, "unknown method 'gone'"),
        ({"spec": {"order": ["d0", "d7"]}}, "d7"),
    ],
)
def test_what_stands_in_the_way_is_named(record, again, changes, words):
    values = {name: getattr(record, name) | change for name, change in changes.items()}
    found = again(replace(record, run_id="0" * 16, **values))
    assert found.outcome == Verdict.NOT_RUN
    assert words in found.reason


def test_another_protocol_is_the_last_guess(record, again):
    assert "protocol" in again(replace(record, run_id="0" * 16)).reason


def test_the_records_number_of_threads_is_used(record, again):
    before = torch.get_num_threads()
    other = replace(record, provenance=record.provenance | {"threads": before + 1})
    found = again(other)
    assert torch.get_num_threads() == before
    assert not any("threads" in line for line in found.surroundings)


def test_differences_of_the_places_are_named(record):
    here = record.provenance
    there = here | {"threads": 99, "packages": here["packages"] | {"torch": "1.0"}, "commit": {}}
    found = list(surroundings(there, here))
    assert found[0].startswith("threads: 99 in the record")
    assert any(line.startswith("torch: 1.0 in the record") for line in found)
    assert list(surroundings(here, here)) == []


def test_the_records_batch_size_is_used(record, again):
    other = replace(record, provenance=record.provenance | {"batch_size": 7})
    assert not any("batch_size" in line for line in again(other).surroundings)


CPU = {
    "device": "cpu", "gpu": "", "processor": "A", "threads": 2, "products": "oneDNN",
    "batch_size": 32, "packages": {"torch": "2"}, "commit": {"sha": "1"}, "deterministic": False,
}  # fmt: skip
GPU = CPU | {"device": "cuda", "gpu": "B", "deterministic": True}


@pytest.mark.parametrize(
    ("said", "here", "precision", "expected"),
    [
        (CPU, CPU, "fp32", EXACT),
        (CPU, CPU | {"platform": "another kernel"}, "fp32", EXACT),
        (CPU, CPU | {"processor": "C"}, "fp32", LAST_BITS),
        (CPU, CPU | {"products": "torch's choice"}, "fp32", LAST_BITS),
        (CPU, CPU | {"threads": 3}, "fp32", LAST_BITS),
        (CPU, CPU | {"batch_size": 8}, "fp32", LAST_BITS),
        (CPU, CPU | {"packages": {"torch": "3"}}, "fp32", LAST_BITS),
        (CPU, CPU | {"commit": {"sha": "2"}}, "fp32", LAST_BITS),
        ({k: v for k, v in CPU.items() if k != "batch_size"}, CPU, "fp32", LAST_BITS),
        (CPU, GPU, "fp32", LAST_BITS),
        (GPU, GPU, "bf16", EXACT),
        (GPU, GPU | {"threads": 9}, "tf32", EXACT),
        (GPU, GPU | {"gpu": "C"}, "tf32", LAST_BITS),
        (GPU | {"deterministic": False}, GPU | {"deterministic": False}, "tf32", LAST_BITS),
        (GPU | {"deterministic": False}, GPU | {"deterministic": False}, "bf16", LAST_BITS_OF_BF16),
    ],
)
def test_what_may_differ_depends_on_the_devices(said, here, precision, expected):
    assert allowed(said, here, precision) == expected


@pytest.fixture
def mistaken(finished, tmp_path):
    """Two records of the same scores: as many mistakes, but others."""

    def make(count):
        copies = [shutil.copytree(finished[0].folder, tmp_path / name) for name in ("a", "b")]
        return [
            pretend(Record.load(Path(copy)), lambda arrays, by=by: flip(arrays, count, by))
            for by, copy in enumerate(copies, 1)
        ]

    return make


def test_a_single_prediction_counts_where_bits_are_stable(mistaken):
    one, other = mistaken(1)
    found = compare(one, other)
    assert (found.outcome, found.differing, found.largest) == (Verdict.DIFFERS, 1, 0.0)
    assert "none should here" in found.reason
    elsewhere = replace(one, provenance=one.provenance | {"processor": "another"})
    assert compare(elsewhere, other).outcome == Verdict.CLOSE


def test_too_many_other_predictions_are_no_last_bits(mistaken):
    one, other = mistaken(12)
    elsewhere = replace(one, provenance=one.provenance | {"processor": "another"})
    found = compare(elsewhere, other)
    assert found.largest == 0.0
    assert 100 * found.differing > LAST_BITS.percent * found.predictions
    assert found.outcome == Verdict.DIFFERS
    assert "allowed: 2 %" in found.reason
    assert compare(elsewhere, other, 0.0).outcome == Verdict.CLOSE  # scores alone, by wish


def test_other_test_images(record, finished):
    moved = pretend(record, lambda arrays: arrays.update(labels=(arrays["labels"] + 1) % 3))
    assert compare(moved, finished[0]).outcome == Verdict.DIFFERS


def test_a_record_is_never_compared_with_itself(record, toy_registry):
    with pytest.raises(RequestError, match="holds the records"):
        verify(record, registry=toy_registry, out=record.folder.parent.parent)


# --- the command ---


def test_exit_codes(call, record, finished):
    both = finished[0].folder.parent
    code, out, err = call("verify", both, "--plugin", TOY, "--quiet")
    assert code == 0, err
    assert out.count("identical: toy-means on toy-2shot") == 2
    code, out, _ = call("verify", "--no-run", both)
    assert (code, "2 records: 2 valid, 0 not" in out) == (0, True)

    code, out, _ = call("verify", both)  # the plugin is not given
    assert code == 1
    assert "not run again: " in out
    assert "unknown method 'toy-means'" in out

    pretend(record, lambda arrays: flip(arrays, 60))
    code, out, _ = call("verify", record.folder, "--plugin", TOY, "-q")
    assert code == 1
    assert "differs: toy-means on toy-2shot, seed 0" in out
    assert "nothing in the provenance differs" in out

    (record.folder / "predictions.npz").unlink()
    code, out, _ = call("verify", record.folder, "--plugin", TOY, "-q")
    assert code == 1
    assert "not valid: " in out


def test_one_drawn_seed_per_row_and_json(call, finished):
    both = finished[0].folder.parent
    options = ["--plugin", TOY, "-q", "--json", "--sample-seed", 3]
    code, out, _ = call("verify", both, "--per-row", *options)
    assert code == 0
    found = json.loads(out)
    outcomes = [each["again"] for each in found["records"]]
    assert sorted(outcome is None for outcome in outcomes) == [False, True]
    assert [o["outcome"] for o in outcomes if o] == ["identical"]
    assert json.loads(call("verify", both, "--sample", 1, *options)[1])["problems"] == []


def test_the_default_tolerance_in_the_help(call, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["fsdil-bench", "verify", "--help"])
    cli.main()
    said = " ".join(capsys.readouterr().out.split())
    assert f"else {LAST_BITS.points}, in bf16 {LAST_BITS_OF_BF16.points}]" in said


def test_nothing_there(call, tmp_path):
    assert call("verify", tmp_path)[0] == 2
    assert call("verify", tmp_path / "none")[0] == 2


# --- verdict.json ---

AGAIN = ("--plugin", TOY, "--quiet")


def verdict_of(record):
    return json.loads((record.folder / "verdict.json").read_text())


def board_of(call, runs):
    """The Markdown of the only board, and the warnings."""
    code, _, err = call("leaderboard", runs, "--out", "boards", "--plugin", TOY)
    assert code == 0, err
    [page] = Path("boards").glob("toy-2shot_*.md")
    return page.read_text(), err


def test_a_verdict_is_written_and_the_board_shows_it(call, record):
    assert "verified" not in board_of(call, "runs")[0]
    code, _, err = call("verify", "runs", *AGAIN, "--by", "Ann")
    assert code == 0, err
    found = verdict_of(record)
    assert (found["outcome"], found["who"], found["sealed"]) == ("identical", "Ann", False)
    assert found["version"] == fsdil_bench.__version__
    assert found["content_sha256"] == record.content_sha256
    page, err = board_of(call, "runs")
    assert "verified" in page
    assert f"1 of 1, identical (Ann, {found['when'][:10]}" in page
    assert "verdict.json" not in err


def test_forged_predictions_with_fitting_hashes_get_a_bad_verdict(call, record):
    pretend(record, lambda arrays: flip(arrays, 60))
    assert call("verify", "--no-run", "runs")[0] == 0  # nothing but running it again shows it
    assert not (record.folder / "verdict.json").exists()
    assert call("verify", "runs", *AGAIN)[0] == 1
    assert verdict_of(record)["outcome"] == "differs"
    assert "re-run differs" in board_of(call, "runs")[0]


def test_no_verdict_is_written_for_an_archive(call, record):
    assert call("submit", "runs", "--unsealed", "--out", "mine.zip")[0] == 0
    before = Path("mine.zip").read_bytes()
    code, out, err = call("verify", "mine.zip", *AGAIN)
    assert (code, "identical: " in out) == (0, True)
    assert "no verdict was written for 1 records inside an archive; unpack it first" in err
    assert Path("mine.zip").read_bytes() == before
    assert not list(Path.cwd().rglob("verdict.json"))


def test_no_verdict_on_request_nor_without_a_run(call, record):
    assert call("verify", "runs", *AGAIN, "--no-verdict")[0] == 0
    assert call("verify", "runs", "--quiet")[0] == 1  # without the plugin nothing is run
    assert not (record.folder / "verdict.json").exists()


def test_who_verifies_is_gits_user_unless_it_is_said(call, record, monkeypatch):
    git = {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "user.name",
        "GIT_CONFIG_VALUE_0": "Git Ann",
    }
    for name, value in git.items():
        monkeypatch.setenv(name, value)
    assert call("verify", "runs", *AGAIN)[0] == 0
    assert verdict_of(record)["who"] == "Git Ann"
    monkeypatch.setenv("PATH", "")  # no git here
    assert call("verify", "runs", *AGAIN)[0] == 0
    assert verdict_of(record)["who"] == "unknown"


def test_a_verdict_on_another_record_is_ignored_with_a_warning(call, record):
    assert call("verify", "runs", *AGAIN)[0] == 0
    pretend(record, lambda arrays: flip(arrays, 60))  # with the verdict on the honest record
    page, err = board_of(call, "runs")
    assert "verified" not in page
    assert "runs/run/verdict.json is ignored: it is about another record" in err
