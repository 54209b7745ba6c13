"""What a process of a sealed run is told: all that a method is built from, no way to samples."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from fsdil_bench.cache.folder import cache_folder
from fsdil_bench.plugins.registry import Plugin, Registry
from fsdil_bench.system import landlock

from .server import environment, module_paths

if TYPE_CHECKING:
    from fsdil_bench.runs.job import Job


def describe(job: Job) -> dict[str, Any]:
    """All that a process needs to build the method, as JSON types: no scenario, no domain."""
    return {
        **surroundings(job.registry),
        **_plugins(job),
        "method": job.spec.method,
        "config": job.spec.config,
        "seed": job.spec.seed,
        "code": job.code["method"],
        "backbone": job.request.backbone,
        "weights": job.backbone.weights_hash,
        "device": str(job.backbone.device),
        "precision": job.spec.precision,
        "batch_size": job.backbone.batch_size,
        "checkpointing": job.request.checkpointing,
        "compile": job.request.compile,
        "deterministic": job.request.deterministic,
        "preset": job.stream.transform,
        "libraries": sorted(job.method_class.libraries),
        "class_names": job.stream.class_names,
        "synonyms": job.stream.synonyms,
        # Only for finding the backbone's weights; the method gets it no more.
        "cache": str(cache_folder()),
    }


def surroundings(registry: Registry) -> dict[str, Any]:
    """What every process needs before it imports a plugin."""
    return {
        "files": [str(file) for file in registry.files],
        "environment": environment(),
        "paths": module_paths(),
        "threads": torch.get_num_threads(),
        "folder": str(Path.cwd()),
        "landlock": landlock.version() > 0,
    }


def sealed_by() -> str:
    """What keeps the method from the rest of the machine here."""
    return ", ".join(["processes", "audit", *(["landlock"] if landlock.version() else [])])


def third_parties(job: Job) -> dict[str, Plugin]:
    """The plugins of third parties that offer the method, the scenario and the backbone."""
    backbone = job.registry.backbone(job.request.backbone).name
    named = {
        "method": job.spec.method,
        "scenario": job.request.scenario.dataset,
        "backbone": backbone,
    }
    found = {kind: job.registry.origin(kind, name) for kind, name in named.items()}
    return {kind: plugin for kind, plugin in found.items() if plugin and plugin.third_party}


def _plugins(job: Job) -> dict[str, Any]:
    """Which plugins a process imports, and which packages it may not import."""
    found = third_parties(job)
    needed = [found[kind] for kind in ("method", "backbone") if kind in found]
    roots = {_root(plugin) for plugin in needed}
    scenario = _root(found["scenario"]) if "scenario" in found else ""
    return {
        "plugins": [plugin.key for plugin in needed],
        "own_backbone": "backbone" not in found,
        "refused": [scenario] if scenario and scenario not in roots else [],
    }


def _root(plugin: Plugin) -> str:
    """The top package of an installed plugin; empty for a file."""
    return plugin.module.partition(":")[0].partition(".")[0]
