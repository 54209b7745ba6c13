"""Routed test images come back in full batches of one domain, each image once."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import toy_plugin

from fsdil_bench.runs import routed
from fsdil_bench.runs.routed import by_domain, misrouted
from fsdil_bench.runs.views import Batch


def mixtures(count, domains, size=50):
    """Batches whose images and features are their rows, with domains at random."""
    generator = np.random.default_rng(0)
    order, domain_of = generator.permutation(count), generator.integers(0, domains, count)
    for start in range(0, count, size):
        rows = order[start : start + size]
        values = torch.from_numpy(rows).float()
        yield rows, Batch(values.view(-1, 1, 1, 1), values[:, None]), domain_of[rows]


def test_every_image_once_in_full_batches_of_one_domain():
    domain_of = {
        row: d
        for rows, _, domains in mixtures(1000, 4)
        for row, d in zip(rows, domains, strict=True)
    }
    parts = list(by_domain(mixtures(1000, 4), 32))
    rows = np.concatenate([rows for rows, _ in parts])
    assert sorted(rows.tolist()) == list(range(1000))
    for rows, batch in parts:
        assert batch.images.flatten().tolist() == rows.tolist()
        assert batch.features.flatten().tolist() == rows.tolist()
        assert len({domain_of[row] for row in rows.tolist()}) == 1
    assert sum(len(rows) < 32 for rows, _ in parts) <= 4
    assert max(len(rows) for rows, _ in parts) == 32


def test_only_so_many_images_wait(monkeypatch):
    monkeypatch.setattr(routed, "_MOST_WAITING", 100)
    given = handed_out = most = 0

    def watched():
        nonlocal given, most
        for rows, batch, domains in mixtures(2000, 40):
            most = max(most, given - handed_out)
            given += len(rows)
            yield rows, batch, domains

    for rows, _ in by_domain(watched(), 64):
        handed_out += len(rows)
    assert handed_out == 2000
    assert most <= 100


def test_what_a_method_does_not_get_stays_away():
    (part,) = by_domain([(np.arange(3), Batch(features=torch.zeros(3, 2)), np.zeros(3, int))], 8)
    assert part[1]._images is None
    assert list(by_domain([], 8)) == []


@pytest.mark.parametrize("sealed", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_run_predicts_as_before(toy_run, toy_registry, monkeypatch, sealed):
    """The method sees full batches of one routed domain, and its predictions are the same."""
    sizes = []
    router = toy_registry.method("toy-router").factory
    inside = toy_plugin.Router.predict_in_domain

    def by_brightness(self, batch):
        return (batch.images.mean((1, 2, 3)) * 997).long() % (self.seen + 1)

    def watched(self, batch, domains):
        sizes.append((len(batch), len(domains.unique())))
        return inside(self, batch, domains)

    learn = router.learn

    def counted(self, domain):
        self.seen = domain.index
        return learn(self, domain)

    if not sealed:  # the processes of a sealed run know the method from its file
        monkeypatch.setattr(router, "learn", counted)
        monkeypatch.setattr(router, "predict_domain", by_brightness)
        monkeypatch.setattr(router, "predict_in_domain", watched)
    grouped = toy_run("toy-router", sealed=sealed, batch_size=8)
    whole = toy_run("toy-router", sealed=sealed, batch_size=256, fresh=True)
    assert grouped.run_id == whole.run_id
    assert grouped.predictions_sha256 == whole.predictions_sha256
    assert grouped.provenance["batch_size"] == 8
    if not sealed:
        assert (8, 1) in sizes
        monkeypatch.setattr(
            "fsdil_bench.runs.evaluation.by_domain",
            lambda parts, full: ((r, b) for r, b, _ in parts),
        )
        mixed = toy_run("toy-router", fresh=True)
        assert max(domains for _, domains in sizes) > 1
        assert mixed.predictions_sha256 == whole.predictions_sha256


def test_wrongly_routed_images():
    rows = [np.array([4, 1]), np.array([3]), np.array([0, 2])]
    routed, truth = np.array([0, 1, 1, 0, 1]), np.array([0, 0, 1, 0, 2])
    parts = [(row, Batch(torch.from_numpy(row).float().view(-1, 1, 1, 1))) for row in rows]
    (found,) = misrouted(parts, routed, truth)
    assert found[0].tolist() == [4, 1]
    assert found[1].images.flatten().tolist() == [4, 1]
    assert found[2].tolist() == [2, 0]


def test_the_oracle_goes_on_from_what_domains_share(toy_run, toy_registry, monkeypatch):
    """It is another object that is told true domains, and it never begins with the pixels."""
    router = toy_registry.method("toy-router").factory
    inside = toy_plugin.Router.predict_in_domain
    before = toy_run("toy-router")
    told = {}

    def shared_part(self, batch):
        return batch.images.flatten(1) + 1

    def watched(self, batch, domains):
        told.setdefault(id(self), (self, []))[1].append(domains.unique().tolist())
        assert batch._images is None
        assert len(batch) == len(batch.shared) == len(batch.features)
        assert bool((batch.shared > -9).all())
        return inside(self, batch, domains)

    # As if it came with the harness.
    monkeypatch.setattr(toy_registry.origin("method", "toy-router"), "third_party", False)
    monkeypatch.setattr(router, "shared_part", shared_part)
    monkeypatch.setattr(router, "predict_in_domain", watched)
    after = toy_run("toy-router", fresh=True)
    assert after.predictions_sha256 == before.predictions_sha256
    seen = [domains for _, domains in told.values()]
    # The router sends everything to domain 0. The others are known to the oracle alone.
    assert all(set(map(tuple, each)) == {(0,)} or [0] not in each for each in seen)
    assert any([0] not in each for each in seen)


def test_a_third_partys_method_hears_of_true_domains_after_its_last_prediction(
    toy_run, toy_registry, monkeypatch
):
    router = toy_registry.method("toy-router").factory
    domain, inside, calls = router.predict_domain, toy_plugin.Router.predict_in_domain, []

    def routes(self, batch):
        calls.append("routed")
        return domain(self, batch)

    def watched(self, batch, domains):
        calls.append("predicted" if set(domains.tolist()) == {0} else "told")
        return inside(self, batch, domains)

    monkeypatch.setattr(router, "shared_part", lambda self, batch: batch.images.flatten(1))
    monkeypatch.setattr(router, "predict_domain", routes)
    monkeypatch.setattr(router, "predict_in_domain", watched)
    toy_run("toy-router", "toy-1shot", batch_size=4)
    assert "told" in calls
    # A domain is over when the oracle was asked: then images are routed again, never before.
    rounds = " ".join(calls).split("told")
    for after in rounds[1:]:
        words = after.split()
        assert not words or words[0] == "routed"
