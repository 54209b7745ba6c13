"""From wishes to cells: the run that each of them is, its folder, and how far that is.

All cells are identified in one process, so that what they share (a data set that is looked through,
weights that are hashed, code) is looked at once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from fsdil_bench.data.scenario import ScenarioId, ScenarioRequest
from fsdil_bench.data.streams import build_stream, load_stream
from fsdil_bench.errors import FsdilError
from fsdil_bench.plugins.code_hash import code_version
from fsdil_bench.plugins.descriptors import ScenarioInfo
from fsdil_bench.plugins.options import resolve
from fsdil_bench.plugins.registry import Registry
from fsdil_bench.runs.base_reuse import base_folder
from fsdil_bench.runs.job import Job, Loads, describe_backbone, identify, load_method_class

from .launchers.launcher import Resources
from .request import Sweep, Wish

#: Options that are not part of what is identified.
_HOW = ("keep_checkpoints", "sealed", "reuse_base", "workers", "batch_size", "deterministic")


@dataclass(frozen=True)
class Cell:
    """One run of a sweep. `base` is where its base domain is kept if runs share it."""

    key: str
    method: str
    scenario: str
    seed: int
    request: Mapping[str, Any]
    folder: Path
    resources: Resources = field(default_factory=Resources)
    domains: int = 0
    base: Path | None = None

    def __str__(self) -> str:
        return f"{self.method} on {self.scenario}, seed {self.seed}"

    @property
    def dataset(self) -> str:
        """The scenario without shots and variant."""
        return ScenarioId.parse(self.scenario).dataset


@dataclass(frozen=True)
class Plan:
    """The cells of a sweep. `blocked` are wishes that cannot be run here, with the reason;
    `planned` those for methods that nobody provides yet."""

    cells: tuple[Cell, ...]
    blocked: tuple[tuple[Wish, str], ...] = ()
    planned: tuple[Wish, ...] = field(default=())


def make_plan(sweep: Sweep, registry: Registry) -> Plan:
    """Identify every wish. A wrong name or option is an error, missing data blocks its cells."""
    for wish in sweep.wishes:
        _check_config(wish, registry)
    loads = _remembering_loads()
    out = Path(sweep.settings.out).absolute()
    cells: dict[str, Cell] = {}
    blocked: list[tuple[Wish, str]] = []
    for wish in sweep.wishes:
        try:
            cell = _cell(wish, out, registry, loads)
        except FsdilError as error:
            blocked.append(
                (wish, "\n".join(part for part in (error.message, error.remedy) if part))
            )
        else:
            cells.setdefault(cell.key, cell)
    return Plan(tuple(cells.values()), tuple(blocked), sweep.planned)


def _check_config(wish: Wish, registry: Registry) -> None:
    method = load_method_class(registry.method(wish.method))
    see = f"fsdil-bench list methods {wish.method}"
    resolve(method.Config, wish.options.get("config", {}), owner=f"method {wish.method}", see=see)
    if wish.options.get("backbone"):
        registry.backbone(wish.options["backbone"])


def _cell(wish: Wish, out: Path, registry: Registry, loads: Loads) -> Cell:
    options = dict(wish.options)
    if wish.resources.gpus and options.get("precision", "auto") == "auto":
        options["precision"] = _usual_on_a_gpu()
    what = {name: value for name, value in options.items() if name not in _HOW}
    job: Job = identify(
        wish.method, wish.scenario, seed=wish.seed, registry=registry, loads=loads, **what
    )
    job = replace(job, sealed=bool(options.get("sealed")))
    request = options | {
        "method": wish.method,
        "scenario": wish.scenario,
        "seed": wish.seed,
        # The same on every machine, or the run would get another id there.
        "precision": job.spec.precision,
        "workers": options.get("workers", wish.resources.cpus),
        "out": str(out),
        "plugins": [str(file) for file in registry.files],
    }
    return Cell(
        key=job.place.as_posix(),
        method=wish.method,
        scenario=wish.scenario,
        seed=wish.seed,
        request=request,
        folder=out / job.place,
        resources=wish.resources,
        domains=len(job.stream.domains),
        base=base_folder(job) if options.get("reuse_base") else None,
    )


def _usual_on_a_gpu() -> str:
    """What this machine's GPU takes by default; where it has none, what a recent one takes."""
    import torch

    from fsdil_bench.models.device import choose

    return choose("cuda", "auto")[1] if torch.cuda.is_available() else "bf16"


def _remembering_loads() -> Loads:
    """Looks at every data set, backbone and source file once."""
    build = _remember(build_stream, _stream_key)
    return Loads(
        stream=_remember(
            partial(load_stream, build=build),
            lambda scenario, registry, **request: json.dumps([scenario, request], default=str),
        ),
        backbone=_remember(describe_backbone, lambda info, name: name),
        code=_remember(code_version, str),
    )


def _stream_key(info: ScenarioInfo, request: ScenarioRequest) -> str:
    return f"{info.name} {request!r}"


def _remember(function: Callable[..., Any], key: Callable[..., str]) -> Callable[..., Any]:
    """Call `function` once per key; an error that a user can mend is remembered, too."""
    known: dict[str, tuple[Any, FsdilError | None]] = {}

    def call(*arguments: Any, **keywords: Any) -> Any:
        name = key(*arguments, **keywords)
        if name not in known:
            try:
                known[name] = (function(*arguments, **keywords), None)
            except FsdilError as error:
                known[name] = (None, error)
        result, problem = known[name]
        if problem is not None:
            raise problem
        return result

    return call
