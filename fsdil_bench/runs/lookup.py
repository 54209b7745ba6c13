"""Looking up what requests name: streams, backbones and the versions of code, each of them once.

Whoever has many requests shares one `Lookup`, so that a data set is read, weights are hashed and
code is parsed once for all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from fsdil_bench.data.scenario import ScenarioId, ScenarioRequest, Stream
from fsdil_bench.data.stream_request import StreamRequest
from fsdil_bench.data.streams import build_stream, open_stream
from fsdil_bench.errors import FsdilError, PluginError
from fsdil_bench.plugins.code_hash import code_version
from fsdil_bench.plugins.described import described_code
from fsdil_bench.plugins.descriptors import BackboneInfo, Factory, ScenarioInfo, load_factory
from fsdil_bench.plugins.registry import Registry

if TYPE_CHECKING:
    from fsdil_bench.models.backbone import Backbone


class Lookup:
    """Remembers what was found, and also errors that a user can fix."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._known: dict[tuple[str, str], Any] = {}

    def stream(self, request: StreamRequest) -> Stream:
        """The stream that a request asks for."""
        asked = [getattr(request, each.name) for each in fields(StreamRequest)]
        found: Stream = self._once(
            "stream", repr(asked), lambda: open_stream(request, self._registry, self._build)
        )
        return found

    def splits_base(self, scenario: ScenarioId) -> bool:
        """Whether a scenario is parts of a base domain (`ScenarioInfo.splits_base`)."""
        return self._registry.scenario(scenario.dataset).splits_base(scenario.variant)

    def backbone(self, info: BackboneInfo, name: str) -> Backbone:
        """The backbone `name`, described but not built."""
        found: Backbone = self._once("backbone", name, lambda: describe_backbone(info, name))
        return found

    def code(self, factory: Factory) -> str:
        """The version of the code behind a factory."""
        if described := described_code(factory):
            return described
        found: str = self._once("code", str(factory), lambda: code_version(factory))
        return found

    def _build(self, info: ScenarioInfo, request: ScenarioRequest) -> Stream:
        key = f"{info.name} {request!r}"
        found: Stream = self._once("all images", key, lambda: build_stream(info, request))
        return found

    def _once(self, kind: str, key: str, find: Callable[[], Any]) -> Any:
        if (kind, key) not in self._known:
            try:
                self._known[kind, key] = find()
            except FsdilError as error:
                self._known[kind, key] = error
        found = self._known[kind, key]
        if isinstance(found, FsdilError):
            raise found
        return found


def describe_backbone(info: BackboneInfo, name: str) -> Backbone:
    """The backbone `name`, described but not built."""
    describe = load_factory(info.factory, f"backbone '{info.name}'")
    try:
        found: Backbone = describe(name) if info.pattern else describe()
    except FsdilError:
        raise
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # also sys.exit
        raise PluginError(
            f"backbone '{name}' cannot be loaded: {type(error).__name__}: {error}",
            "--debug shows the traceback.",
        ) from error
    found.code = code_version(info.factory)
    return found
