"""What a sealed run costs more than an ordinary one of the same method, with a warm cache.

Whole commands are timed, as a user waits for them: `ncm` needs features alone and is over at once,
so it pays for the processes and nothing else; `finetune` and `cvlc` train towers, and every process
gets pixels and loads the weights. They train less than usual, so the share of the rest is larger.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CASES = {
    "ncm": (),
    "finetune": ("steps=10",),
    "cvlc": ("base_epochs=1", "epochs=4"),
}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["FSDIL_CACHE"] = f"{folder}/cache"
        run(folder, "warm-up", "ncm", ())
        for method, settings in CASES.items():
            ordinary, _ = run(folder, "runs", method, settings)
            sealed, spent = run(folder, "runs", method, settings, "--sealed")
            more = sealed - ordinary
            print(
                f"{method:9} ordinary {ordinary:6.1f} s, sealed {sealed:6.1f} s: "
                f"{100 * more / ordinary:+.0f} %, {more:+.1f} s"
            )
            print(
                "  sealed: " + ", ".join(f"{part} {s:.2f} s" for part, s in sorted(spent.items()))
            )
    print("(a run of a minute or more is to cost at most 15 % more)")


def run(
    folder: str, name: str, method: str, settings: tuple[str, ...], *more: str
) -> tuple[float, dict[str, float]]:
    """How long a command took, and what its record says of it."""
    out = Path(folder, name)
    words = [word for each in settings for word in ("--set", each)]
    command = [sys.executable, "-m", "fsdil_bench", "run", "-q", "-m", method, "-s", "drawn-1shot"]
    began = time.perf_counter()
    subprocess.run([*command, "--out", str(out), *words, *more], check=True, capture_output=True)
    seconds = time.perf_counter() - began
    place = max(out.rglob("record.json"), key=lambda path: path.stat().st_mtime)
    return seconds, json.loads(place.read_text(encoding="utf-8"))["cost"]["seconds"]


if __name__ == "__main__":
    main()
