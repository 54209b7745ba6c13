"""From a scenario's id to the stream a run learns: built by its plugin, arranged, shots drawn."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fsdil_bench.errors import FsdilError, PluginError, RequestError
from fsdil_bench.plugins.code_hash import code_version
from fsdil_bench.plugins.descriptors import VALIDATION, ScenarioInfo, load_factory
from fsdil_bench.plugins.options import NoConfig, as_dict, resolve
from fsdil_bench.plugins.registry import Registry, load_registry

from .content_keys import ContentKeys
from .published.locations import find_data
from .scenario import (
    Samples,
    ScenarioId,
    ScenarioRequest,
    Stream,
    arrange,
    check_stream,
    check_transform,
)
from .shots import draw_shots
from .validation import validation_stream

#: Set in the processes of a sealed run, in which no stream may be had.
SEALED = "FSDIL_SEALED"


def load_stream(
    scenario: str,
    *,
    seed: int = 0,
    data: str | Path | None = None,
    order: Sequence[str] = (),
    base: str = "",
    base_limit: int | None = None,
    names: str | Path | None = None,
    synonyms: str | Path | None = None,
    scenario_options: Mapping[str, Any] | None = None,
    transform: str = "",
    registry: Registry | None = None,
    build: Callable[[ScenarioInfo, ScenarioRequest], Stream] | None = None,
) -> Stream:
    """The stream of a scenario such as `drawn-1shot` under a seed, as every method learns it.

    `transform` replaces the scenario's own preset of `data.transforms`. `build` stands in
    for `build_stream`: whoever needs many seeds and shots of a data set looks through it once.
    """
    if SEALED in os.environ:
        raise PluginError(
            f"the stream '{scenario}' was asked for inside a sealed run",
            "A method gets its images through `learn` and `predict` alone.",
        )
    identity = ScenarioId.parse(scenario)
    info = (registry or load_registry()).scenario(identity.dataset)
    if identity.variant and identity.variant not in info.all_variants:
        offered = ", ".join(f"@{variant}" for variant in info.all_variants)
        raise RequestError(
            f"scenario '{info.name}' has no variant '{identity.variant}'", f"It has: {offered}."
        )
    validating = identity.variant == VALIDATION and VALIDATION not in info.variants
    if info.needs_data:
        data = find_data(info, data)
    request = ScenarioRequest(
        "" if validating else identity.variant,
        Path(data).expanduser() if data else None,
        Path(names) if names else None,
        Path(synonyms) if synonyms else None,
        scenario_settings(info, scenario_options or {}),
    )
    if transform:
        check_transform(transform)  # before a large data set is looked through
    if validating:
        order = order[:1]  # nothing else than the base domain is needed
    stream = arrange((build or build_stream)(info, request), order, base)
    if validating:
        stream = validation_stream(stream)
    stream = replace(stream, transform=transform or stream.transform)
    check_stream(stream, identity.shots)
    return draw_shots(stream, identity.shots, seed, base_limit)


def scenario_settings(info: ScenarioInfo, given: Mapping[str, Any]) -> Any:
    """A scenario's own options, checked."""
    kind = load_factory(info.options, f"scenario '{info.name}'") if info.options else NoConfig
    see = f"fsdil-bench list scenarios {info.name}"
    return resolve(kind, given, owner=f"scenario {info.name}", see=see)


def build_stream(info: ScenarioInfo, request: ScenarioRequest) -> Stream:
    """What the scenario's plugin has: all domains, all images, no shots drawn yet."""
    build = load_factory(info.factory, f"scenario '{info.name}'")
    try:
        stream = build(request)
    except FsdilError:
        raise
    except Exception as error:
        raise PluginError(
            f"scenario '{info.name}' cannot be built: {type(error).__name__}: {error}",
            "--debug shows the traceback.",
        ) from error
    if not isinstance(stream, Stream):
        raise PluginError(f"scenario '{info.name}' built {type(stream).__name__}, not a Stream")
    return _keyed(replace(stream, name=info.name), info, request)


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
