"""`python -m benchmarks [name ...]` runs all benchmarks, or those named."""

from __future__ import annotations

import sys

from . import feature_cache, listing, pictures

BENCHMARKS = {
    "feature-cache": feature_cache.main,
    "listing": listing.main,
    "pictures": pictures.main,
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
