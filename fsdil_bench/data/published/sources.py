"""Where the images of a data set come from, and how to check that they are all there.

A scenario that reads published images names a `DataSource`; `fsdil-bench data` downloads and
verifies with it. Nothing is ever fetched unless the user asks for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

from fsdil_bench.plugins.descriptors import Factory


@dataclass(frozen=True)
class Download:
    """One file to fetch.

    `path` is where it is kept below the data set's folder. An archive is unpacked into the folder
    `unpack` (relative, "." for the data set's folder itself) and then removed. `size` in bytes and
    `sha256` or `md5` are checked where they are known. `also` are further addresses of the same
    file, tried in turn where the first fails.
    """

    url: str
    path: str
    unpack: str | None = None
    size: int | None = None
    sha256: str = ""
    md5: str = ""
    also: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for path in (self.path, self.unpack or "."):
            if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
                raise ValueError(f"'{path}' leads out of the data set's folder")


class Remark(str):
    """A line of `verify` about what is unusual but no fault: the data set is complete with it."""

    __slots__ = ()


@dataclass(frozen=True)
class DataSource:
    """A published data set.

    `manual` are the steps a person must take where no plain download exists (a form, a drive
    link). `layout` shows the tree that must be there in the end, one line each. `verify` is a
    function of the data set's folder that returns the problems it finds, one line each: missing
    folders, wrong counts, files that a list names and that are not there. What is only worth
    knowing is a `Remark`. `folder` is the name of
    its folder below `FSDIL_DATA`, by default the scenario's name; scenarios on the same images
    name the same folder and so share them. `outline` is a function of a `ScenarioRequest` that
    returns an `Outline`: how many images there are, for forecasts where they are not on disk.
    """

    homepage: str
    license: str
    verify: Factory
    layout: tuple[str, ...]
    downloads: tuple[Download, ...] = ()
    manual: tuple[str, ...] = ()
    size: str = ""
    folder: str = ""
    outline: Factory | None = None

    def __post_init__(self) -> None:
        if self.folder in (".", "..") or "/" in self.folder:
            raise ValueError(f"'{self.folder}' is not the name of a folder")
