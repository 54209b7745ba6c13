"""fsdil-bench: a benchmark for few-shot domain-incremental learning.

Everything a plugin or a script needs can be imported from here. Names that need torch are loaded
on first use, so that importing this package, and listing what is installed, stays cheap.
"""

from __future__ import annotations

import importlib
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from .config import knob
from .descriptors import API_VERSION, BackboneInfo, LauncherInfo, MethodInfo, ScenarioInfo
from .errors import DataError, FsdilError, PluginError, RecordError, RequestError
from .hookspecs import hookimpl
from .method import Context, Method, RouterMethod, State
from .scenario import Domain, Samples, ScenarioRequest, Stream
from .seeds import numpy_generator
from .sources import DataSource, Download, Remark

if TYPE_CHECKING:
    from .avalanche_methods import AvalancheConfig, avalanche_method
    from .backbone import Backbone
    from .clip.backbone import open_clip_backbone
    from .clip.known_texts import KnownTexts
    from .copies import describe_copies, drop_copies, find_copies
    from .image_files import (
        file_samples,
        image_names,
        is_image_name,
        missing_files,
        read_image,
        starts_like_an_image,
    )
    from .leaderboards import write_leaderboards
    from .metrics import scores
    from .record import Record, find_records
    from .runner import run
    from .streams import load_stream
    from .sweeps.launcher import Event, Launcher, LauncherSetup, Resources, Task
    from .transforms import ImageSpec
    from .views import Batch, TrainBatch, TrainDomain

try:
    __version__ = version("fsdil-bench")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0"

_LAZY = {
    "AvalancheConfig": "avalanche_methods",
    "Backbone": "backbone",
    "Batch": "views",
    "Event": "sweeps.launcher",
    "ImageSpec": "transforms",
    "KnownTexts": "clip.known_texts",
    "Launcher": "sweeps.launcher",
    "LauncherSetup": "sweeps.launcher",
    "Record": "record",
    "Resources": "sweeps.launcher",
    "Task": "sweeps.launcher",
    "TrainBatch": "views",
    "TrainDomain": "views",
    "avalanche_method": "avalanche_methods",
    "describe_copies": "copies",
    "drop_copies": "copies",
    "file_samples": "image_files",
    "find_copies": "copies",
    "find_records": "record",
    "image_names": "image_files",
    "is_image_name": "image_files",
    "load_stream": "streams",
    "missing_files": "image_files",
    "open_clip_backbone": "clip.backbone",
    "read_image": "image_files",
    "run": "runner",
    "scores": "metrics",
    "starts_like_an_image": "image_files",
    "write_leaderboards": "leaderboards",
}

__all__ = [
    "API_VERSION",
    "AvalancheConfig",
    "Backbone",
    "BackboneInfo",
    "Batch",
    "Context",
    "DataError",
    "DataSource",
    "Domain",
    "Download",
    "Event",
    "FsdilError",
    "ImageSpec",
    "KnownTexts",
    "Launcher",
    "LauncherInfo",
    "LauncherSetup",
    "Method",
    "MethodInfo",
    "PluginError",
    "Record",
    "RecordError",
    "Remark",
    "RequestError",
    "Resources",
    "RouterMethod",
    "Samples",
    "ScenarioInfo",
    "ScenarioRequest",
    "State",
    "Stream",
    "Task",
    "TrainBatch",
    "TrainDomain",
    "__version__",
    "avalanche_method",
    "describe_copies",
    "drop_copies",
    "file_samples",
    "find_copies",
    "find_records",
    "hookimpl",
    "image_names",
    "is_image_name",
    "knob",
    "load_stream",
    "missing_files",
    "numpy_generator",
    "open_clip_backbone",
    "read_image",
    "run",
    "scores",
    "starts_like_an_image",
    "write_leaderboards",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(f".{_LAZY[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
