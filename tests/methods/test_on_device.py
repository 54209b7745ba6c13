"""Every built-in method on a CUDA device, which is pretended: ordinary, resumed and sealed."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fsdil_methods import fsdil_methods

import fsdil_bench
from fsdil_bench.checks.pretended_device import pretended_device
from fsdil_bench.plugins.registry import Registry, load_registry
from fsdil_bench.runs.job import load_method_class
from fsdil_bench.runs.run_folder import RECORD_FILE

PLUGIN = Path(__file__).parent.parent / "pretended_plugin.py"
ALL = {info.name: info for info in fsdil_methods()}
# One that learns from frozen features, one that trains a tower, one that trains parts of it and
# guesses domains.
SEALED = ("slda", "finetune", "s-prompts")
# Options that say how long to train or how often to look, by their last word; few of each will do.
LENGTHS = {"steps", "epochs", "iterations", "views"}
# The tower of these tests is small.
FITTING: dict[str, dict[str, Any]] = {
    "cp-prompt": {"blocks": (0, 2)},
    "dualprompt": {"general_blocks": 1, "expert_blocks": 2},
    "coda-prompt": {"blocks": 3},
    "ranpac": {"projection_size": 40},
    "sec-prompt": {"discriminative_blocks": 2, "other_blocks": 1},
    "icon": {"blocks": 3},
    "fshil-lite": {"expert_blocks": 2},
    "rail": {"projection_size": 40},
}

Run = Callable[..., tuple[fsdil_bench.Record, Path]]


@pytest.fixture(scope="module")
def registry() -> Registry:
    return load_registry([PLUGIN])


@pytest.fixture
def run(registry: Registry, tmp_path: Path) -> Run:
    """Run a method on the device."""

    def run(name: str, **options: Any) -> tuple[fsdil_bench.Record, Path]:
        usual = asdict(load_method_class(ALL[name]).Config())
        config = {
            option: 2
            for option, value in usual.items()
            if option.rpartition("_")[2] in LENGTHS and isinstance(value, int)
        }
        options = {"device": "cuda", "out": tmp_path / "runs", "keep_checkpoints": True} | options
        with pretended_device():
            record = fsdil_bench.run(
                name,
                "few-2shot",
                registry=registry,
                config=config | FITTING.get(name, {}),
                **options,
            )
        end = "-sealed" if options.get("sealed") else ""
        return record, tmp_path / "runs" / "few-2shot" / name / f"seed0-{record.run_id}{end}"

    return run


def predictions(folder: Path) -> list[np.ndarray]:
    arrays = [np.load(folder / f"domain-{t}" / "predictions.npz") for t in range(2)]
    return [array for each in arrays for array in each.values()]


def same(one: list[np.ndarray], other: list[np.ndarray]) -> bool:
    return len(one) == len(other) and all(map(np.array_equal, one, other))


@pytest.mark.parametrize("name", ALL)
def test_ordinary_and_resumed(run: Run, name: str) -> None:
    record, folder = run(name)
    assert record.provenance["gpu"] == "pretended device"
    straight = predictions(folder)
    shutil.rmtree(folder / "domain-1")
    (folder / RECORD_FILE).unlink()
    record, _ = run(name)
    assert record.provenance["resumed_after"] == 1
    assert same(straight, predictions(folder))


@pytest.mark.parametrize(
    "name", [n if n in SEALED else pytest.param(n, marks=pytest.mark.slow) for n in ALL]
)
def test_sealed(run: Run, name: str) -> None:
    ordinary = predictions(run(name)[1])
    record, folder = run(name, sealed=True)
    assert record.provenance["ordinary_run"] == "same predictions"
    assert same(ordinary, predictions(folder))
