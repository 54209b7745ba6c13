"""What hashing a tree as large as DomainNet costs, compared with a look at each file.

`FILES=100000 python -m benchmarks file-hashes` takes fewer files. They are small: how
long it takes to read real images for the first time depends on the disk.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from fsdil_bench import file_samples

FILES = 590_000  # about as many as DomainNet's lists name
_PER_FOLDER = 285  # images of a class in a domain of DomainNet, on average
_BYTES = 2_000


def timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def make_tree(root: Path, files: int) -> list[str]:
    paths = []
    filler = os.urandom(_BYTES)
    for number in range(files):
        folder, place = divmod(number, _PER_FOLDER)
        if not place:
            (root / f"class_{folder:04}").mkdir()
        paths.append(f"class_{folder:04}/image_{number:06}.jpg")
        with open(root / paths[-1], "wb") as file:  # noqa: PTH123 - so many files
            file.write(number.to_bytes(8, "big") + filler)
    return paths


def main() -> None:
    files = int(os.environ.get("FILES", FILES))
    with tempfile.TemporaryDirectory() as folder:
        os.environ["FSDIL_CACHE"] = f"{folder}/cache"
        root = Path(folder) / "tree"
        root.mkdir()
        paths = make_tree(root, files)
        time.sleep(3)  # a file that has just changed is not remembered

        def identify(part: slice = slice(None)) -> str:
            chosen = paths[part]
            return file_samples(root, chosen, [0] * len(chosen)).digest()

        looks = timed(lambda: [os.stat(f"{root}/{path}") for path in paths])  # noqa: PTH116
        first, again = timed(identify), timed(identify)
        built = timed(lambda: file_samples(root, paths, [0] * files))
        few = timed(lambda: identify(slice(None, None, _PER_FOLDER)))
        size = sum(file.stat().st_size for file in Path(f"{folder}/cache").glob("*.sqlite"))
    print(f"{files:,} files: a look at each (stat) takes {looks:.2f} s")
    print(f"first identification {first:7.2f} s, {first / looks:6.2f} times as long")
    print(f"again                {again:7.2f} s, {again / looks:6.2f} times as long")
    print(f"one file per folder  {few:7.2f} s, {few / looks:6.2f} times as long")
    print(f"building the samples {built:7.2f} s, {built / looks:6.2f} times as long")
    print(f"the cache takes {size / 1e6:.0f} MB, {size / files:.0f} bytes per file")
