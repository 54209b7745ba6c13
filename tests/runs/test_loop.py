from __future__ import annotations

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from fsdil_bench import Record
from fsdil_bench.errors import DataError, PluginError, RequestError
from fsdil_bench.progress import Progress
from fsdil_bench.runs.evaluation import Evaluation
from fsdil_bench.seeds import numpy_generator


def predictions_of(record):
    return (record.folder / "predictions.npz").read_bytes()


def test_record_holds_the_whole_story(toy_run):
    record = toy_run()
    assert [len(row) for row in record.matrix] == [1, 2, 3, 4]
    assert record.metrics["AA*"] > 100 / 3
    assert [d["train"] for d in record.scenario["domains"]] == [36, 3, 3, 3]
    assert [d["test"] for d in record.scenario["domains"]] == [30, 33, 36, 39]
    assert record.cost["state_bytes"] == [3 * 16 * 4] * 4
    assert record.cost["images"]["predict"] == 30 + 63 + 99 + 138
    assert record.cost["peak_memory_bytes"] > 0
    assert record.provenance["packages"]["torch"]
    assert Record.load(record.folder) == record


def test_predictions_reproduce_the_matrix(toy_run):
    record = toy_run()
    arrays = record.predictions()
    for t, row in enumerate(record.matrix):
        seen = arrays["domains"] <= t
        correct = arrays[f"classes_{t}"] == arrays["labels"][seen]
        for i, value in enumerate(row):
            assert value == pytest.approx(100 * correct[arrays["domains"][seen] == i].mean())


def test_same_seed_same_bytes_other_seed_other_bytes(toy_run, tmp_path):
    first = toy_run(out=tmp_path / "a")
    second = toy_run(out=tmp_path / "b")
    other = toy_run(out=tmp_path / "c", seed=1)
    assert predictions_of(first) == predictions_of(second)
    assert first.run_id == second.run_id
    assert predictions_of(first) != predictions_of(other)
    assert first.run_id != other.run_id


def test_all_methods_get_the_same_shots(toy_run):
    one, two = toy_run("toy-means"), toy_run("toy-router")
    assert one.scenario["digest"] == two.scenario["digest"]
    assert one.run_id != two.run_id


def test_a_finished_run_is_not_repeated(toy_run):
    class Listener(Progress):
        heard = ""

        def say(self, text):
            self.heard += text

    first, listener = toy_run(), Listener()
    again = toy_run(progress=listener)
    assert "already done" in listener.heard
    assert again.provenance["time"] == first.provenance["time"]
    fresh = toy_run(fresh=True, progress=Progress())
    assert predictions_of(fresh) == predictions_of(first)


def test_router_gets_routing_accuracy_and_oracle_rows(toy_run):
    record = toy_run("toy-router")
    tests = [30, 33, 36, 39]
    expected = [100 * tests[0] / sum(tests[: t + 1]) for t in range(4)]
    assert record.routing == pytest.approx(expected)
    # It routes everything to domain 0. With the true domain, the others become class 0.
    for t in range(4):
        assert record.oracle_matrix[t][0] == record.matrix[t][0]
        assert record.oracle_matrix[t][1:] == pytest.approx([100 / 3] * t)


def test_test_batches_mix_the_domains(toy_registry, toy_run, toy_job, monkeypatch):
    """The harness shuffles: where an image stands in the batch does not tell its domain."""
    method = toy_registry.method("toy-means").factory
    honest, batches = method.predict, []

    def predict(self, batch):
        batches.append(batch.features)
        return honest(self, batch)

    monkeypatch.setattr(method, "predict", predict)
    job = toy_job()
    pictures = job.pictures(Progress())
    domain_of = {
        row.numpy().tobytes(): t
        for t, domain in enumerate(job.stream.domains)
        for row in pictures.features(domain.test)
    }
    orders = []
    for seed in (0, 1):
        toy_run(seed=seed)
        orders.append([domain_of[row.numpy().tobytes()] for row in batches[-1]])
    assert orders[0] != orders[1]
    for order in orders:
        assert len(order) == 138
        for start in range(0, 138, 23):
            assert set(order[start : start + 23]) == {0, 1, 2, 3}


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("toy-raisesinbuild", "cannot be built, says the test"),
        ("toy-raisesinlearn", "ValueError in learn: learn says the test"),
        ("toy-raisesinpredict", "ValueError in predict: predict says the test"),
        ("toy-returnslogits", "float32 of shape"),
        ("toy-returnstoofew", "for 30 images"),
        ("toy-returnsoutofrange", "ids from"),
        ("toy-keepsdomains", "after that domain was over"),
        ("toy-asksforearlier", "images of earlier domains"),
        ("toy-spoilsbackbone", "changed in place"),
        ("toy-undeclaredimages", "without declaring it"),
        ("toy-oddstate", "named tensors"),
    ],
)
def test_misbehaving_methods_fail_by_name(toy_run, tmp_path, method, message):
    with pytest.raises(PluginError, match=message):
        toy_run(method)
    assert not list((tmp_path / "runs").rglob("record.json"))
    log = next((tmp_path / "runs").rglob("log.txt")).read_text()
    assert "Traceback" in log


