"""What a process of a sealed run is told: all that a method is built from, no way to samples."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from fsdil_bench.cache.folder import cache_folder
from fsdil_bench.data.streams import SEALED

if TYPE_CHECKING:
    from fsdil_bench.runs.job import Job

_LEADS_TO_SAMPLES = ("FSDIL_CACHE", "FSDIL_DATA")


def describe(job: Job) -> dict[str, Any]:
    """All that a process needs to build the method, as JSON types: no scenario, no domain."""
    return {
        "plugins": [str(file) for file in job.registry.files],
        "method": job.spec.method,
        "config": job.spec.config,
        "seed": job.spec.seed,
        "code": job.code["method"],
        "backbone": job.request.backbone,
        "weights": job.backbone.weights_hash,
        "device": str(job.backbone.device),
        "precision": job.spec.precision,
        "batch_size": job.backbone.batch_size,
        "deterministic": job.request.deterministic,
        "preset": job.stream.transform,
        "class_names": job.stream.class_names,
        "synonyms": job.stream.synonyms,
        "environment": environment(),
        "paths": module_paths(),
        "threads": torch.get_num_threads(),
        # Only for finding the backbone's weights; the method gets neither.
        "folder": str(Path.cwd()),
        "cache": str(cache_folder()),
    }


def environment() -> dict[str, str]:
    """This process's environment without what leads to samples."""
    return {k: v for k, v in os.environ.items() if k not in _LEADS_TO_SAMPLES} | {SEALED: "1"}


def module_paths() -> list[str]:
    """Where modules are found, whatever the working folder is."""
    return [str(Path(entry).absolute()) for entry in sys.path]
