"""The base domain, learned once for all numbers of shots.

Runs that differ in K alone learn the same base domain from the same images with the same seeds, so
its checkpoint can be shared: `run --reuse-base`. The record says which run learned it.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from fsdil_bench.cache.folder import cache_folder
from fsdil_bench.records.identity import SEALED_SUFFIX, run_id

if TYPE_CHECKING:
    from .job import Job
    from .run_folder import RunFolder

_ORIGIN = "origin.txt"


def base_folder(job: Job) -> Path:
    """Where the base domain of a run is kept; the same for all K."""
    identity = replace(job.request.scenario, shots=1)
    spec = replace(job.spec, scenario=f"base of {identity}", order=job.spec.order[:1])
    base = replace(job.stream, domains=job.stream.domains[:1])
    key = run_id(spec, stream=base.digest(), weights=job.backbone.weights_hash, code=job.code)
    # A sealed run must not start from what an ordinary one has learned.
    return cache_folder() / "bases" / (key + SEALED_SUFFIX if job.request.sealed else key)


def keep_base(job: Job, folder: RunFolder) -> None:
    """Keep the base domain that this run has just learned."""
    place = base_folder(job)
    draft = place.with_name(f"{place.name}.{os.getpid()}.tmp")
    try:
        shutil.copytree(folder.path / "domain-0", draft)
        (draft / _ORIGIN).write_text(job.run_id, encoding="utf-8")
        draft.rename(place)
    except OSError:  # another run has kept it meanwhile, or the disk is full: nothing is lost
        shutil.rmtree(draft, ignore_errors=True)


def is_kept(place: Path) -> bool:
    """Whether a folder of `base_folder` holds a base domain."""
    return (place / _ORIGIN).is_file()


def take_base(job: Job, folder: RunFolder) -> None:
    """Start from a base domain that an earlier run has learned, if there is one."""
    place, own = base_folder(job), folder.path / "domain-0"
    if folder.finished_domains() or not is_kept(place):
        return
    draft = own.with_suffix(".tmp")
    shutil.rmtree(draft, ignore_errors=True)
    try:
        shutil.copytree(place, draft)
    except OSError:  # the cache was cleared meanwhile: the run learns its base itself
        shutil.rmtree(draft, ignore_errors=True)
        return
    shutil.rmtree(own, ignore_errors=True)
    draft.rename(own)


def base_origin(folder: RunFolder) -> str | None:
    """The id of the run that learned this run's base domain, if it was another one."""
    with suppress(OSError):
        return (folder.path / "domain-0" / _ORIGIN).read_text(encoding="utf-8")
    return None
