"""From a scenario's id to the stream a run learns: built by its plugin, arranged, shots drawn."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from fsdil_bench.errors import DataError, FsdilError, PluginError, RequestError
from fsdil_bench.plugins.code_hash import code_version
from fsdil_bench.plugins.descriptors import ScenarioInfo, load_factory
from fsdil_bench.plugins.options import NoConfig, as_dict, resolve
from fsdil_bench.plugins.registry import Registry, load_registry

from .content_keys import ContentKeys
from .published.locations import find_data
from .scenario import (
    Samples,
    ScenarioRequest,
    Stream,
    arrange,
    check_stream,
    check_transform,
)
from .shots import draw_shots
from .stream_guard import check_allowed
from .stream_request import StreamRequest, check_arguments
from .validation import validation_stream

#: Set in the processes of a sealed run, in which no stream may be had.
SEALED = "FSDIL_SEALED"


#: The fields of a request that name files, which not every scenario uses.
_FILES = ("data", "names", "synonyms")


class UnusedError(RequestError):
    """A file was named that the scenario does not use: whoever named it expects that it counts."""

    def __init__(self, scenario: str, fields: Sequence[str]) -> None:
        options = " and ".join(f"--{name}" for name in fields)
        super().__init__(f"scenario '{scenario}' does not use {options}", "Leave it out.")
        self.fields = fields


class _WatchedRequest(ScenarioRequest):
    """A request that knows which of its fields were read."""

    read: set[str]

    def __getattribute__(self, name: str) -> Any:
        own = super().__getattribute__
        own("__dict__").setdefault("read", set()).add(name)
        return own(name)


def load_stream(scenario: str, *, registry: Registry | None = None, **options: Any) -> Stream:
    """The stream of a scenario such as `drawn-1shot` under a seed, as every method learns it.

    `options` are the fields of `StreamRequest`: `seed`, `data`, `order`, `base`, `base_limit`,
    `names`, `synonyms`, `scenario_options`, and `transform`, which replaces the scenario's own.
    """
    check_arguments(options, StreamRequest, load_stream)
    return open_stream(StreamRequest.of(scenario=scenario, **options), registry)


def open_stream(
    request: StreamRequest,
    registry: Registry | None = None,
    build: Callable[[ScenarioInfo, ScenarioRequest], Stream] | None = None,
    *,
    on_disk: bool = True,
) -> Stream:
    """The stream that a request asks for.

    `build` replaces `build_stream`: whoever needs many seeds and shots of a data set reads it once.
    One that needs no images says so (`on_disk`), and they are not looked for.
    """
    identity = request.scenario
    if SEALED in os.environ:
        raise PluginError(
            f"the stream '{identity}' was asked for inside a sealed run",
            "A method gets its images through `learn` and `predict` alone.",
        )
    check_allowed(str(identity))
    info = (registry or load_registry()).scenario(identity.dataset)
    if identity.variant and identity.variant not in info.all_variants:
        offered = ", ".join(f"@{variant}" for variant in info.all_variants)
        raise RequestError(
            f"scenario '{info.name}' has no variant '{identity.variant}'", f"It has: {offered}."
        )
    validating = info.splits_base(identity.variant)
    data = find_data(info, request.data) if info.needs_data and on_disk else request.data
    asked = ScenarioRequest(
        "" if validating else identity.variant,
        Path(data).expanduser() if data else None,
        Path(request.names) if request.names else None,
        Path(request.synonyms) if request.synonyms else None,
        scenario_settings(info, request.scenario_options),
    )
    if request.transform:
        check_transform(request.transform)  # before a large data set is read
    # For validation nothing but the base domain is needed.
    order = request.order[:1] if validating else request.order
    stream = arrange((build or build_stream)(info, asked), order, request.base)
    if validating:
        stream = validation_stream(stream)
    stream = replace(stream, transform=request.transform or stream.transform)
    check_stream(stream, identity.shots)
    return draw_shots(stream, identity.shots, request.seed, request.base_limit)


def scenario_settings(info: ScenarioInfo, given: Mapping[str, Any]) -> Any:
    """A scenario's own options, checked."""
    kind = load_factory(info.options, f"scenario '{info.name}'") if info.options else NoConfig
    see = f"fsdil-bench list scenarios {info.name}"
    return resolve(kind, given, owner=f"scenario {info.name}", see=see)


def build_stream(info: ScenarioInfo, request: ScenarioRequest) -> Stream:
    """What the scenario's plugin has: all domains, all images, no shots drawn yet."""
    build = load_factory(info.factory, f"scenario '{info.name}'")
    watched = _WatchedRequest(**vars(request))
    try:
        stream = build(watched)
    except FsdilError:
        raise
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # also sys.exit
        for file in (request.names, request.synonyms):
            if isinstance(error, RecursionError) and file and _too_deep(file):
                raise DataError(
                    f"'{file}' cannot be read: it is nested too deeply", "It must be a JSON object."
                ) from None
        raise PluginError(
            f"scenario '{info.name}' cannot be built: {type(error).__name__}: {error}",
            "--debug shows the traceback.",
        ) from error
    if not isinstance(stream, Stream):
        raise PluginError(f"scenario '{info.name}' built {type(stream).__name__}, not a Stream")
    unused = [name for name in _FILES if getattr(request, name) and name not in watched.read]
    if unused:
        raise UnusedError(info.name, unused)
    return _keyed(replace(stream, name=info.name), info, request)


def _too_deep(file: Path) -> bool:
    """Whether a JSON file has more brackets within brackets than Python can read."""
    with suppress(OSError, ValueError):
        try:
            json.loads(file.read_text(encoding="utf-8"))
        except RecursionError:
            return True
    return False


def _keyed(stream: Stream, info: ScenarioInfo, request: ScenarioRequest) -> Stream:
    """The stream with keys that no other scenario has, also where the plugin chose them.

    Such keys say how a picture is computed: that holds for this code under these options.
    """
    settings = {} if request.options is None else as_dict(request.options)
    made_by = json.dumps([code_version(info.factory), request.variant, settings], sort_keys=True)
    prefix = f"{info.name}-{hashlib.blake2b(made_by.encode(), digest_size=6).hexdigest()}/"

    def own(samples: Samples) -> Samples:
        if isinstance(samples.keys, ContentKeys):
            return samples
        return replace(samples, keys=tuple(prefix + key for key in samples.keys))

    domains = [replace(each, train=own(each.train), test=own(each.test)) for each in stream.domains]
    unseen = tuple((name, own(samples)) for name, samples in stream.unseen)
    return replace(stream, domains=tuple(domains), unseen=unseen)
