"""What a plugin offers to be listed: cheap descriptors with a lazily imported factory.

A factory is the text `"package.module:name"` (imported only when a run needs it, so that
listing never pays for torch) or, in a single-file plugin, the object itself.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fsdil_bench.errors import PluginError

Factory = str | Callable[..., Any]

#: The version of the plugin interface. A plugin module may say which one it was written for
#: with `FSDIL_API = 1`.
API_VERSION = 1

#: The variant of every scenario that is made of its base domain alone.
VALIDATION = "validation"

# Names become folders and parts of a command line, so `..`, `/` and a number alone are none.
_NAME = r"[a-z][a-z0-9_.+-]{0,63}"
_NAME_OF_BACKBONE = r"[A-Za-z][A-Za-z0-9_.+:/-]{0,127}"  # it becomes no folder


@dataclass(frozen=True)
class MethodInfo:
    """A method that can be run: `factory` is a subclass of `Method`.

    `overrides` are config values that turn one class into another method (an ablation). `presets`
    are config values by data set; they win over those of the class.
    `exemplar_free=False` is for methods that use images of earlier domains, `keeps_features` for
    those whose state can hold the frozen feature of a single image. Boards mark both.
    """

    name: str
    summary: str
    factory: Factory
    paper: str = ""
    needs_text: bool = False
    exemplar_free: bool = True
    keeps_features: bool = False
    overrides: Mapping[str, Any] = field(default_factory=dict)
    presets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def presets_over(self, of_class: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
        """The presets of the method's class by data set, with its own laid over them."""
        names = dict.fromkeys((*of_class, *self.presets))
        return {name: {**of_class.get(name, {}), **self.presets.get(name, {})} for name in names}


@dataclass(frozen=True)
class ScenarioInfo:
    """A data set that can be streamed: `factory` maps a `ScenarioRequest` to a `Stream`.

    `shots` are the values listed to users; any K that the data allows can be run. `source` is a
    `DataSource` for `fsdil-bench data`, where the images are published.
    """

    name: str
    summary: str
    factory: Factory
    domains: tuple[str, ...] = ()
    classes: int | None = None
    shots: tuple[int, ...] = (1, 2, 4, 5, 8)
    variants: Mapping[str, str] = field(default_factory=dict)
    default_backbone: str = "tiny-clip"
    needs_data: bool = False
    options: Factory | None = None
    source: Factory | None = None

    @property
    def all_variants(self) -> dict[str, str]:
        """Its own variants, and the one that every scenario has (`fsdil_bench.data.validation`)."""
        return {VALIDATION: "parts of the base domain, to choose options on", **self.variants}

    def splits_base(self, variant: str) -> bool:
        """Whether a variant is parts of the base domain: no domain follows that could change."""
        return variant == VALIDATION and VALIDATION not in self.variants


@dataclass(frozen=True)
class BackboneInfo:
    """A vision-language model: `factory` is a function without arguments that returns a `Backbone`.

    With a `pattern` such as "<MODEL>:<weights>" it stands for a family: for every name of that
    form, which the factory is then called with. `example` is such a name, and `check`, a function
    of the name, says what is wrong with one before the data is read, if it can without torch.
    `outline`, a function of the name, returns the same `Backbone` with random weights, for
    forecasts where the weights are not on disk.
    """

    name: str
    summary: str
    factory: Factory
    has_text: bool = True
    pattern: str = ""
    example: str = ""
    check: Factory | None = None
    outline: Factory | None = None

    def covers(self, name: str) -> bool:
        """Whether `name` is this backbone, or one of this family."""
        if not self.pattern:
            return name == self.name
        fixed = re.split(r"<[^<>]+>", self.pattern)
        return re.fullmatch(".+".join(map(re.escape, fixed)), name) is not None


@dataclass(frozen=True)
class LauncherInfo:
    """A way to run the tasks of a sweep: `factory` maps a `LauncherSetup` to a `Launcher`.

    `extra` is the extra of fsdil-bench that it needs ("ray"), `options` a config class with the
    options that `--launcher-set` sets.
    """

    name: str
    summary: str
    factory: Factory
    extra: str = ""
    options: Factory | None = None


@dataclass(frozen=True)
class TrackerInfo:
    """Another program that shows runs: `factory` maps a `TrackedRun` to a `Tracker`.

    `modules` are what it imports and may be missing, `extra` is the extra of fsdil-bench that
    installs them ("mlflow").
    """

    name: str
    summary: str
    factory: Factory
    modules: tuple[str, ...] = ()
    extra: str = ""


def name_problem(kind: str, name: Any) -> str:
    """What is wrong with the name under which a plugin offers something; empty if nothing is."""
    pattern = _NAME_OF_BACKBONE if kind == "backbone" else _NAME
    if isinstance(name, str) and re.fullmatch(pattern, name):
        return ""
    letters = "letters" if kind == "backbone" else "lower-case letters"
    return (
        f"{kind} {name!r:.100} cannot have this name: use {letters}, digits and the characters "
        f"{'- _ . + : /' if kind == 'backbone' else '- _ . +'}, and begin with a letter"
    )


def load_factory(factory: Factory, owner: str) -> Any:
    """The object that a factory names; a broken module is reported with its owner's name."""
    if not isinstance(factory, str):
        return factory
    module, _, name = factory.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a module may also call sys.exit
        raise PluginError(
            f"{owner} cannot be loaded from '{factory}': {type(error).__name__}: {error}",
            "Fix or remove the plugin; `fsdil-bench list plugins` shows where it comes from.",
        ) from error
