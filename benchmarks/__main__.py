"""`python -m benchmarks [name ...]` runs all benchmarks, or those named."""

from __future__ import annotations

import sys

from . import (
    boards,
    cvlc_speed,
    feature_cache,
    file_hashes,
    forecasts,
    listing,
    loading,
    pictures,
    sealed,
    sweeps,
    tower_passes,
)

BENCHMARKS = {
    "boards": boards.main,
    "file-hashes": file_hashes.main,
    "cvlc": cvlc_speed.main,
    "feature-cache": feature_cache.main,
    "forecasts": forecasts.main,
    "listing": listing.main,
    "loading": loading.main,
    "pictures": pictures.main,
    "sealed": sealed.main,
    "sweeps": sweeps.main,
    "tower-passes": tower_passes.main,
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
