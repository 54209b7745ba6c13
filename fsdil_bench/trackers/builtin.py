"""The trackers that come with the harness; what they need is imported when they are used."""

from __future__ import annotations

from collections.abc import Iterable

from fsdil_bench.plugins.descriptors import TrackerInfo
from fsdil_bench.plugins.hookspecs import hookimpl


@hookimpl
def fsdil_trackers() -> Iterable[TrackerInfo]:
    """Three programs that many people have in use."""
    return [
        TrackerInfo(
            "tensorboard",
            "curves and hyperparameters, in event files for TensorBoard",
            "fsdil_bench.trackers.tensorboard_tracker:TensorBoardTracker",
            modules=("tensorboard",),
            extra="tensorboard",
        ),
        TrackerInfo(
            "mlflow",
            "parameters, metrics and records, in a file or on a server of MLflow",
            "fsdil_bench.trackers.mlflow_tracker:MLflowTracker",
            modules=("mlflow", "sqlalchemy", "alembic"),
            extra="mlflow",
        ),
        TrackerInfo(
            "wandb",
            "runs of Weights & Biases: offline, or online for those who are logged in",
            "fsdil_bench.trackers.wandb_tracker:WandbTracker",
            modules=("wandb",),
            extra="wandb",
        ),
    ]
