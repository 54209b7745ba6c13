"""From a request to a job: what exactly is asked for, with everything loaded that it needs.

`identify` finds out what a request asks for, and so the id of its run, `prepare` also places the
backbone on a device. Nothing is computed or written here; that is `fsdil_bench.runs.runner`.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fsdil_bench.cache.array_store import ArrayStore
from fsdil_bench.cache.folder import cache_folder, file_name_part
from fsdil_bench.data.published.locations import find_data
from fsdil_bench.data.scenario import ScenarioId, Stream
from fsdil_bench.data.streams import load_stream, scenario_settings
from fsdil_bench.errors import FsdilError, PluginError, RequestError, unknown
from fsdil_bench.plugins.code_hash import code_version
from fsdil_bench.plugins.descriptors import BackboneInfo, Factory, MethodInfo, load_factory
from fsdil_bench.plugins.options import as_dict, resolve
from fsdil_bench.plugins.registry import Registry
from fsdil_bench.progress import Progress
from fsdil_bench.records.identity import RunSpec, run_id

if TYPE_CHECKING:
    from fsdil_bench.models.backbone import Backbone
    from fsdil_bench.plugins.method import Method

    from .pictures import Pictures

#: At the end of the name of a sealed run's folder.
SEALED_SUFFIX = "-sealed"


@dataclass(frozen=True)
class Job:
    """A run with everything loaded that it needs, and its identity."""

    spec: RunSpec
    run_id: str
    code: dict[str, str]
    info: MethodInfo
    method_class: type[Method]
    config: Any
    stream: Stream
    backbone: Backbone
    registry: Registry
    workers: int | None = None
    backbone_request: str = ""
    sealed: bool = False
    deterministic: bool = False

    @property
    def place(self) -> Path:
        """The run's folder, below the folder of all runs."""
        name = f"seed{self.spec.seed}-{self.run_id}" + (SEALED_SUFFIX if self.sealed else "")
        return Path(self.spec.scenario.replace("@", "-at-"), self.spec.method, name)

    def build_method(self) -> Method:
        """The method, before it has learned anything."""
        from fsdil_bench.plugins.method import Context
        from fsdil_bench.seeds import seed_everything

        seed_everything(self.spec.seed, "build")
        stream = self.stream
        context = Context(
            self.config, self.backbone, stream.class_names, stream.synonyms, self.spec.seed
        )
        try:
            return self.method_class(context)
        except FsdilError:
            raise
        except Exception as error:
            raise PluginError(
                f"method '{self.spec.method}' cannot be built: {type(error).__name__}: {error}",
                "The traceback is in the run's log.txt; --debug shows it here.",
            ) from error

    def pictures(self, progress: Progress) -> Pictures:
        """The images of the stream, as the backbone takes them."""
        from fsdil_bench.data.transforms import build_transform

        from .pictures import Pictures

        transform = build_transform(self.stream.transform, self.backbone.image)
        return Pictures(
            self.stream, self.backbone, transform, cache_folder(), progress, workers=self.workers
        )


def prepare(
    method: str,
    scenario: str,
    *,
    workers: int | None = None,
    device: str = "auto",
    precision: str = "auto",
    batch_size: int | None = None,
    deterministic: bool = False,
    **request: Any,
) -> Job:
    """Check a request and load what it needs; nothing is computed or written yet.

    `request` are the further arguments of `identify`. `workers` threads decode and augment images
    (by default one per processor, up to a limit; 0 for none). `batch_size` images go through a
    frozen or trained tower at a time (by default as many as suit the device). `deterministic` asks
    torch for the same bits every time. Like the device, none of them is part of what identifies the
    run.
    """
    check_arguments(request, prepare, identify)
    if batch_size is not None and batch_size < 1:
        raise RequestError(f"a batch size of {batch_size} is too small", "Give at least 1.")
    job = identify(method, scenario, device=device, precision=precision, **request)

    from fsdil_bench.models.device import choose

    model = job.backbone
    place, precision = choose(device, job.spec.precision)
    # What a text's embedding follows from: weights, the code around them and the tokenizer.
    made_by = f"{model.weights_hash}/{model.code}/{model.tokenizer_version}"
    version = hashlib.sha256(made_by.encode()).hexdigest()[:16]
    texts = ArrayStore(cache_folder() / f"texts-{file_name_part(model.name)}-{version}.sqlite")
    model.place(place, precision, texts, job.stream.class_names, batch_size)
    return replace(job, workers=workers, deterministic=deterministic)


