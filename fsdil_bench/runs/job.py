"""From a request to a job: what exactly is asked for, with everything loaded that it needs.

`identify` finds out what a request asks for, and so the id of its run. `prepare` also places the
backbone on a device. Nothing is computed or written here; that is `fsdil_bench.runs.runner`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from fsdil_bench.cache.array_store import ArrayStore
from fsdil_bench.cache.folder import cache_folder, file_name_part
from fsdil_bench.data.published.locations import find_data
from fsdil_bench.data.scenario import Stream
from fsdil_bench.data.streams import scenario_settings
from fsdil_bench.errors import FsdilError, PluginError, RequestError
from fsdil_bench.plugins.descriptors import MethodInfo, load_factory
from fsdil_bench.plugins.options import as_dict, resolve
from fsdil_bench.plugins.registry import Registry
from fsdil_bench.progress import Progress
from fsdil_bench.records.identity import RunSpec, run_id, run_place

from .lookup import Lookup
from .request import RunRequest

if TYPE_CHECKING:
    from fsdil_bench.models.backbone import Backbone
    from fsdil_bench.plugins.method import Method

    from .pictures import Pictures


@dataclass(frozen=True)
class Job:
    """A run with everything loaded that it needs, and its identity.

    In `request` nothing is left open: backbone and precision are those of the run. `order_salt` is
    that of the sealed run which is to be repeated; a new run draws one.
    """

    request: RunRequest
    spec: RunSpec
    run_id: str
    code: dict[str, str]
    info: MethodInfo
    method_class: type[Method]
    config: Any
    stream: Stream
    backbone: Backbone
    registry: Registry
    order_salt: str = ""

    @property
    def place(self) -> str:
        """The run's folder, below the folder of all runs."""
        spec = self.spec
        sealed = self.request.sealed
        return run_place(spec.scenario, spec.method, spec.seed, self.run_id, sealed=sealed)

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
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # also sys.exit
            raise PluginError(
                f"method '{self.spec.method}' cannot be built: {type(error).__name__}: {error}",
                "The traceback is in the run's log.txt; --debug shows it here.",
            ) from error

    def pictures(self, progress: Progress) -> Pictures:
        """The images of the stream, as the backbone takes them."""
        from fsdil_bench.data.transforms import build_transform

        from .pictures import Pictures

        transform = build_transform(self.stream.transform, self.backbone.image)
        workers = self.request.workers
        return Pictures(
            self.stream, self.backbone, transform, cache_folder(), progress, workers=workers
        )


def prepare(request: RunRequest, registry: Registry) -> Job:
    """Check a request and load what it needs; nothing is computed or written yet.

    For a sealed run, the plugin that offers the method is not imported here.
    """
    if request.profile and request.sealed:
        raise RequestError(
            "a sealed run cannot be profiled: its work is done in other processes",
            "Leave out --sealed or --profile.",
        )
    if request.compile:
        from fsdil_bench.models.compiling import require_compiler

        require_compiler()
    if request.sealed:
        from .sealed.server import shared_server

        shared_server()  # it gets ready while this process prepares the rest
        if any(plugin.third_party for plugin in registry.plugins):
            from .sealed.plugins import sealed_registry

            registry = sealed_registry(request, registry)
    if request.track:
        from .tracking import check_trackers

        check_trackers(request.track, registry, sealed=request.sealed)
    job = identify(request, registry)

    from fsdil_bench.models.device import choose

    model = job.backbone
    place, precision = choose(request.device, job.spec.precision)
    # What the embedding of a text depends on: weights, the code around them and the tokenizer.
    made_by = f"{model.weights_hash}/{model.code}/{model.tokenizer_version}"
    version = hashlib.sha256(made_by.encode()).hexdigest()[:16]
    texts = ArrayStore(cache_folder() / f"texts-{file_name_part(model.name)}-{version}.sqlite")
    model.place(
        place,
        precision,
        texts,
        job.stream.class_names,
        request.batch_size,
        request.checkpointing,
        request.compile,
    )
    return job


def identify(request: RunRequest, registry: Registry, lookup: Lookup | None = None) -> Job:
    """Check a request and find out what exactly it asks for, and so its id.

    A given precision is not checked: the run may be meant for another machine.
    """
    lookup = lookup or Lookup(registry)
    request = _with_backbone(request, registry)
    info = registry.method(request.method)
    stream = lookup.stream(request)

    # Only from here on is torch needed: most of what can be wrong with a request is said by now.
    from fsdil_bench.models.device import choose

    method_class = load_method_class(info)
    config = method_settings(info, request.scenario.dataset, request.config)
    if request.precision == "auto":
        request = replace(request, precision=choose(request.device, "auto")[1])
    backbone = lookup.backbone(registry.backbone(request.backbone), request.backbone)
    scenario = registry.scenario(request.scenario.dataset)
    spec = RunSpec(
        method=request.method,
        config=as_dict(config),
        scenario=str(request.scenario),
        seed=request.seed,
        backbone=backbone.name,
        precision=request.precision,
        order=tuple(domain.name for domain in stream.domains),
        base_limit=request.base_limit,
        scenario_options=as_dict(scenario_settings(scenario, request.scenario_options)),
    )
    code = {
        "method": lookup.code(info.factory),
        "scenario": lookup.code(scenario.factory),
        "backbone": backbone.code,
    }
    identity = run_id(spec, stream=stream.digest(), weights=backbone.weights_hash, code=code)
    return Job(
        request, spec, identity, code, info, method_class, config, stream, backbone, registry
    )


def _with_backbone(request: RunRequest, registry: Registry) -> RunRequest:
    """The request with its backbone named, after the checks that need neither torch nor images."""
    method = registry.method(request.method)
    scenario = registry.scenario(request.scenario.dataset)
    name = request.backbone or scenario.default_backbone
    info = registry.backbone(name)
    if method.needs_text and not info.has_text:
        raise RequestError(
            f"method '{method.name}' needs a text tower, backbone '{info.name}' has none",
            "Choose another with --backbone; `fsdil-bench list backbones` shows them.",
        )
    if scenario.needs_data:
        find_data(scenario, request.data)  # without images nobody needs weights
    if info.check is not None:
        load_factory(info.check, f"backbone '{info.name}'")(name)
    return replace(request, backbone=name)


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
    """A method's options on a data set: its preset there, those of its variant, then `config`."""
    method_class = load_method_class(info)
    return resolve(
        method_class.Config,
        info.presets_over(method_class.presets).get(dataset, {}),
        info.overrides,
        config,
        owner=f"method {info.name}",
        see=f"fsdil-bench list methods {info.name}",
    )
