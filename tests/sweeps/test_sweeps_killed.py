"""The promise of sweeps: whatever is killed, all records come out, and they are the same."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from sweep_processes import (
    contents,
    start,
    sweep,
    sweep_command,
    sweep_with_kills,
    toy_sweep,
    wait_for,
)

CELLS = """
retries = 100
threads = 1

[[grid]]
methods = ["ncm", "ncm-text", "slda", "ranpac", "linear-probe", "finetune"]
scenarios = ["drawn"]
shots = [1, 2]
seeds = [0, 1]
order = ["real", "sketch", "clipart"]
base_limit = 10

[method.finetune]
config = { steps = 8, batch_size = 32 }
"""


@pytest.fixture(scope="module")
def calm(tmp_path_factory, drawn_cache):
    """What an undisturbed sweep of 24 runs gives, and how long a run takes, two at a time.

    It hands no base domains on, and has a cache of its own: nothing that kills may have spoilt is
    common to it and the sweeps that are compared with it.
    """
    place = tmp_path_factory.mktemp("calm")
    (place / "sweep.toml").write_text(CELLS)
    began = time.monotonic()
    code, said = sweep(sweep_command(place / "sweep.toml", "--out", place / "runs", "--jobs", 2))
    assert code == 0, said
    found = contents(place / "runs")
    assert len(found) == 24
    return found, (time.monotonic() - began) / 12


@pytest.fixture
def disturbed(tmp_path, monkeypatch):
    """The file of a sweep of the same runs, which share their bases."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FSDIL_CACHE", str(tmp_path / "cache"))
    Path("disturbed.toml").write_text("reuse_base = true\n" + CELLS)
    return ["disturbed.toml", "--out", "disturbed"]


def same(found, expected):
    assert list(found) == list(expected)
    for key in expected:
        assert found[key] == expected[key], key


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_24_runs_with_20_kills_equal_an_undisturbed_sweep(calm, disturbed):
    """On the embedded world, two runs at a time; the sweep itself is killed twice as well."""
    expected, one = calm
    code, killed, deaths, said = sweep_with_kills(
        sweep_command(*disturbed, "--jobs", 2),
        Path("disturbed"), cells=24, kills=20, schedulers=2, pause=one / 4,
    )  # fmt: skip
    print(said)
    assert (killed, deaths) == (20, 2)
    assert code == 0, said
    assert "24 done" in said
    same(contents(Path("disturbed")), expected)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_24_runs_on_two_ray_nodes_one_of_which_dies_half_way(calm, disturbed, monkeypatch):
    pytest.importorskip("ray", reason="needs the extra 'ray'")
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("RAY_worker_niceness", "0")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        node = cluster.add_node(num_cpus=1)
        cluster.wait_for_nodes()
        address = f"address={cluster.address}"
        process = start(
            sweep_command(*disturbed, "--launcher", "ray", "--launcher-set", address, "--json")
        )
        wait_for(
            lambda: (
                process.poll() is not None
                or len(list(Path("disturbed").rglob("record.json"))) >= 12
            ),
            seconds=3600,
        )
        assert process.poll() is None, process.communicate()
        cluster.remove_node(node, allow_graceful=False)
        out, err = process.communicate()
    finally:
        cluster.shutdown()
    assert process.returncode == 0, err
    print(json.loads(out)["counts"])
    same(contents(Path("disturbed")), calm[0])


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(3))
def test_kills_in_a_small_sweep(tmp_path, seed):
    """Toy runs are short, so that kills meet start, loading, learning, writing and the end."""
    cells = ["-m", "toy-means,toy-router", "-s", "toy", "--shots", "1,2", "--seeds", "0-1"]
    code, killed, _, said = sweep_with_kills(
        toy_sweep(tmp_path / "disturbed", *cells, "-j", 3, "--retries", 100),
        tmp_path / "disturbed", cells=8, kills=12, pause=0.5, seed=seed,
    )  # fmt: skip
    assert code == 0, said
    assert killed >= 4  # runs this short often end before they are hit
    code, said = sweep(toy_sweep(tmp_path / "calm", *cells, "-j", 3))
    assert code == 0, said
    assert contents(tmp_path / "calm") == contents(tmp_path / "disturbed")
    assert len(contents(tmp_path / "calm")) == 8
