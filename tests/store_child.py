"""A process that fills a cache, for tests of several at once: prints what it computed itself.

python store_child.py FILE KEYS PART SECONDS [MARK]: with MARK, it writes that file when it has
claimed its first part and then hangs.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

from fsdil_bench.cache.array_store import ArrayStore


def value(key: str) -> np.ndarray:
    return np.random.default_rng(int(key)).random(16)


def main(file: str, keys: str, part: str, seconds: str, mark: str = "") -> None:
    computed = []

    def compute(parts):
        for chosen in parts:
            if mark:
                Path(mark).write_text(" ".join(chosen))
                time.sleep(600)
            time.sleep(float(seconds))
            computed.extend(chosen)
            yield {key: value(key) for key in chosen}

    wanted = [str(i) for i in range(int(keys))]
    print("ready", flush=True)
    sys.stdin.readline()
    found = ArrayStore(Path(file)).fill(wanted, compute, int(part))
    assert all((found[key] == value(key)).all() for key in wanted)
    print(" ".join(computed), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
