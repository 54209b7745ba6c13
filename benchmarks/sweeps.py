"""What sweeps cost: two runs at a time against one, and the harness' own share of a run.

The runs fine-tune tiny-clip's image tower on the embedded world, with one thread each and warm
caches. The share is all that a process spends except for learning and predicting: start, imports,
images, bookkeeping, end.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

STEPS = 5  # per few-shot domain, after a pass over the base: about half a minute on one core
SEEDS = "0-3"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["FSDIL_CACHE"] = f"{folder}/cache"
        os.environ["OMP_NUM_THREADS"] = "1"
        sweep(folder, "warm-up", jobs=2, steps=1)
        one = sweep(folder, "one", jobs=1)
        two = sweep(folder, "two", jobs=2)
        ratio = one["seconds"] / two["seconds"]
        print(f"{len(one['cells'])} runs one at a time:  {one['seconds']:6.1f} s")
        print(f"{len(two['cells'])} runs two at a time:  {two['seconds']:6.1f} s")
        print(f"two at a time are {ratio:.2f} times faster (to be at least 1.6 on two free cores)")
        shares = [share(Path(folder, "one"), cell) for cell in one["cells"]]
    middle = sorted(shares, key=lambda each: each["share"])[len(shares) // 2]
    parts = ", ".join(f"{name} {value:.1f} s" for name, value in middle.items() if name != "share")
    print(f"the harness' own share of a run: {100 * middle['share']:.1f} % (to be under 10 %)")
    print(f"  {parts}")


def sweep(folder: str, name: str, jobs: int, steps: int = STEPS) -> dict[str, Any]:
    """The summary of a sweep over the seeds."""
    command = [
        sys.executable, "-m", "fsdil_bench", "sweep", "--methods", "finetune", "--scenarios",
        "drawn-1shot", "--seeds", SEEDS, "--set", f"steps={steps}", "--threads", "1", "--jobs",
        str(jobs), "--out", f"{folder}/{name}", "--json",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    summary: dict[str, Any] = json.loads(done.stdout)
    return summary


def share(out: Path, cell: dict[str, Any]) -> dict[str, float]:
    """Where the seconds of a run's process went."""
    record = json.loads((out / cell["key"] / "record.json").read_text(encoding="utf-8"))
    spent: dict[str, float] = record["cost"]["seconds"]
    own = spent["learn"] + spent["predict"]
    images = spent.get("images", 0.0) + spent.get("features", 0.0)
    return {
        "share": 1 - own / cell["seconds"],
        "all": cell["seconds"],
        "learning and predicting": own,
        "images": images,
        "start, end and the rest": cell["seconds"] - own - images,
    }
