"""What `fsdil-bench data verify` finds wrong with the files of a published data set.

Every folder is listed once. The sizes of all files are checked, and the first bytes of a few files
per folder. No image is decoded.
"""

from __future__ import annotations

import hashlib
import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from fsdil_bench import Remark, is_image_name, missing_files, starts_like_an_image

from .image_folders import shortened

_OPENED = 3  # files per folder whose first bytes are read
_SHOWN = 10  # lines of one kind; the rest is only counted


class Findings:
    """The problems of a data set by kind, in the order in which the kinds were found."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._by_kind: dict[str, list[str]] = defaultdict(list)
        self._remarks: list[str] = []

    def add(self, kind: str, line: str) -> None:
        """Note a problem; of many problems of one kind only the first are shown."""
        self._by_kind[kind].append(line)

    def remark(self, line: str) -> None:
        """Note something unusual that is not a problem."""
        self._remarks.append(Remark(line))

    def checksums(self, place: Path, published: Mapping[str, str]) -> None:
        """Remark on lists that differ from the published ones: users may have edited them."""
        for name, sha256 in published.items():
            if hashlib.sha256((place / name).read_bytes()).hexdigest() != sha256:
                self.remark(f"{name}: the list is not as published; its checksum differs")

    def lines(self) -> list[str]:
        """One line per problem, the first few of each kind, and the remarks."""
        shown: list[str] = []
        for kind, lines in self._by_kind.items():
            shown += lines[:_SHOWN]
            if len(lines) > _SHOWN:
                shown.append(f"... and {len(lines) - _SHOWN} more: {kind}")
        return shown + self._remarks

    def compare(self, place: str, found: int, published: int) -> None:
        """Note a number of images that differs from the published one."""
        if found != published:
            self.add("different counts", f"{place}: {found} images, {published} are published")

    def images(self, place: str) -> list[str]:
        """The names of the images in a folder below the root. What is wrong there is noted."""
        folder = self.root / place
        if not folder.is_dir():
            self.add("missing folders", f"{place}: no such folder")
            return []
        names, empty, others = [], [], []
        with os.scandir(folder) as entries:
            for entry in entries:
                if not is_image_name(entry.name):
                    if not entry.name.startswith("."):
                        others.append(entry.name)
                    continue
                names.append(entry.name)
                if not entry.stat().st_size:
                    empty.append(entry.name)
        names.sort()
        sample = [n for n in names[:: max(1, len(names) // _OPENED)][:_OPENED] if n not in empty]
        strange = [name for name in sample if not starts_like_an_image(folder / name)]
        self._note("empty files", place, empty)
        self._note("files that are no images", place, strange)
        self._note("unexpected entries", place, others)
        return names

    def listed(self, name: str, paths: Sequence[str]) -> None:
        """Note images that the list called `name` holds and that are not there."""
        absent = missing_files(self.root, paths)
        if absent:
            self.add(
                "missing files",
                f"{name}: {len(absent)} of {len(paths)} images are not there: "
                f"{shortened(absent, 3)}",
            )

    def only(self, place: str, expected: set[str]) -> None:
        """Note folders below `place` that are not part of the data set."""
        folder = self.root / place
        if folder.is_dir():
            found = {p.name for p in folder.iterdir() if p.is_dir() and p.name[0] != "."}
            self._note("unexpected folders", place, sorted(found - expected))

    def _note(self, kind: str, place: str, names: list[str]) -> None:
        if names:
            self.add(kind, f"{place}: {kind}: {len(names)}, for instance {min(names)}")
