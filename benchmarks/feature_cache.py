"""How much faster a second frozen-feature method is once the first has filled the cache."""

from __future__ import annotations

import os
import tempfile
import time

import fsdil_bench


def timed_run(method: str, out: str) -> float:
    began = time.perf_counter()
    fsdil_bench.run(method, "drawn-1shot", out=out, fresh=True)
    return time.perf_counter() - began


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["FSDIL_CACHE"] = f"{folder}/warm-up"
        timed_run("zero-shot", folder)  # imports, and the first use of every kernel
        os.environ["FSDIL_CACHE"] = f"{folder}/cache"
        cold = timed_run("ncm", folder)
        warm = timed_run("slda", folder)
        os.environ["FSDIL_CACHE"] = f"{folder}/other"
        without = timed_run("slda", folder)
    print(f"ncm, empty cache:            {cold:8.2f} s")
    print(f"slda, cache filled by ncm:   {warm:8.2f} s")
    print(f"slda, empty cache:           {without:8.2f} s")
    print(f"the cache makes slda {without / warm:.1f} times faster")
