"""Runs as data frames: every value is that of the record, and groups are those of the boards."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from fsdil_bench import RecordError, find_records, load_accuracies, load_runs

PUBLISHED = Path(__file__).parents[2] / "leaderboards"


@pytest.fixture(scope="module")
def runs():
    return load_runs(PUBLISHED / "records")


def test_a_line_per_run_with_the_values_of_its_record(runs):
    records = find_records(PUBLISHED / "records")
    assert sorted(runs["run_id"]) == sorted(record.run_id for record in records)
    lines = runs.set_index("run_id")
    for record in records[::10]:
        line = lines.loc[record.run_id]
        assert (line["method"], line["seed"]) == (record.spec["method"], record.seed)
        assert f"{line['dataset']}-{line['shots']}shot" == record.spec["scenario"]
        assert {metric: line[metric] for metric in record.metrics} == record.metrics
        assert line["state_bytes"] == record.cost["state_bytes"][-1]
        assert line["folder"] == str(record.folder)
        for name, value in record.spec["config"].items():
            assert line[f"option.{name}"] == value or value is None or isinstance(value, list)
        if record.routing:
            assert line["oracle AA*"] == record.oracle_metrics["AA*"]
            assert line["routing"] == record.routing[-1]
        else:
            assert pd.isna(line["oracle AA*"])
            assert pd.isna(line["routing"])


def test_scores_that_no_run_has_are_numbers_too(runs):
    assert runs["unseen"].isna().all()
    for name in ("unseen", "routing", "oracle AA*"):
        assert pd.api.types.is_float_dtype(runs[name])


def test_boards_and_rows_are_those_of_the_leaderboards(runs):
    for board, members in runs.groupby("board"):
        published = pd.read_csv(PUBLISHED / f"{board}.csv").set_index("method")
        means = members.groupby("row")["AA*"].mean()
        assert means.to_dict() == pytest.approx(published["AA*"].to_dict())


def test_a_line_per_learned_and_tested_domain():
    folder = PUBLISHED / "records" / "drawn-1shot"
    accuracies = load_accuracies(folder / "fused-prototypes", folder / "ncm")
    [record] = [r for r in find_records(folder / "fused-prototypes") if r.seed == 1]
    own = accuracies[accuracies["run_id"] == record.run_id]
    size = len(record.matrix)
    assert len(own) == size * (size + 1) // 2
    for _, line in own.iterrows():
        assert line["accuracy"] == record.matrix[line["step"]][line["domain"]]
        assert line["oracle"] == record.oracle_matrix[line["step"]][line["domain"]]
        assert line["tested"] == record.domain_names[line["domain"]]
        assert line["learned"] == record.domain_names[line["step"]]
    assert accuracies.loc[accuracies["method"] == "ncm", "oracle"].isna().all()


def test_rows_of_one_method_have_their_own_labels(made, tmp_path):
    for rate in (1, 2):
        made.make_record(tmp_path, "a", config={"lr": rate})
    runs = load_runs(tmp_path, tmp_path)
    assert sorted(runs["row"]) == ["a [lr=1]", "a [lr=2]"]
    assert sorted(runs["option.lr"]) == [1, 2]
    assert runs["board"].nunique() == 1


@pytest.mark.parametrize("load", [load_runs, load_accuracies])
def test_a_folder_without_runs_is_refused(load, tmp_path):
    with pytest.raises(RecordError, match="no complete run below"):
        load(tmp_path)
    with pytest.raises(RecordError, match="does not exist"):
        load(tmp_path / "nowhere")


def test_nothing_else_needs_pandas():
    code = (
        "import sys, fsdil_bench.report.leaderboards, fsdil_bench.analysis.frames, fsdil_bench.cli;"
        "sys.exit('pandas' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
