from __future__ import annotations

import numpy as np
import pytest
import torch
from fsdil_methods.cvlc.domain_id import (
    DomainStatistics,
    Rule,
    add_domain,
    distances,
    identify,
    make_metric,
)
from scipy.stats import multivariate_normal

T, C, D = 3, 2, 4
RULES: tuple[Rule, ...] = (
    "gaussian", "class-pooled", "authors", "gaussian-logdet", "gaussian-common",
)  # fmt: skip

Domain = tuple[np.ndarray, np.ndarray, np.ndarray]


@pytest.fixture
def domains() -> list[Domain]:
    """Embeddings, labels and weights of every domain, each with a spread of its own."""
    rng = np.random.default_rng(0)
    made = []
    for t in range(T):
        labels = np.arange(12 + 2 * t) % C
        z = rng.normal(size=(len(labels), D)) @ rng.normal(size=(D, D)) + rng.normal(size=D)
        made.append((z, labels, rng.integers(1, 4, len(labels))))
    return made


@pytest.fixture
def queries() -> np.ndarray:
    return 2 * np.random.default_rng(1).normal(size=(50, D))


def learn(domains: list[Domain], rule: Rule, kind: torch.dtype = torch.float64) -> DomainStatistics:
    statistics = None
    for z, labels, weights in domains:
        views = torch.tensor(z, dtype=kind), torch.tensor(labels), C
        statistics = add_domain(statistics, *views, rule, torch.tensor(weights))
    assert statistics is not None
    return statistics


def moments(z: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    rows = np.repeat(z, weights, 0)
    return rows.mean(0), np.cov(rows.T) + 1e-3 * np.eye(D)


def plain(domains: list[Domain], queries: np.ndarray, rule: Rule) -> np.ndarray:
    """Every query, domain and class in a loop."""
    if rule == "gaussian-logdet":
        return np.stack(
            [
                -2 * multivariate_normal(*moments(z, weights)).logpdf(queries)
                - D * np.log(2 * np.pi)
                for z, _, weights in domains
            ],
            1,
        )
    if rule == "gaussian-common":
        each = [moments(z, weights) for z, _, weights in domains]
        common = 0.9 * np.mean([covariance for _, covariance in each], 0)
        common += 0.1 / 0.9 * np.trace(common) / D * np.eye(D)
        normal = [multivariate_normal(mean, common) for mean, _ in each]
        constant = D * np.log(2 * np.pi) + np.linalg.slogdet(common)[1]
        return np.stack([-2 * each.logpdf(queries) - constant for each in normal], 1)
    if rule == "gaussian":
        groups = [[moments(z, weights)] for z, _, weights in domains]
        matrices = [[np.linalg.inv(covariance)] for ((_, covariance),) in groups]
    else:
        groups = [
            [moments(z[labels == k], weights[labels == k]) for k in range(C)]
            for z, labels, weights in domains
        ]
        pooled = [sum(group[k][1] for group in groups) / len(groups) for k in range(C)]
        invert = np.linalg.inv if rule == "class-pooled" else np.array
        matrices = [[invert(covariance) for covariance in pooled]] * len(groups)
    return np.array(
        [
            [
                min(
                    (z - mean) @ matrix @ (z - mean)
                    for (mean, _), matrix in zip(group, own, strict=True)
                )
                for group, own in zip(groups, matrices, strict=True)
            ]
            for z in queries
        ]
    )


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("seen", [1, 2, 3])
def test_distances(domains: list[Domain], queries: np.ndarray, rule: Rule, seen: int) -> None:
    metric = make_metric(learn(domains[:seen], rule), rule)
    expected = plain(domains[:seen], queries, rule)
    found = distances(torch.tensor(queries), metric)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-8)
    assert identify(torch.tensor(queries), metric).tolist() == expected.argmin(1).tolist()


def test_a_broad_domain_does_not_attract_what_is_in_a_narrow_one() -> None:
    """Unless the log-determinant is left out, as in the paper."""
    rng = np.random.default_rng(3)
    ones = np.ones(400, dtype=int)
    labels = np.arange(400) % C
    broad, narrow = 3 * rng.normal(size=(400, D)), 0.2 * rng.normal(size=(400, D)) + 0.5
    held_out = torch.tensor(0.2 * rng.normal(size=(400, D)) + 0.5)
    right = {}
    for rule in ("gaussian", "gaussian-logdet"):
        learned = learn([(broad, labels, ones), (narrow, labels, ones)], rule)
        found = identify(held_out, make_metric(learned, rule))
        right[rule] = float((found == 1).double().mean())
    assert right["gaussian"] < 0.3
    assert right["gaussian-logdet"] > 0.97


@pytest.mark.parametrize("rule", RULES)
def test_one_domain_is_the_answer(domains: list[Domain], queries: np.ndarray, rule: Rule) -> None:
    metric = make_metric(learn(domains[:1], rule), rule)
    assert identify(torch.tensor(queries), metric).tolist() == [0] * len(queries)


def test_the_rules_differ(domains: list[Domain], queries: np.ndarray) -> None:
    answers = {
        tuple(identify(torch.tensor(queries), make_metric(learn(domains, rule), rule)).tolist())
        for rule in RULES
    }
    assert len(answers) == len(RULES)


@pytest.mark.parametrize("rule", RULES)
def test_shapes_do_not_grow_more_than_needed(domains: list[Domain], rule: Rule) -> None:
    statistics = learn(domains, rule)
    matrices = {"gaussian": T, "gaussian-logdet": T, "gaussian-common": 1}.get(rule, C)
    assert statistics.means.shape == ((T, D) if rule.startswith("gaussian") else (T, C, D))
    assert statistics.covariances.shape == (matrices, D, D)


@pytest.mark.parametrize("rule", RULES)
def test_single_precision_and_far_fewer_images_than_dimensions(rule: Rule) -> None:
    """Two images and their views in 64 dimensions: the ridge alone keeps this invertible."""
    rng = np.random.default_rng(2)
    centres = rng.normal(size=(T, 1, 1, 64)) + 0.3 * rng.normal(size=(1, C, 1, 64))
    views = centres + 0.05 * rng.normal(size=(T, C, 5, 64))
    views /= np.linalg.norm(views, axis=-1, keepdims=True)
    labels = np.repeat(np.arange(C), 5)
    domains = [(z.reshape(-1, 64), labels, np.tile([4, 1, 1, 1, 1], C)) for z in views]
    metric = make_metric(learn(domains, rule, torch.float32), rule)
    tests = centres + 0.05 * rng.normal(size=(T, C, 5, 64))
    tests /= np.linalg.norm(tests, axis=-1, keepdims=True)
    z = torch.tensor(tests.reshape(-1, 64), dtype=torch.float32)
    expected = np.repeat(np.arange(T), C * 5)
    assert identify(z, metric).tolist() == expected.tolist()
