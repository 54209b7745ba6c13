from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from fsdil_methods.frozen.growing_prototypes import accuracy_left_out, needs_more, per_class


def test_the_rule() -> None:
    usual = torch.tensor([1.0, 1.0, 0.2, 0.2])
    accuracy = torch.tensor([0.9, 0.89, 0.5, 0.4])
    assert needs_more(accuracy, usual, 0.1, 0.5).tolist() == [False, True, False, True]


def test_per_class() -> None:
    labels = torch.tensor([0, 0, 2, 2, 2])
    right = torch.tensor([True, False, True, True, True])
    assert per_class(right, labels, 4).tolist() == [0.5, 0, 1, 0]


@pytest.mark.parametrize("earlier", [0, 2])
@pytest.mark.parametrize("wanted", [[True, True, True], [True, False, True]])
def test_every_image_is_left_out_of_its_own_prototype(earlier: int, wanted: list[bool]) -> None:
    """Worked out one image at a time, with prototypes made of the others."""
    generator = torch.Generator().manual_seed(1)
    features = F.normalize(torch.randn(10, 4, generator=generator), dim=1)
    labels = torch.tensor([0, 1, 2, 0, 1, 0, 1, 0, 1, 0])  # a single image of class 2
    known = torch.randn(earlier, 3, 4, generator=generator)
    added = torch.tensor(wanted)
    sums = torch.stack([features[labels == c].sum(0) for c in range(3)]) * added[:, None]
    right = []
    for i in range(10):
        rest = torch.arange(10) != i
        best = torch.full((3,), -1.0)
        for c in range(3):
            rows = [known[t, c] for t in range(earlier)]
            if added[c] and (rest & (labels == c)).any():
                rows.append(features[rest & (labels == c)].sum(0))
            for row in rows:
                best[c] = max(best[c], F.cosine_similarity(features[i], row, dim=0))
        right.append(bool(best.argmax() == labels[i]))
    expected = per_class(torch.tensor(right), labels, 3)
    found = accuracy_left_out(features, labels, known, sums)
    assert found.tolist() == pytest.approx(expected.tolist())
