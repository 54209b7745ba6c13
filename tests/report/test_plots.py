from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fsdil_bench import find_records
from fsdil_bench.errors import RecordError, RequestError

pytest.importorskip("matplotlib")


def test_map_of_embeddings(toy_run, toy_registry, tmp_path):
    from fsdil_bench.report.plots.embeddings import plot_embeddings

    record = toy_run()
    file = plot_embeddings(record, tmp_path / "figures" / "map.png", toy_registry)
    pixels = np.asarray(Image.open(file).convert("RGB"))
    assert pixels.shape[1] > 1000
    assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 20
    svg = plot_embeddings(record, tmp_path / "map.svg", toy_registry).read_text()
    for name in ("red", "green", "blue", "d0", "d3"):
        assert f">{name}<" in svg


def test_a_map_is_of_the_run_as_it_was_asked_for(toy_run, toy_registry, tmp_path, monkeypatch):
    from fsdil_bench.models import device
    from fsdil_bench.report.plots.embeddings import plot_embeddings

    record = toy_run(precision="fp32")

    def choose(where, precision):
        if (where, precision) != ("cpu", "fp32"):
            raise RequestError("the defaults of this machine are cuda and bf16")
        return here(where, precision)

    here = device.choose
    monkeypatch.setattr(device, "choose", choose)
    assert plot_embeddings(record, tmp_path / "map.svg", toy_registry).is_file()


def test_a_run_without_checkpoint_says_so(toy_run, toy_registry, tmp_path):
    from fsdil_bench.report.plots.embeddings import plot_embeddings

    record = toy_run()
    for state in record.folder.rglob("state.safetensors"):
        state.unlink()
    with pytest.raises(RecordError, match="no checkpoint"):
        plot_embeddings(record, tmp_path / "map.png", toy_registry)


def test_principal_components_keep_the_spread():
    from fsdil_bench.report.plots.embeddings import _flatten

    points = np.random.default_rng(0).normal(size=(50, 6)) * [9, 5, 0.1, 0.1, 0.1, 0.1]
    pytest.importorskip("sklearn")
    from sklearn.decomposition import PCA

    expected = PCA(2, svd_solver="full").fit_transform(points)
    assert np.allclose(np.abs(_flatten(points)), np.abs(expected), atol=1e-6)


PUBLISHED = Path(__file__).parents[2] / "leaderboards" / "records" / "drawn-1shot"


@pytest.fixture(scope="module")
def cvlc():
    return find_records(PUBLISHED / "cvlc")[0]


def drawn_text(svg: Path) -> str:
    return svg.read_text(encoding="utf-8")


def test_matrix_shows_every_number(cvlc, tmp_path):
    from fsdil_bench.report.plots.matrix import plot_matrix

    text = drawn_text(plot_matrix(cvlc, tmp_path / "matrix.svg"))
    for t, row in enumerate(cvlc.matrix):
        for value in row[: t + 1]:
            assert f">{value:.1f}<" in text
    assert "cvlc on drawn-1shot" in text


def test_matrix_shows_test_sets_of_no_domain(cvlc, tmp_path):
    import dataclasses

    from fsdil_bench.report.plots.matrix import plot_matrix

    unseen = {"names": ["elsewhere"], "matrix": [[12.3]] * len(cvlc.matrix)}
    record = dataclasses.replace(cvlc, unseen=unseen)
    text = drawn_text(plot_matrix(record, tmp_path / "matrix.svg"))
    assert text.count(">12.3<") == len(cvlc.matrix)
    assert "elsewhere" in text


def test_curves_name_every_domain(cvlc, tmp_path):
    from fsdil_bench.report.plots.curves import plot_curves

    text = drawn_text(plot_curves(cvlc, tmp_path / "curves.svg"))
    for domain in cvlc.scenario["domains"]:
        assert text.count(f">{domain['name']}<") == 2  # on the axis and in the legend


def test_cost_names_phases_and_sizes(cvlc, tmp_path):
    from fsdil_bench.report.plots.cost import plot_cost, plot_tradeoff

    text = drawn_text(plot_cost(cvlc, tmp_path / "cost.svg"))
    for phase in ("learning", "predicting", "loading images", "frozen features"):
        assert phase in text
    assert f">{cvlc.cost['state_bytes'][-1] / 2**20:.3g}<" in text
    many = drawn_text(plot_tradeoff(find_records(PUBLISHED), tmp_path / "many.svg"))
    assert all(f">{method}<" in many for method in ("cvlc", "slda", "zero-shot"))
    with pytest.raises(RequestError, match=r"of \d+ boards"):
        plot_tradeoff(find_records(PUBLISHED.parent), tmp_path / "mixed.svg")


@pytest.mark.parametrize("ending", ["svg", "png", "pdf"])
def test_the_same_figure_is_the_same_file(cvlc, tmp_path, ending):
    from fsdil_bench.report.plots.curves import plot_curves

    one, two = (plot_curves(cvlc, tmp_path / f"{i}.{ending}").read_bytes() for i in range(2))
    assert one == two
    assert len(one) > 1000


def test_other_endings_are_refused(cvlc, tmp_path):
    from fsdil_bench.report.plots.curves import plot_curves

    with pytest.raises(RequestError, match=r"\.pdf, \.png, \.svg"):
        plot_curves(cvlc, tmp_path / "curves.txt")
    assert not (tmp_path / "curves.txt").exists()


@pytest.mark.parametrize("plot", ["matrix", "curves", "cost"])
def test_show_draws_figures(plot, tmp_path):
    from click.testing import CliRunner

    from fsdil_bench import cli

    file = tmp_path / "figures" / f"{plot}.png"
    result = CliRunner().invoke(
        cli.cli, ["show", str(PUBLISHED / "ncm-text"), "--plot", plot, "--out", str(file)]
    )
    if plot == "cost":  # of several runs: accuracy against cost
        assert result.exit_code == 0, result.output
        assert Image.open(file).width > 800
    else:
        assert isinstance(result.exception, RequestError)
        folder = next((PUBLISHED / "ncm-text").iterdir())
        again = ["show", str(folder), "--plot", plot, "--out", str(file)]
        assert CliRunner().invoke(cli.cli, again).exit_code == 0
        assert Image.open(file).width > 800