def identify(
    method: str,
    scenario: str,
    *,
    registry: Registry,
    seed: int = 0,
    backbone: str = "",
    config: Mapping[str, Any] | None = None,
    data: str | Path | None = None,
    order: Sequence[str] = (),
    base: str = "",
    base_limit: int | None = None,
    names: str | Path | None = None,
    synonyms: str | Path | None = None,
    scenario_options: Mapping[str, Any] | None = None,
    transform: str = "",
    device: str = "auto",
    precision: str = "auto",
    loads: Loads | None = None,
) -> Job:
    """Check a request and find out what exactly it asks for, and so its id.

    A given precision is believed: the run may be meant for another machine. `loads` is how streams,
    backbones and code are looked at; whoever has many requests shares what they have in common.
    """
    loads = loads or Loads()
    scenario_id = ScenarioId.parse(scenario)
    info = registry.method(method)
    scenario_info = registry.scenario(scenario_id.dataset)
    backbone = backbone or scenario_info.default_backbone
    backbone_info = registry.backbone(backbone)
    if info.needs_text and not backbone_info.has_text:
        raise RequestError(
            f"method '{method}' needs a text tower, backbone '{backbone_info.name}' has none",
            "Choose another with --backbone; `fsdil-bench list backbones` shows them.",
        )
    if scenario_info.needs_data:
        find_data(scenario_info, data)  # without images nobody needs weights
    if backbone_info.check is not None:
        load_factory(backbone_info.check, f"backbone '{backbone_info.name}'")(backbone)
    stream = loads.stream(
        scenario, seed=seed, data=data, order=order, base=base, base_limit=base_limit,
        names=names, synonyms=synonyms, scenario_options=scenario_options, transform=transform,
        registry=registry,
    )  # fmt: skip

    # Only from here on is torch needed: most of what can be wrong with a request is said by now.
    from fsdil_bench.models.device import choose

    method_class = load_method_class(info)
    settings = method_settings(info, scenario_id.dataset, config or {})
    if precision == "auto":
        precision = choose(device, precision)[1]
    model = loads.backbone(backbone_info, backbone)
    spec = RunSpec(
        method=method,
        config=as_dict(settings),
        scenario=str(scenario_id),
        seed=seed,
        backbone=model.name,
        precision=precision,
        order=tuple(domain.name for domain in stream.domains),
        base_limit=base_limit,
        scenario_options=as_dict(scenario_settings(scenario_info, scenario_options or {})),
    )
    code = {
        "method": loads.code(info.factory),
        "scenario": loads.code(scenario_info.factory),
        "backbone": model.code,
    }
    identity = run_id(spec, stream=stream.digest(), weights=model.weights_hash, code=code)
    return Job(
        spec, identity, code, info, method_class, settings, stream, model, registry,
        backbone_request=backbone,
    )  # fmt: skip


def describe_backbone(info: BackboneInfo, name: str) -> Backbone:
    """The backbone `name`, described but not built."""
    describe = load_factory(info.factory, f"backbone '{info.name}'")
    try:
        found: Backbone = describe(name) if info.pattern else describe()
    except FsdilError:
        raise
    except Exception as error:
        raise PluginError(
            f"backbone '{name}' cannot be loaded: {type(error).__name__}: {error}",
            "--debug shows the traceback.",
        ) from error
    found.code = code_version(info.factory)
    return found


def load_method_class(info: MethodInfo) -> Any:
    """The class behind a method's descriptor."""
    from fsdil_bench.plugins.method import Method

    loaded = load_factory(info.factory, f"method '{info.name}'")
    if not (isinstance(loaded, type) and issubclass(loaded, Method)):
        raise PluginError(
            f"the factory of method '{info.name}' is {loaded!r}, not a subclass of Method"
        )
    return loaded


def method_settings(info: MethodInfo, dataset: str, config: Mapping[str, Any]) -> Any:
    """A method's options on a data set: its preset there, what sets a variant apart, `config`."""
    method_class = load_method_class(info)
    return resolve(
        method_class.Config,
        method_class.presets.get(dataset, {}),
        info.overrides,
        config,
        owner=f"method {info.name}",
        see=f"fsdil-bench list methods {info.name}",
    )


def check_arguments(given: Iterable[str], *functions: Callable[..., Any]) -> None:
    """Refuse names that none of the functions takes, each of which passes on what it does not know
    to the next."""
    taken = [inspect.signature(function).parameters.values() for function in functions]
    known = dict.fromkeys(p.name for each in taken for p in each if p.kind is not p.VAR_KEYWORD)
    for name in given:
        if name not in known:
            raise unknown(f"argument of {functions[0].__name__}:", name, known)


@dataclass(frozen=True)
class Loads:
    """How the parts of a request are looked at; with memories, where there are many requests."""

    stream: Callable[..., Stream] = load_stream
    backbone: Callable[[BackboneInfo, str], Backbone] = describe_backbone
    code: Callable[[Factory], str] = code_version
