"""What a sealed run costs more than an ordinary one of the same method, with a warm cache.

`ncm` needs features alone and is over at once, so the processes themselves are what it pays for.
`finetune` trains a tower, and every process gets pixels and loads the weights.
"""

from __future__ import annotations

import os
import tempfile
import time
from typing import Any

STEPS = 3  # of training per few-shot domain
CASES: dict[str, dict[str, Any]] = {"ncm": {}, "finetune": {"config": {"steps": STEPS}}}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["FSDIL_CACHE"] = f"{folder}/cache"
        os.environ["OMP_NUM_THREADS"] = "1"
        run(folder, "warm-up", "ncm", {}, sealed=False)
        for method, options in CASES.items():
            ordinary, record = run(folder, "first", method, options, sealed=False)
            domains = len(record.matrix)
            for name in ("first", "second"):  # the first one of a process also starts the server
                sealed, record = run(folder, name, method, options, sealed=True)
                more = sealed - ordinary
                print(
                    f"{method:9} ordinary {ordinary:6.2f} s, sealed {sealed:6.2f} s ({name}): "
                    f"{100 * more / ordinary:+.0f} %, {more:.2f} s, {more / domains:.2f} s a domain"
                )
                spent = record.cost["seconds"]
                print("  " + ", ".join(f"{part} {spent[part]:.2f} s" for part in sorted(spent)))
    print("(a run of minutes is to cost at most 15 % more)")


def run(folder: str, name: str, method: str, options: dict[str, Any], *, sealed: bool) -> Any:
    """Seconds and record of a run."""
    import fsdil_bench

    began = time.perf_counter()
    out = f"{folder}/{name}"
    record = fsdil_bench.run(method, "drawn-1shot", out=out, sealed=sealed, **options)
    return time.perf_counter() - began, record


if __name__ == "__main__":
    main()
