"""`python -m benchmarks [name ...]` runs all benchmarks, or those named."""

from __future__ import annotations

import sys

from . import (
    boards,
    contention,
    cvlc_speed,
    feature_cache,
    file_hashes,
    forecasts,
    listing,
    loading,
    pictures,
    products,
    sealed,
    sweeps,
    tower_work,
)

BENCHMARKS = {
    "boards": boards.main,
    "contention": contention.main,
    "file-hashes": file_hashes.main,
    "cvlc": cvlc_speed.main,
    "feature-cache": feature_cache.main,
    "forecasts": forecasts.main,
    "listing": listing.main,
    "loading": loading.main,
    "pictures": pictures.main,
    "products": products.main,
    "sealed": sealed.main,
    "sweeps": sweeps.main,
    "tower-work": tower_work.main,
}


def main() -> None:
    names = sys.argv[1:] or list(BENCHMARKS)
    for name in names:
        if name not in BENCHMARKS:
            sys.exit(f"unknown benchmark '{name}'; there are: {', '.join(BENCHMARKS)}")
        print(f"## {name}")
        BENCHMARKS[name]()
        print()


if __name__ == "__main__":
    main()
