"""fsdil-bench: a benchmark for few-shot domain-incremental learning.

Everything a plugin or a script needs can be imported from here. Names that need torch are loaded
on first use, so that importing this package, and listing what is installed, stays cheap.
"""

from __future__ import annotations

import importlib
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from .data.published.sources import DataSource, Download, Remark
from .data.scenario import Domain, Samples, ScenarioRequest, Stream
from .errors import (
    DataError,
    FsdilError,
    PluginError,
    RecordError,
    RequestError,
)
from .plugins.descriptors import (
    API_VERSION,
    BackboneInfo,
    LauncherInfo,
    MethodInfo,
    ScenarioInfo,
    TrackerInfo,
)
from .plugins.hookspecs import hookimpl
from .plugins.method import Context, Method, RouterMethod, State
from .plugins.options import knob, option
from .seeds import numpy_generator

if TYPE_CHECKING:
    from .analysis.boards import Board, Boards, load_boards
    from .analysis.comparison import Comparison, compare
    from .analysis.frames import load_accuracies, load_runs
    from .avalanche.incoming import stream_from_avalanche
    from .avalanche.methods import AvalancheConfig, avalanche_method
    from .data.image_files import (
        file_samples,
        image_names,
        is_image_name,
        missing_files,
        read_image,
        starts_like_an_image,
    )
    from .data.published.outline import Outline
    from .data.streams import load_stream
    from .data.train_test_copies import describe_copies, drop_copies, find_copies
    from .data.transforms import ImageSpec
    from .models.backbone import Backbone
    from .models.clip.known_texts import KnownTexts
    from .models.clip.open_clip_backbone import open_clip_backbone
    from .records.metrics import scores
    from .records.record import Record, find_records
    from .report.leaderboards import write_leaderboards
    from .report.plots.picture import Picture, plot
    from .runs.finished_domain import FinishedDomain
    from .runs.runner import run
    from .runs.tracker import TrackedRun, Tracker
    from .runs.views import Batch, TrainBatch, TrainDomain
    from .sweeps.launchers.launcher import Event, Launcher, LauncherSetup, Resources, Task

try:
    __version__ = version("fsdil-bench")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0"

_LAZY = {
    "AvalancheConfig": "avalanche.methods",
    "Backbone": "models.backbone",
    "Batch": "runs.views",
    "Board": "analysis.boards",
    "Boards": "analysis.boards",
    "Comparison": "analysis.comparison",
    "Event": "sweeps.launchers.launcher",
    "FinishedDomain": "runs.finished_domain",
    "ImageSpec": "data.transforms",
    "KnownTexts": "models.clip.known_texts",
    "Launcher": "sweeps.launchers.launcher",
    "LauncherSetup": "sweeps.launchers.launcher",
    "Outline": "data.published.outline",
    "Picture": "report.plots.picture",
    "Record": "records.record",
    "Resources": "sweeps.launchers.launcher",
    "Task": "sweeps.launchers.launcher",
    "TrackedRun": "runs.tracker",
    "Tracker": "runs.tracker",
    "TrainBatch": "runs.views",
    "TrainDomain": "runs.views",
    "avalanche_method": "avalanche.methods",
    "compare": "analysis.comparison",
    "describe_copies": "data.train_test_copies",
    "drop_copies": "data.train_test_copies",
    "file_samples": "data.image_files",
    "find_copies": "data.train_test_copies",
    "find_records": "records.record",
    "image_names": "data.image_files",
    "is_image_name": "data.image_files",
    "load_accuracies": "analysis.frames",
    "load_boards": "analysis.boards",
    "load_runs": "analysis.frames",
    "load_stream": "data.streams",
    "missing_files": "data.image_files",
    "open_clip_backbone": "models.clip.open_clip_backbone",
    "plot": "report.plots.picture",
    "read_image": "data.image_files",
    "run": "runs.runner",
    "scores": "records.metrics",
    "starts_like_an_image": "data.image_files",
    "stream_from_avalanche": "avalanche.incoming",
    "write_leaderboards": "report.leaderboards",
}

__all__ = [
    "API_VERSION",
    "AvalancheConfig",
    "Backbone",
    "BackboneInfo",
    "Batch",
    "Board",
    "Boards",
    "Comparison",
    "Context",
    "DataError",
    "DataSource",
    "Domain",
    "Download",
    "Event",
    "FinishedDomain",
    "FsdilError",
    "ImageSpec",
    "KnownTexts",
    "Launcher",
    "LauncherInfo",
    "LauncherSetup",
    "Method",
    "MethodInfo",
    "Outline",
    "Picture",
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
    "TrackedRun",
    "Tracker",
    "TrackerInfo",
    "TrainBatch",
    "TrainDomain",
    "__version__",
    "avalanche_method",
    "compare",
    "describe_copies",
    "drop_copies",
    "file_samples",
    "find_copies",
    "find_records",
    "hookimpl",
    "image_names",
    "is_image_name",
    "knob",
    "load_accuracies",
    "load_boards",
    "load_runs",
    "load_stream",
    "missing_files",
    "numpy_generator",
    "open_clip_backbone",
    "option",
    "plot",
    "read_image",
    "run",
    "scores",
    "starts_like_an_image",
    "stream_from_avalanche",
    "write_leaderboards",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(f".{_LAZY[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
