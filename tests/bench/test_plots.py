from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from fsdil_bench.errors import RecordError

pytest.importorskip("matplotlib")


def test_map_of_embeddings(toy_run, toy_registry, tmp_path):
    from fsdil_bench.plots.embeddings import plot_embeddings

    record = toy_run()
    file = plot_embeddings(record, tmp_path / "figures" / "map.png", toy_registry)
    pixels = np.asarray(Image.open(file).convert("RGB"))
    assert pixels.shape[1] > 1000
    assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 20
    svg = plot_embeddings(record, tmp_path / "map.svg", toy_registry).read_text()
    for name in ("red", "green", "blue", "d0", "d3"):
        assert f"<!-- {name} -->" in svg


def test_a_run_without_checkpoint_says_so(toy_run, toy_registry, tmp_path):
    from fsdil_bench.plots.embeddings import plot_embeddings

    record = toy_run()
    for state in record.folder.rglob("state.safetensors"):
        state.unlink()
    with pytest.raises(RecordError, match="no checkpoint"):
        plot_embeddings(record, tmp_path / "map.png", toy_registry)


def test_principal_components_keep_the_spread():
    from fsdil_bench.plots.embeddings import _flatten

    points = np.random.default_rng(0).normal(size=(50, 6)) * [9, 5, 0.1, 0.1, 0.1, 0.1]
    pytest.importorskip("sklearn")
    from sklearn.decomposition import PCA

    expected = PCA(2, svd_solver="full").fit_transform(points)
    assert np.allclose(np.abs(_flatten(points)), np.abs(expected), atol=1e-6)
