from __future__ import annotations

import numpy as np
import torch
from fsdil_methods.domain_prototypes import class_sums, own_similarity, remember, similarity

FEATURES = torch.randn(12, 5, generator=torch.Generator().manual_seed(0))
LABELS = torch.tensor([0, 1, 2] * 4)


def after(mode: str, parts: int = 2) -> torch.Tensor:
    known = torch.zeros(0, 3, 5)
    for features, labels in zip(FEATURES.chunk(parts), LABELS.chunk(parts), strict=True):
        known = remember(known, class_sums(features, labels, 3), mode)  # type: ignore[arg-type]
    return known


def test_running_is_the_mean_over_all_images() -> None:
    expected = torch.stack([FEATURES[c == LABELS].sum(0) for c in range(3)])
    assert torch.allclose(after("running")[0], expected, atol=1e-6)
    assert torch.allclose(after("running"), after("running", 4), atol=1e-6)


def test_overwrite_keeps_the_last_domain_only() -> None:
    last = class_sums(FEATURES[6:], LABELS[6:], 3)
    assert torch.equal(after("overwrite"), last[None])


def test_classes_that_do_not_come_back_are_not_overwritten() -> None:
    before = after("overwrite")
    few = class_sums(FEATURES[:2], LABELS[:2], 3)  # classes 0 and 1
    now = remember(before, few, "overwrite")
    assert torch.equal(now[0, 2], before[0, 2])
    assert torch.equal(now[0, :2], few[:2])


def test_similarity_is_the_largest_cosine() -> None:
    known = after("domain-max")
    assert known.shape == (2, 3, 5)
    queries = FEATURES.double().numpy()
    for n, row in enumerate(similarity(FEATURES, known).numpy()):
        for c in range(3):
            cosines = [
                queries[n] @ p / np.linalg.norm(queries[n]) / np.linalg.norm(p)
                for p in known[:, c].double().numpy()
            ]
            assert np.isclose(row[c], max(cosines))


def test_a_prototype_twice_changes_nothing_and_one_that_is_missing_never_wins() -> None:
    known = after("domain-max")
    plain = similarity(FEATURES, known)
    for more in (known[:1], torch.zeros(1, 3, 5)):
        assert torch.allclose(similarity(FEATURES, torch.cat([known, more])), plain)
    assert (similarity(FEATURES, torch.zeros(1, 3, 5)) == -1).all()


def test_earlier_rows_count_for_wrong_classes_only() -> None:
    earlier, own = after("domain-max"), torch.randn(3, 5)
    mine, old = similarity(FEATURES, own[None]), similarity(FEATURES, earlier)
    found = own_similarity(FEATURES, LABELS, own, earlier)
    for n, label in enumerate(LABELS.tolist()):
        for c in range(3):
            expected = mine[n, c] if c == label else max(mine[n, c], old[n, c])
            assert found[n, c] == expected
    assert torch.equal(own_similarity(FEATURES, LABELS, own, earlier[:0]), mine)
