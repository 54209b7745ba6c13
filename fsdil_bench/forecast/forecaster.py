"""Forecasts of many runs: what they share is looked up, rehearsed and counted once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from fsdil_bench.data.published.outline import outlined_stream
from fsdil_bench.data.scenario import Stream
from fsdil_bench.data.transforms import Transform, build_transform
from fsdil_bench.errors import DataError, RequestError
from fsdil_bench.models.backbone import Backbone
from fsdil_bench.plugins.code_hash import code_version
from fsdil_bench.plugins.descriptors import load_factory
from fsdil_bench.plugins.options import as_dict
from fsdil_bench.plugins.registry import Registry
from fsdil_bench.runs.job import load_method_class, method_settings
from fsdil_bench.runs.lookup import Lookup
from fsdil_bench.runs.request import RunRequest

from .calibration import this_machine
from .costs import RunCost, run_cost
from .hardware import THIS_MACHINE, Speed, find_gpu, gpu_speed
from .lines import Rehearsals, StreamSizes, rehearse_later, rehearse_twice
from .memo import machine, remembered
from .pass_cost import PassCost, pass_cost
from .rehearsal import Rehearsed, Sizes, Subject
from .tally import Peak, Work

#: Images per forward pass in rehearsals; how calls are grouped hardly matters.
_BATCH = 32


@dataclass(frozen=True)
class Scene:
    """Everything but the method: a stream and a backbone. `on_disk`: the images are here."""

    stream: Stream
    backbone: Backbone
    cost: PassCost
    transform: Transform
    on_disk: bool


@dataclass(frozen=True)
class RunForecast:
    """The cost of a run, and how fast it is done on the hardware that is asked for."""

    cost: RunCost
    speed: Speed
    request: RunRequest
    domains: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return self.cost.to_dict(self.speed) | {"seed": self.request.seed}


@dataclass
class Forecaster:
    """Forecasts runs on named hardware."""

    registry: Registry
    on: str = THIS_MACHINE
    say: Callable[[str], None] = lambda text: None
    lookup: Lookup = field(init=False)
    _scenes: dict[str, Scene] = field(default_factory=dict)
    _backbones: dict[str, tuple[Backbone, PassCost]] = field(default_factory=dict)
    _rehearsals: dict[str, Rehearsals] = field(default_factory=dict)
    _later: dict[str, Rehearsals] = field(default_factory=dict)
    _speeds: dict[str, Speed] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.on != THIS_MACHINE:
            find_gpu(self.on)
        self.lookup = Lookup(self.registry)

    def forecast(self, request: RunRequest) -> RunForecast:
        """The cost of a run."""
        info = self.registry.method(request.method)
        scenario = self.registry.scenario(request.scenario.dataset)
        name = request.backbone or scenario.default_backbone
        backbone = self.registry.backbone(name)
        if info.needs_text and not backbone.has_text:
            raise RequestError(
                f"method '{info.name}' needs a text tower, backbone '{backbone.name}' has none",
                "Choose another with --backbone; `fsdil-bench list backbones` shows them.",
            )
        config = method_settings(info, request.scenario.dataset, request.config)
        scene = self._scene(request, name)
        sizes = StreamSizes.of(scene.stream)
        subject = Subject(
            info, load_method_class(info), config, scene.backbone, scene.cost, scene.stream,
            request.batch_size or _BATCH,
        )  # fmt: skip
        transform = scene.transform
        cost = run_cost(
            self._rehearsed(subject, sizes),
            sizes,
            cost=scene.cost,
            side=transform.short_side,
            view=transform.spec.size,
            method=request.method,
            scenario=str(request.scenario),
            backbone=scene.backbone.name,
            published_sizes=not scene.on_disk,
        )
        domains = tuple(domain.name for domain in scene.stream.domains)
        return RunForecast(cost, self._speed(request, scene), request, domains)

    def _scene(self, request: RunRequest, backbone: str) -> Scene:
        asked = {k: v for k, v in request.to_dict().items() if k not in _NOT_OF_STREAM}
        key = f"{backbone} {asked}"
        if key not in self._scenes:
            on_disk = True
            try:
                stream = self.lookup.stream(request)
            except DataError:
                if request.data is not None or not _has_outline(self.registry, request):
                    raise
                stream, on_disk = outlined_stream(request, self.registry), False
            found, cost = self._backbone(backbone)
            transform = build_transform(stream.transform, found.image)
            self._scenes[key] = Scene(stream, found, cost, transform, on_disk)
        return self._scenes[key]

    def _backbone(self, name: str) -> tuple[Backbone, PassCost]:
        if name not in self._backbones:
            info = self.registry.backbone(name)
            if info.outline is not None:
                found: Backbone = load_factory(info.outline, f"backbone '{info.name}'")(name)
            else:
                found = self.lookup.backbone(info, name)
            self._backbones[name] = found, pass_cost(found)
        return self._backbones[name]

    def _rehearsed(self, subject: Subject, sizes: StreamSizes) -> Rehearsals:
        """Rehearsals for these sizes. Other numbers of shots share those of base and tests, unless
        the method sees base images in later domains, too."""
        stream = subject.stream
        about: list[Any] = [
            "rehearsal", machine(), subject.info.name, code_version(subject.info.factory),
            as_dict(subject.config), stream.class_names, stream.synonyms, stream.transform,
            subject.backbone.name, asdict(subject.cost), subject.batch_size, len(sizes.train) > 2,
        ]  # fmt: skip
        free = subject.info.exemplar_free
        known = str(about if free else [*about, sizes.shots])
        if known not in self._rehearsals:
            both = remembered(
                [*about, "twice", sizes.train[0], sizes.shots],
                lambda: self._twice(subject, sizes),
            )
            small, large = map(_rehearsed, both)
            self._rehearsals[known] = Rehearsals(small, large, free)
        found = self._rehearsals[known]
        if len(sizes.train) < 2 or found.large.sizes.shots == sizes.shots:
            return found
        later = f"{known} {sizes.shots}"
        if later not in self._later:
            other = remembered([*about, "later", sizes.shots], lambda: self._once(subject, sizes))
            self._later[later] = found.with_later(_rehearsed(other))
        return self._later[later]

    def _twice(self, subject: Subject, sizes: StreamSizes) -> list[dict[str, Any]]:
        self.say(f"rehearsing {subject.info.name} for {subject.stream.name}")
        found = rehearse_twice(subject, sizes)
        return [_plain(found.small), _plain(found.large)]

    def _once(self, subject: Subject, sizes: StreamSizes) -> dict[str, Any]:
        name = f"{subject.info.name} for {subject.stream.name}"
        self.say(f"rehearsing {name} with {sizes.shots} images in a later domain")
        return _plain(rehearse_later(subject, sizes))

    def _speed(self, request: RunRequest, scene: Scene) -> Speed:
        key = f"{request.device} {request.precision} {request.batch_size} {scene.stream.name} "
        key += f"{scene.backbone.name} {scene.transform.preset} {scene.on_disk}"
        if key not in self._speeds:
            if self.on != THIS_MACHINE:
                self._speeds[key] = gpu_speed(self.on, request.precision)
            else:
                self.say(f"measuring how fast {scene.backbone.name} is here")
                self._speeds[key] = this_machine(
                    scene.backbone, scene.cost, scene.stream, scene.transform,
                    device=request.device, precision=request.precision,
                    batch_size=request.batch_size, on_disk=scene.on_disk,
                )  # fmt: skip
        return self._speeds[key]


#: Fields of a request that do not change its stream.
_NOT_OF_STREAM = (
    "method", "backbone", "config", "workers", "device", "precision", "batch_size",
    "deterministic", "keep_checkpoints", "reuse_base", "sealed",
)  # fmt: skip


def _has_outline(registry: Registry, request: RunRequest) -> bool:
    info = registry.scenario(request.scenario.dataset)
    source = load_factory(info.source, f"scenario '{info.name}'") if info.source else None
    return source is not None and source.outline is not None


def _plain(found: Rehearsed) -> dict[str, Any]:
    """A rehearsal in plain JSON types."""
    plain = vars(found) | {
        "sizes": asdict(found.sizes),
        "work": [[*phase, asdict(work)] for phase, work in found.work.items()],
        "largest_batch": [[*phase, size] for phase, size in found.largest_batch.items()],
        "features": sorted(map(list, found.features)),
        "peak": asdict(found.peak),
    }
    return dict(plain)


def _rehearsed(plain: dict[str, Any]) -> Rehearsed:
    return Rehearsed(
        **plain
        | {
            "sizes": Sizes(**plain["sizes"]),
            "work": {(purpose, t): Work(**work) for purpose, t, work in plain["work"]},
            "largest_batch": {(purpose, t): size for purpose, t, size in plain["largest_batch"]},
            "features": frozenset((part, t) for part, t in plain["features"]),
            "peak": Peak(**plain["peak"]),
        }
    )