def test_spoilt_backbone_does_not_reach_the_cache(toy_run):
    expected = toy_run("toy-means")
    with pytest.raises(PluginError):
        toy_run("toy-spoilsbackbone", seed=3)
    assert toy_run("toy-means", fresh=True).matrix == expected.matrix


def test_text_tower_is_checked_before_anything_runs(toy_run):
    with pytest.raises(RequestError, match="needs a text tower"):
        toy_run("toy-text", backbone="mute-clip")


def test_unreadable_image_is_named(toy_run, monkeypatch, toy_registry):
    build = toy_registry.scenario("toy").factory

    def broken(request):
        stream = build(request)

        def load(sample_id):
            raise OSError("broken data stream")

        object.__setattr__(stream.domains[1].test, "load", load)
        return stream

    info = toy_registry.scenario("toy")
    monkeypatch.setitem(
        toy_registry.scenarios, "toy", type(info)(**{**vars(info), "factory": broken})
    )
    with pytest.raises(DataError, match="image 'd1/test/0/0' cannot be read"):
        toy_run()


def test_order_base_and_limit_change_the_run(toy_run):
    plain = toy_run()
    reordered = toy_run(order=["d2", "d0"])
    based = toy_run(base="d1")
    limited = toy_run(base_limit=2)
    assert [d["name"] for d in reordered.scenario["domains"]] == ["d2", "d0"]
    assert based.spec["order"][0] == "d1"
    assert limited.scenario["domains"][0]["train"] == 6
    assert len({r.run_id for r in (plain, reordered, based, limited)}) == 4


def test_the_state_that_counts_is_the_one_after_learning(toy_run):
    """A method that learns from test images gains nothing by it, and the record says so."""
    honest, cheater = toy_run("toy-means"), toy_run("toy-learnsfromtests")
    assert len(cheater.warnings) == 4
    assert (
        "domain 1: predicting changed the state (sums); the harness restored it"
        in (cheater.warnings[0])
    )
    assert honest.warnings is None
    states = [
        load_file(record.folder / "domain-3" / "state.safetensors") for record in (honest, cheater)
    ]
    assert torch.equal(states[0]["sums"], states[1]["sums"])


def test_true_domains_of_the_oracle_reach_no_later_domain(toy_run):
    record = toy_run("toy-learnsfromoracle")
    assert record.oracle_matrix == toy_run("toy-router").oracle_matrix


def test_a_method_cannot_work_out_the_order_of_test_images(toy_run, monkeypatch):
    """Not from the seed, which it knows: other images under the same ids are mixed differently."""
    orders = []
    honest = Evaluation._order

    def order(self, *arguments):
        orders.append(honest(self, *arguments).tolist())
        return np.array(orders[-1])

    monkeypatch.setattr(Evaluation, "_order", order)
    toy_run()
    assert orders[0] != numpy_generator(0, "test order", 0).permutation(30).tolist()
    toy_run(order=["d0", "d1"])
    assert orders[0] != orders[4]  # what is salted in covers all images of the stream


def test_what_a_method_says_of_itself_costs_no_run(toy_run):
    record = toy_run("toy-oddreports")
    assert record.cost["trained_parameters"] == [0] * 4
    first = record.diagnostics["per_domain"][0]
    assert (first["loss"], first["bounds"]) == ("nan", ["-inf", 1])
    assert isinstance(first["sum"], float)
    assert any("trained_parameters() failed" in text for text in record.warnings)
    assert any("diagnostics().loss is nan" in text for text in record.warnings)
    assert record.metrics == toy_run("toy-means").metrics
    assert Record.load(record.folder) == record
    sealed = toy_run("toy-oddreports", sealed=True)
    assert sealed.warnings == record.warnings
    assert sealed.diagnostics == record.diagnostics
