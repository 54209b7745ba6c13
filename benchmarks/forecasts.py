"""What `fsdil-bench cost` says beforehand, against what runs on the embedded world then take.

Every run has a cache of its own in which pictures are drawn already, and no features. Processor
time is compared, because it does not depend on what else the machine does; on an idle machine with
one thread it is the time that passes. Run it with OMP_NUM_THREADS=1.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from unittest import mock

SCENARIO = "drawn-1shot"
#: Methods and options; training is shortened where it would take minutes.
RUNS: list[tuple[str, dict[str, Any]]] = [
    ("zero-shot", {}),
    ("slda", {}),
    ("finetune", {"base_epochs": 1, "steps": 20}),
    ("coop", {"base_epochs": 1, "steps": 20}),
    ("s-prompts", {"base_epochs": 1, "steps": 20}),
    ("cvlc", {"base_epochs": 1, "epochs": 2}),
]
FACTOR = 1.5


def main(names: list[str] | None = None) -> None:
    import torch

    from fsdil_bench.cache.folder import cache_folder
    from fsdil_bench.plugins.registry import load_registry

    torch.set_num_threads(1)
    registry = load_registry()
    drawn = cache_folder()
    _draw(registry)
    heads = ("method", "forecast", "measured", "ratio", "wall", "memory", "measured", "ratio")
    print(("{:12}" + "{:>10}" * 7).format(*heads))
    worst = 1.0
    for method, config in RUNS:
        if names and method not in names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            for file in drawn.glob("pictures-drawn.*"):
                shutil.copy(file, folder)
            with mock.patch.dict(os.environ, FSDIL_CACHE=folder):
                ratio = _compare(method, config, registry, Path(folder))
        worst = max(worst, ratio, 1 / ratio)
    print(f"the largest factor is {worst:.2f}")
    assert worst <= FACTOR


def _draw(registry: Any) -> None:
    """Have all pictures in the cache."""
    import fsdil_bench

    with tempfile.TemporaryDirectory() as out:
        fsdil_bench.run("slda", SCENARIO, registry=registry, out=out, device="cpu")


def _compare(method: str, config: dict[str, Any], registry: Any, folder: Path) -> float:
    import fsdil_bench
    from fsdil_bench.forecast.forecaster import Forecaster
    from fsdil_bench.runs.request import RunRequest

    options: dict[str, Any] = {"config": config, "device": "cpu", "workers": 0}
    request = RunRequest.of(method=method, scenario=SCENARIO, **options)
    said = Forecaster(registry).forecast(request)
    seconds = sum(said.cost.seconds(said.speed).values())
    wall, processor = time.perf_counter(), time.process_time()
    record = fsdil_bench.run(method, SCENARIO, registry=registry, out=folder / "runs", **options)
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    memory, held = said.cost.memory(said.speed), record.cost["peak_memory_bytes"]
    print(
        f"{method:12}{seconds:9.1f}s{processor:9.1f}s{seconds / processor:10.2f}{wall:9.1f}s"
        f"{memory / 1e6:7.0f} MB{held / 1e6:7.0f} MB{memory / held:10.2f}",
        flush=True,
    )
    if "-v" in sys.argv:
        print("  said    ", {k: round(v, 1) for k, v in said.cost.seconds(said.speed).items()})
        print("  measured", record.cost["seconds"])
    return seconds / processor


if __name__ == "__main__":
    main([name for name in sys.argv[1:] if not name.startswith("-")])
