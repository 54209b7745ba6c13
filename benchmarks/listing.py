"""What listing costs, against what importing torch alone costs."""

from __future__ import annotations

import subprocess
import sys
import time


def timed(*command: str) -> float:
    best = float("inf")
    for _ in range(3):
        began = time.perf_counter()
        subprocess.run([sys.executable, *command], check=True, capture_output=True)
        best = min(best, time.perf_counter() - began)
    return best


def main() -> None:
    listing = timed("-m", "fsdil_bench", "list", "methods")
    torch = timed("-c", "import torch")
    print(f"fsdil-bench list methods: {listing:.2f} s")
    print(f"import torch:             {torch:.2f} s")
    print(f"listing is {torch / listing:.1f} times faster than importing torch")
