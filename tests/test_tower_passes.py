"""A run sends hardly an image more through the tower than there are views to embed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture
def passes(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks import tower_passes

    yield tower_passes
    for name in [name for name in sys.modules if name.startswith("benchmarks")]:
        del sys.modules[name]


def test_next_to_nothing_is_computed_twice_or_for_padding(passes):
    counts = passes.count(domains=3, classes=8, base=16, tests=16, least_views=4)
    evaluated = 8 * 16 * (1 + 2 + 3)
    assert counts.distinct > evaluated
    assert counts.distinct <= counts.passes <= 1.1 * counts.distinct
    assert counts.padded > 2 * counts.distinct
