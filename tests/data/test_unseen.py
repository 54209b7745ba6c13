"""Test sets of no domain: predicted after every domain, without touching anything else."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
import toy_plugin

from fsdil_bench import Record, ScenarioInfo, find_records
from fsdil_bench.data.scenario import arrange, check_stream
from fsdil_bench.data.shots import draw_shots
from fsdil_bench.errors import DataError
from fsdil_bench.report import terminal as tables
from fsdil_bench.report.leaderboards import write_leaderboards

SETS = (("dark", "d0", 7), ("bright", "d5", 9))


def unseen_sets():
    return tuple((name, toy_plugin.samples(place, "other", n)) for name, place, n in SETS)


def with_unseen(request=None):
    return replace(toy_plugin.build_stream(), unseen=unseen_sets())


class TellsTheState(toy_plugin.Means):
    """Counts what it predicts in its state, as a method that adapts at test time would."""

    def __init__(self, context):
        super().__init__(context)
        self.predicted = torch.zeros((), dtype=torch.long)

    def predict(self, batch):
        self.predicted += len(batch)
        return super().predict(batch)

    def state_dict(self):
        return {"sums": self.sums, "predicted": self.predicted}

    def load_state_dict(self, state):
        super().load_state_dict(state)
        self.predicted = state["predicted"].clone()

    def diagnostics(self):
        return {"predicted": int(self.predicted)}


@pytest.fixture
def both(toy_registry, toy_run, tmp_path, monkeypatch):
    """The same method on the toy stream without and with unseen test sets."""
    infos = toy_registry.scenarios
    other = ScenarioInfo("toy", "with unseen", with_unseen, default_backbone="toy-clip")

    def run(method="toy-means", **options):
        plain = toy_run(method, out=tmp_path / "plain", **options)
        with monkeypatch.context() as patch:
            patch.setitem(infos, "toy", other)
            return plain, toy_run(method, out=tmp_path / "unseen", **options)

    return run


@pytest.mark.parametrize("method", ["toy-means", "toy-router"])
def test_nothing_else_changes(both, method):
    plain, record = both(method)
    assert record.run_id != plain.run_id
    for name in ("matrix", "metrics", "oracle_matrix", "oracle_metrics", "routing", "diagnostics"):
        assert getattr(record, name) == getattr(plain, name)
    own, others = plain.predictions(), record.predictions()
    assert all(np.array_equal(others[name], array) for name, array in own.items())
    assert all(name.startswith("unseen_") for name in others.keys() - own.keys())
    assert record.cost["images"]["predict"] == plain.cost["images"]["predict"]
    assert plain.unseen is None
    assert "unseen" not in json.loads(plain.to_json())


def test_rows_follow_from_the_predictions(both):
    _, record = both()
    assert record.unseen["names"] == ["dark", "bright"]
    arrays = record.predictions()
    assert arrays["unseen_sets"].tolist() == [0] * 21 + [1] * 27
    labels = [label for _, samples in unseen_sets() for label in samples.labels]
    assert arrays["unseen_labels"].tolist() == labels
    for t in range(4):
        right = arrays[f"unseen_classes_{t}"] == arrays["unseen_labels"]
        expected = [100 * right[:21].mean(), 100 * right[21:].mean()]
        assert record.unseen["matrix"][t] == pytest.approx(expected)
    # Sums of coloured patches know colours: a guess would give a third.
    assert min(record.unseen["matrix"][-1]) > 60
    assert record.cost["images"]["unseen"] == 4 * 48


def test_predictions_belong_to_their_images(toy_registry, toy_job, both, monkeypatch):
    """The mixture is undone: image i of the record is image i of the sets."""
    method = toy_registry.method("toy-means").factory
    monkeypatch.setattr(method, "predict", lambda self, batch: batch.features.argmax(1) % 3)
    _, record = both()
    from fsdil_bench.progress import Progress

    pictures = toy_job().pictures(Progress())
    expected = [pictures.features(samples).argmax(1) % 3 for _, samples in unseen_sets()]
    for t in range(4):
        found = record.predictions()[f"unseen_classes_{t}"]
        assert found.tolist() == np.concatenate(expected).tolist()


def test_the_sets_are_mixed_among_themselves(toy_registry, both, monkeypatch):
    method = toy_registry.method("toy-means").factory
    honest, batches = method.predict, []

    def predict(self, batch):
        batches.append(batch.features)
        return honest(self, batch)

    monkeypatch.setattr(method, "predict", predict)
    orders = []
    for seed in (0, 1):
        batches.clear()
        both(seed=seed)
        orders.append([row.tobytes() for row in batches[-1].numpy()])
        assert [len(batch) for batch in batches[-8:]] == [30, 48, 63, 48, 99, 48, 138, 48]
    assert sorted(orders[0]) == sorted(orders[1])
    assert orders[0] != orders[1]


def test_a_method_keeps_nothing_of_them(toy_registry, both, monkeypatch):
    info = toy_registry.methods["toy-means"]
    counting = type(info)(**{**vars(info), "factory": TellsTheState})
    monkeypatch.setitem(toy_registry.methods, "toy-means", counting)
    plain, record = both()
    # What the state says right after learning: nothing was predicted with it yet.
    counts = [{"predicted": 0}] * 4
    assert plain.diagnostics["per_domain"] == record.diagnostics["per_domain"] == counts


def test_a_router_routes_them_but_gets_no_score_for_it(both):
    _, record = both("toy-router")
    arrays = record.predictions()
    assert arrays["unseen_routed_3"].tolist() == [0] * 48
    assert not any("oracle" in name for name in arrays if name.startswith("unseen"))


def test_an_interrupted_run_goes_on_with_them(both, toy_run, tmp_path, toy_registry, monkeypatch):
    _, whole = both()
    method = toy_registry.method("toy-means").factory
    honest = method.learn

    def killed(self, domain):
        if domain.index == 2:
            raise KeyboardInterrupt
        honest(self, domain)

    other = ScenarioInfo("toy", "with unseen", with_unseen, default_backbone="toy-clip")
    monkeypatch.setitem(toy_registry.scenarios, "toy", other)
    with monkeypatch.context() as patch:
        patch.setattr(method, "learn", killed)
        with pytest.raises(KeyboardInterrupt):
            toy_run(out=tmp_path / "killed")
    resumed = toy_run(out=tmp_path / "killed")
    assert resumed.provenance["resumed_after"] == 2
    assert resumed.unseen == whole.unseen
    assert resumed.predictions_sha256 == whole.predictions_sha256


def test_records_with_and_without_them_load(both):
    plain, record = both()
    assert Record.load(record.folder) == record
    assert Record.load(plain.folder).unseen is None
    described = record.scenario["unseen"]
    assert [(each["name"], each["test"]) for each in described] == [("dark", 21), ("bright", 27)]


def shown(renderable):
    from rich.console import Console

    console = Console(width=200, no_color=True)
    with console.capture() as capture:
        console.print(renderable)
    return capture.get()


def test_tables_show_them_beside_the_domains(both):
    plain, record = both()
    text = shown(tables.summary([record]))
    assert "unseen: dark" in text
    assert "unseen: bright" in text
    last = next(line for line in text.splitlines() if line.strip().startswith("d3"))
    values = [float(cell) for cell in last.split()[1:]]
    expected = [*record.matrix[3], *record.unseen["matrix"][3]]
    assert values == pytest.approx(expected, abs=0.051)
    assert "unseen" not in shown(tables.summary([plain]))
    _, second = both(seed=1)
    means = [np.mean(r.unseen["matrix"][-1]) for r in (record, second)]
    text = shown(tables.summary([record, second]))
    assert "unseen" in text
    assert f"{np.mean(means):.2f} ± {np.std(means):.2f}" in text


def test_boards_get_a_column_for_them(both, tmp_path):
    for seed in (0, 1):
        both(seed=seed)
    both("toy-router")
    write_leaderboards(find_records(tmp_path / "plain"), tmp_path / "without")
    page = next((tmp_path / "without").glob("toy-1shot*.md")).read_text()
    assert "unseen" not in page
    assert "unseen" not in next((tmp_path / "without").glob("toy-1shot*.csv")).read_text()

    records = find_records(tmp_path / "unseen")
    # One method's records are those of the stream without.
    mixed = [r if r.spec["method"] == "toy-means" else replace(r, unseen=None) for r in records]
    write_leaderboards(mixed, tmp_path / "with")
    table = pd.read_csv(next((tmp_path / "with").glob("toy-1shot*.csv"))).set_index("method")
    own = [r for r in records if r.spec["method"] == "toy-means"]
    means = [np.mean(r.unseen["matrix"][-1]) for r in own]
    assert table.loc["toy-means", "unseen"] == pytest.approx(np.mean(means))
    assert table.loc["toy-means", "unseen std"] == pytest.approx(np.std(means))
    assert pd.isna(table.loc["toy-router", "unseen"])
    page = next((tmp_path / "with").glob("toy-1shot*.md")).read_text()
    assert f"{np.mean(means):.2f} ± {np.std(means):.2f}" in page


# The stream


def test_they_are_part_of_what_identifies_a_stream():
    without, stream = toy_plugin.build_stream(), with_unseen()
    assert stream.digest() != without.digest()
    assert replace(stream, unseen=()).digest() == without.digest()
    assert replace(stream, unseen=stream.unseen[::-1]).digest() != stream.digest()


def test_arranging_and_drawing_keep_them():
    stream = with_unseen()
    assert arrange(stream, ["d2", "d1"]).unseen == stream.unseen
    assert draw_shots(stream, 1, 0).unseen == stream.unseen


def test_sets_that_cannot_be_scored_are_refused():
    stream = with_unseen()
    check_stream(stream, 1)
    (name, samples), other = stream.unseen
    outside = replace(samples, labels=samples.labels + 1)
    with pytest.raises(DataError, match="unseen test set 'dark' has labels outside"):
        check_stream(replace(stream, unseen=((name, outside), other)), 1)
    with pytest.raises(DataError, match="unseen test set 'dark' has no image"):
        check_stream(replace(stream, unseen=((name, samples.subset([])), other)), 1)
    with pytest.raises(DataError, match="two unseen test sets of one name"):
        check_stream(replace(stream, unseen=(other, other)), 1)
    # A class may be missing from them.
    check_stream(replace(stream, unseen=((name, samples.subset([0, 1])),)), 1)
