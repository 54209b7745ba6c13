from __future__ import annotations

import re
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
def router():
    return find_records(PUBLISHED / "fused-prototypes")[0]


def drawn_text(svg: Path) -> str:
    return svg.read_text(encoding="utf-8")


def test_matrix_shows_every_number(router, tmp_path):
    from fsdil_bench.report.plots.matrix import plot_matrix

    text = drawn_text(plot_matrix(router, tmp_path / "matrix.svg"))
    for t, row in enumerate(router.matrix):
        for value in row[: t + 1]:
            assert f">{value:.1f}<" in text
    assert "fused-prototypes on drawn-1shot" in text


def test_matrix_shows_test_sets_of_no_domain(router, tmp_path):
    import dataclasses

    from fsdil_bench.report.plots.matrix import plot_matrix

    unseen = {"names": ["elsewhere"], "matrix": [[12.3]] * len(router.matrix)}
    record = dataclasses.replace(router, unseen=unseen)
    text = drawn_text(plot_matrix(record, tmp_path / "matrix.svg"))
    assert text.count(">12.3<") == len(router.matrix)
    assert "elsewhere" in text


def test_curves_name_every_domain(router, tmp_path):
    from fsdil_bench.report.plots.curves import plot_curves

    text = drawn_text(plot_curves(router, tmp_path / "curves.svg"))
    for domain in router.scenario["domains"]:
        assert text.count(f">{domain['name']}<") == 2  # on the axis and in the legend


def test_cost_names_phases_and_sizes(router, tmp_path):
    from fsdil_bench.report.plots.cost import plot_cost, plot_tradeoff

    text = drawn_text(plot_cost(router, tmp_path / "cost.svg"))
    for phase in ("learning", "predicting"):
        assert phase in text
    assert f">{router.cost['state_bytes'][-1] / 2**10:.3g}<" in text
    many = drawn_text(plot_tradeoff(find_records(PUBLISHED), tmp_path / "many.svg"))
    assert all(f">{method}<" in many for method in ("fused-prototypes", "slda", "zero-shot"))
    with pytest.raises(RequestError, match=r"of \d+ boards"):
        plot_tradeoff(find_records(PUBLISHED.parent), tmp_path / "mixed.svg")


@pytest.mark.parametrize("ending", ["svg", "png", "pdf"])
def test_the_same_figure_is_the_same_file(router, tmp_path, ending):
    from fsdil_bench.report.plots.curves import plot_curves

    one, two = (plot_curves(router, tmp_path / f"{i}.{ending}").read_bytes() for i in range(2))
    assert one == two
    assert len(one) > 1000


def test_other_endings_are_refused(router, tmp_path):
    from fsdil_bench.report.plots.curves import plot_curves

    with pytest.raises(RequestError, match=r"\.pdf, \.png, \.svg"):
        plot_curves(router, tmp_path / "curves.txt")
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


# Several methods in one picture


@pytest.fixture(scope="module")
def many(made, tmp_path_factory):
    """Fourteen methods on two numbers of shots, and one of them on a third."""
    runs = tmp_path_factory.mktemp("runs")
    names = ["zero-shot", "joint", *(f"m{i:02}" for i in range(12))]
    for level, name in enumerate(names):
        for shots in (1, 4, 8) if name == "m11" else (1, 4):
            options = {"level": 0.6 + 0.02 * level, "exemplar_free": name not in ("joint", "m10")}
            for seed in range(2):
                made.make_record(runs, name, f"made-{shots}shot", seed, **options)
    return runs


def names_in(svg: Path) -> set[str]:
    return set(re.findall(r">(zero-shot|joint|m\d\d)<", drawn_text(svg)))


def test_shots_show_the_best_ten_with_their_references(many, tmp_path):
    from fsdil_bench.report.plots.shots import plot_shots

    records = find_records(many)
    file = plot_shots(records, tmp_path / "shots.svg")
    best = {f"m{i:02}" for i in (2, 3, 4, 5, 6, 7, 8, 9, 11)}  # m10 keeps old images
    assert names_in(file) == {"zero-shot", "joint"} | best - {"m02"}
    assert all(f">{shots}<" in drawn_text(file) for shots in (1, 4, 8))
    chosen = plot_shots(records, tmp_path / "chosen.svg", methods=["m00", "m10"])
    assert names_in(chosen) == {"m00", "m10"}
    with pytest.raises(RequestError, match="'m20'"):
        plot_shots(records, tmp_path / "chosen.svg", methods=["m20"])


