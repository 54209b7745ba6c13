"""The promise of sweeps: whatever is killed, all records come out, and they are the same."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from sweep_processes import contents, sweep_command, sweep_with_kills, toy_sweep

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


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_24_runs_with_20_kills_equal_an_undisturbed_sweep(tmp_path, drawn_cache, monkeypatch):
    """On the embedded world, two runs at a time; the sweep itself is killed twice as well.

    The calm sweep has a cache of its own and hands no base domains on: nothing that the kills may
    have spoilt is common to both.
    """
    monkeypatch.chdir(tmp_path)
    Path("calm.toml").write_text(CELLS)
    Path("disturbed.toml").write_text("reuse_base = true\n" + CELLS)
    began = time.monotonic()
    code, _, _, said = sweep_with_kills(
        sweep_command("calm.toml", "--out", "calm", "--jobs", 2), 0, random.Random(0)
    )
    assert code == 0, said
    one = (time.monotonic() - began) / 12  # what a run takes, two at a time

    monkeypatch.setenv("FSDIL_CACHE", str(tmp_path / "cache"))
    code, killed, deaths, said = sweep_with_kills(
        sweep_command("disturbed.toml", "--out", "disturbed", "--jobs", 2),
        20,
        random.Random(0),
        schedulers=2,
        pause=(0.05 * one, 0.8 * one),
    )
    print(said)
    assert (killed, deaths) == (20, 2)
    assert code == 0, said
    assert "24 done" in said
    calm, disturbed = contents(tmp_path / "calm"), contents(tmp_path / "disturbed")
    assert len(calm) == 24
    assert list(calm) == list(disturbed)
    for key, found in calm.items():
        assert disturbed[key] == found, key


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(3))
def test_kills_in_a_small_sweep(tmp_path, seed):
    """Toy runs are short, so that kills meet start, loading, learning, writing and the end."""
    cells = ["-m", "toy-means,toy-router", "-s", "toy", "--shots", "1,2", "--seeds", "0-1"]
    quick = (0.02, 0.5)
    code, killed, _, said = sweep_with_kills(
        toy_sweep(tmp_path / "disturbed", *cells, "-j", 3, "--retries", 100),
        12,
        random.Random(seed),
        pause=quick,
    )
    assert code == 0, said
    assert killed >= 4
    code, _, _, said = sweep_with_kills(
        toy_sweep(tmp_path / "calm", *cells, "-j", 3), 0, random.Random(0)
    )
    assert code == 0, said
    assert contents(tmp_path / "calm") == contents(tmp_path / "disturbed")
    assert len(contents(tmp_path / "calm")) == 8
