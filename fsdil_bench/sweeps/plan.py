"""From the runs that a sweep asks for to cells: the identity, the folder and the size of each run.

All cells are identified in one process, so that what they share (a data set that is read, weights
that are hashed, code) is looked up once.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fsdil_bench.errors import FsdilError
from fsdil_bench.plugins.options import resolve
from fsdil_bench.plugins.registry import Registry
from fsdil_bench.runs.base_reuse import base_folder
from fsdil_bench.runs.job import identify, load_method_class
from fsdil_bench.runs.lookup import Lookup
from fsdil_bench.runs.request import RunRequest

from .launchers.launcher import Resources
from .orders import with_order
from .request import Sweep, SweepRun, named


@dataclass(frozen=True)
class Cell:
    """One run of a sweep, identified.

    `key` is its folder below `out`, and so the same in every sweep. `domains` is their number,
    `base` the folder of the base domain if runs share it, `order_number` the number of its order
    if there are several, `asked_precision` what the sweep says where the request has what it means
    here.
    """

    key: str
    request: RunRequest
    out: Path
    plugins: tuple[str, ...] = ()
    resources: Resources = field(default_factory=Resources)
    domains: int = 0
    base: Path | None = None
    order_number: int | None = None
    asked_precision: str = "auto"

    def __str__(self) -> str:
        number = self.order_number
        return str(self.request) + (f", order {number}" if number is not None else "")

    @property
    def folder(self) -> Path:
        """The folder of the run."""
        return self.out / self.key

    def arguments(self) -> dict[str, Any]:
        """The arguments of `fsdil_bench.run` for it, as plain JSON types."""
        return self.request.to_dict() | {"out": str(self.out), "plugins": list(self.plugins)}

    def to_dict(self) -> dict[str, Any]:
        """What names the run, as plain JSON types."""
        return {"key": self.key, **named(self.request)}


@dataclass(frozen=True)
class Plan:
    """The cells of a sweep. `blocked` are runs that are not possible here, with the reason;
    `planned` those of methods that no plugin provides yet."""

    cells: tuple[Cell, ...]
    blocked: tuple[tuple[SweepRun, str], ...] = ()
    planned: tuple[SweepRun, ...] = field(default=())


def make_plan(sweep: Sweep, registry: Registry) -> Plan:
    """Identify every run. A wrong name or option is an error, missing data blocks its cells."""
    for run in sweep.runs:
        _check_options(run.request, registry)
    lookup = Lookup(registry)
    out = Path(sweep.settings.out).absolute()
    cells: dict[str, Cell] = {}
    blocked: list[tuple[SweepRun, str]] = []
    for run in [with_order(run, lookup) for run in sweep.runs]:
        try:
            cell = _cell(run, out, registry, lookup)
        except FsdilError as error:
            blocked.append((run, "\n".join(part for part in (error.message, error.remedy) if part)))
        else:
            cells.setdefault(cell.key, cell)
    return Plan(tuple(cells.values()), tuple(blocked), sweep.planned)


def _check_options(request: RunRequest, registry: Registry) -> None:
    method = load_method_class(registry.method(request.method))
    see = f"fsdil-bench list methods {request.method}"
    resolve(method.Config, request.config, owner=f"method {request.method}", see=see)
    if request.backbone:
        registry.backbone(request.backbone)


def _cell(run: SweepRun, out: Path, registry: Registry, lookup: Lookup) -> Cell:
    request, resources = run.request, run.resources
    if request.workers is None:
        request = replace(request, workers=resources.cpus)
    if resources.gpus and request.precision == "auto":
        request = replace(request, precision=_usual_on_a_gpu())
    job = identify(request, registry, lookup)
    return Cell(
        key=job.place,
        # The same precision on every machine, or the run would get a different id there.
        request=replace(request, precision=job.spec.precision),
        out=out,
        plugins=tuple(str(file) for file in registry.files),
        resources=resources,
        domains=len(job.stream.domains),
        base=base_folder(job) if request.reuse_base else None,
        order_number=run.order.number if run.order else None,
        asked_precision=run.request.precision,
    )


def _usual_on_a_gpu() -> str:
    """What this machine's GPU takes by default; where it has none, what a recent one takes."""
    import torch

    from fsdil_bench.models.device import choose

    return choose("cuda", "auto")[1] if torch.cuda.is_available() else "bf16"