def test_a_row_with_few_shots_is_not_compared_by_their_sum():
    """More boards are no merit, and neither is the one board on which everybody is good."""
    from fsdil_bench.report.plots.shots import _ranks

    scores = {
        "often": {1: (50.0, 0.0), 2: (50.0, 0.0), 4: (50.0, 0.0)},
        "good": {1: (60.0, 0.0), 4: (60.0, 0.0)},
        "middle": {1: (55.0, 0.0), 4: (55.0, 0.0)},
        "once": {4: (99.0, 0.0)},
    }
    ranks = _ranks(scores)
    assert sorted(scores, key=ranks.get, reverse=True) == ["good", "middle", "often", "once"]


def test_shots_of_several_data_sets_are_refused(made, tmp_path):
    from fsdil_bench.report.plots.shots import plot_shots

    records = [made.make_record(tmp_path, scenario=f"{name}-1shot") for name in ("here", "there")]
    with pytest.raises(RequestError, match=r"of 2 boards .*\(here with .* there"):
        plot_shots(records, tmp_path / "mixed.svg")


def test_forgetting_names_its_methods_and_old_domains_alone(many, tmp_path):
    from fsdil_bench.report.plots.forgetting import plot_forgetting

    records = [r for r in find_records(many) if r.spec["scenario"] == "made-4shot"]
    text = drawn_text(plot_forgetting(records, tmp_path / "forgetting.svg"))
    assert len(names_in(tmp_path / "forgetting.svg")) == 10
    assert ">domain 3<" in text
    assert ">domain 0<" not in text
    with pytest.raises(RequestError, match="of 3 boards"):
        plot_forgetting(find_records(many), tmp_path / "mixed.svg")


def test_forgetting_needs_a_second_domain(made, tmp_path):
    from fsdil_bench.report.plots.forgetting import plot_forgetting

    with pytest.raises(RequestError, match="single domain"):
        plot_forgetting([made.make_record(tmp_path, domains=1)], tmp_path / "x.svg")


@pytest.mark.parametrize("plot", ["shots", "forgetting"])
@pytest.mark.parametrize("ending", ["svg", "png", "pdf"])
def test_pictures_of_methods_are_the_same_every_time(many, tmp_path, plot, ending, call):
    files = [tmp_path / f"{i}.{ending}" for i in range(2)]
    folders = [many] if plot == "shots" else [many / "made-1shot"]
    for file in files:
        code, out, err = call("show", *folders, "--plot", plot, "--out", file)
        assert (code, out, err) == (0, f"{file}\n", "")
    assert files[0].read_bytes() == files[1].read_bytes()
    assert files[0].stat().st_size > 5000


def test_names_are_moved_apart_and_no_further():
    from fsdil_bench.report.plots.method_lines import apart

    assert apart([0.1, 0.5, 0.9], 0.1) == pytest.approx([0.1, 0.5, 0.9])
    assert apart([0.5, 0.5, 0.5], 0.1) == pytest.approx([0.4, 0.5, 0.6])
    assert apart([0.0, 0.5, 0.52, 0.9], 0.1) == pytest.approx([0.0, 0.46, 0.56, 0.9])
    optimise = pytest.importorskip("scipy.optimize")
    values, gap = np.sort(np.random.default_rng(0).random(9)), 0.1
    best = optimise.minimize(
        lambda moved: ((moved - values) ** 2).sum(),
        np.arange(9) * gap,
        constraints={"type": "ineq", "fun": lambda moved: np.diff(moved) - gap},
    )
    assert apart(list(values), gap) == pytest.approx(list(best.x), abs=1e-4)


def test_lines_differ_in_more_than_their_colour():
    from fsdil_bench.report.plots.method_lines import line_styles

    labels = [*(f"m{i}" for i in range(10)), "zero-shot", "joint"]
    styles = line_styles(labels)
    marks = [(s["marker"], s.get("linestyle"), s.get("markerfacecolor")) for s in styles.values()]
    assert len(set(marks)) == len(labels)
    shapes = [styles[f"m{i}"]["marker"] for i in range(8)]
    assert len(set(shapes)) == 8
