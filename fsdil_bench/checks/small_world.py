"""The small world that methods are checked on: a small part of a scenario, and short runs in it.

The harness' own parts do the work (shots, views, seeds, backbone). Only the loop over domains is
written again, because checks look at what happens between its steps. Runs are short: options that
say how long to train are lowered, since no check asks how good a method is.
"""

from __future__ import annotations

import copy
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import partial
from typing import Any

import torch

from fsdil_bench.data.scenario import Samples, Stream
from fsdil_bench.data.stream_guard import no_streams
from fsdil_bench.errors import FsdilError
from fsdil_bench.plugins.method import Context, Method, RouterMethod, State
from fsdil_bench.plugins.registry import Registry
from fsdil_bench.progress import Progress
from fsdil_bench.runs.job import Job, prepare
from fsdil_bench.runs.lookup import describe_backbone
from fsdil_bench.runs.request import RunRequest
from fsdil_bench.runs.self_report import self_report
from fsdil_bench.runs.served_views import served
from fsdil_bench.runs.views import Batch, TrainDomain
from fsdil_bench.seeds import numpy_generator, seed_everything

from .after_domain import AfterDomain
from .finding import CheckError
from .optimizer_steps import optimizer_steps
from .process_state import ProcessState, own_modules, seeding
from .small_stream import WorldSize, small_stream
from .watched_domain import ServedData, WatchedDomain

Options = Mapping[str, Any]

SCENARIO = "drawn-2shot"
_SEED = 0
#: Last words in the names of options that say how long to train.
TRAINING = {"steps", "epochs", "iterations"}
_LENGTHS = TRAINING | {"views"}
_SHORT = 2


class WatchedRun:
    """A whole run that was watched."""

    def __init__(self, world: SmallWorld) -> None:
        self.seen = ServedData()
        world.build()  # what importing a library changes is not the method's doing
        world.changed.clear()
        self.method = world.build()
        self.outcomes: list[AfterDomain] = []
        self.returned: list[Any] = []  # by learn
        self.trained: list[tuple[int, int]] = []  # numbers in each domain: reported, and changed
        self.moved = False  # whether an optimizer has made any number another one
        for t in range(world.size.domains):
            with optimizer_steps() as stepped:
                self.returned.append(world.learn(self.method, t, seen=self.seen))
            reported = self_report(self.method).trained_parameters
            self.trained.append((reported, stepped.numbers()))
            self.moved = self.moved or stepped.moved()
            del stepped
            self.outcomes.append(world.outcome(self.method, t))


class SmallWorld:
    """One method in a small world, and ways to run it there."""

    def __init__(self, job: Job, size: WorldSize, given: Options, progress: Progress) -> None:
        self.size = replace(
            size,
            domains=min(size.domains, len(job.stream.domains)),
            classes=min(size.classes, len(job.stream.class_names)),
        )
        self.progress = progress
        self.changed: dict[str, str] = {}  # what the method changed around it, and in which call
        self.lowered = _lowered(job.config, given)
        self.full = job.config
        self.job = replace(job, config=replace(job.config, **self.lowered))
        self.pictures = self.job.pictures(Progress())
        self.model = job.backbone.model  # built now, before a method can change torch's settings
        # Features are cached, so that many tests cost nothing; images have to be encoded.
        self._tests = 3 if "images" in job.method_class.inputs else 20
        self._batches: dict[tuple[WorldSize, int], Batch] = {}
        self._streams: dict[WorldSize, Stream] = {}
        self._watched: WatchedRun | None = None
        self._unwatchable = ""

    @property
    def watched(self) -> WatchedRun:
        """The run that most checks look at; if it fails, it is not tried again."""
        if self._unwatchable:
            raise CheckError(
                "could not be checked, because a plain run fails",
                f"Fix this first: {self._unwatchable}",
            )
        if self._watched is None:
            try:
                self._watched = WatchedRun(self)
            except CheckError as error:
                self._unwatchable = error.found
                raise
        return self._watched

    def pristine_model(self) -> torch.nn.Module:
        """The backbone's model, built once more."""
        return self.job.backbone._build()

    def kept_stream(self) -> Stream:
        """The stream that the watched run went through."""
        return self._stream(self.size)

    def untouched_stream(self, size: WorldSize | None = None) -> Stream:
        """A stream that no method has seen."""
        return small_stream(self.job.stream, size or self.size, self._tests)

    def on(self, device: torch.device, precision: str) -> SmallWorld:
        """The same world where a method computes on another device.

        Features and texts come from this one, so that methods begin with the same numbers and
        nothing that another device computed is kept in the cache.
        """
        job = self.job
        info = job.registry.backbone(job.request.backbone)
        backbone = describe_backbone(info, job.request.backbone)
        backbone.place(device, precision, None, job.stream.class_names)
        if backbone.has_text:
            backbone.ask_for_texts(job.backbone.encode_text)
        other = copy.copy(self)
        other.job = replace(job, backbone=backbone)
        other.pictures = copy.copy(self.pictures)
        other.pictures.backbone = backbone
        other.pictures.features = self.pictures.features  # type: ignore[method-assign]
        other.model, other.changed, other._watched = backbone.model, {}, None
        other._batches, other._streams = {}, {}
        return other

    def close(self) -> None:
        """Release the caches."""
        self.pictures.close()

    def build(
        self, size: WorldSize | None = None, options: Options | None = None, seed: int = _SEED
    ) -> Method:
        """A fresh method."""
        stream = self._stream(size or self.size)
        with self.calling("building it"):
            config = replace(self.job.config, **(options or {}))
            context = Context(config, self.job.backbone, stream.class_names, stream.synonyms, seed)
            seed_everything(seed, "build")
            return self.job.method_class(context)

    def learn(
        self,
        method: Method,
        t: int,
        *,
        size: WorldSize | None = None,
        seed: int = _SEED,
        seen: ServedData | None = None,
    ) -> Any:
        """Let the method learn domain t; returns what `learn` returned."""
        stream = self._stream(size or self.size)
        seen = seen or ServedData()

        def own(i: int, earlier: tuple[TrainDomain, ...] | None) -> TrainDomain:
            return TrainDomain(
                i, stream.domains[i].train, stream.class_names, self.pictures, (seed, t),
                Progress(), earlier,
            )  # fmt: skip

        keeps = not self.job.info.exemplar_free
        domain = own(t, tuple(own(i, ()) for i in range(t)) if keeps else None)
        seed_everything(seed, "learn", t)
        watched = served(domain, partial(WatchedDomain, seen=seen))
        with watched as view, self.calling(f"learn (domain {t + 1})"):
            returned = method.learn(view)
        domain.close()
        self.pictures.forget(stream.domains[t].train)
        return returned

    def outcome(
        self, method: Method, t: int, size: WorldSize | None = None, seed: int = _SEED
    ) -> AfterDomain:
        """The method as it is after domain t."""
        classes, domains = self.predict(method, self.tests(t, size), t, seed)
        return AfterDomain(self.state_of(method), classes, domains)

    def outcomes(
        self, size: WorldSize | None = None, options: Options | None = None, seed: int = _SEED
    ) -> Iterator[AfterDomain]:
        """A run, domain by domain; it stops where no further outcome is asked for."""
        size = replace(size, domains=self.size.domains) if size else self.size
        method = self.build(size, options, seed)
        for t in range(size.domains):
            self.learn(method, t, size=size, seed=seed)
            yield self.outcome(method, t, size, seed)

    def predict(self, method: Method, batch: Batch, t: int, seed: int = _SEED) -> tuple[Any, Any]:
        """Classes and, of a router, domains, as they come from the method."""
        seed_everything(seed, "predict", t)
        with torch.no_grad(), self.calling(f"predict (after domain {t + 1})"):
            if not isinstance(method, RouterMethod):
                return method.predict(batch), None
            domains = method.predict_domain(batch)
            given = torch.as_tensor(domains).to(self.job.backbone.device)
            return method.predict_in_domain(batch, given), domains

    def tests(self, t: int, size: WorldSize | None = None) -> Batch:
        """The test images of domains 0..t in a random mixture, as the method wants them."""
        size = size or self.size
        if (size, t) not in self._batches:
            tests = [domain.test for domain in self._stream(size).domains[: t + 1]]
            device = self.job.backbone.device
            batch = Batch(
                torch.cat([self._images(test) for test in tests])
                if "images" in self.job.method_class.inputs
                else None,
                torch.cat([self.pictures.features(test) for test in tests]).to(device)
                if "features" in self.job.method_class.inputs
                else None,
            )
            self._batches[size, t] = batch.select(mixture(len(batch)))
        kept = self._batches[size, t]
        # A copy: a method may write into what it gets.
        return kept.select(torch.arange(len(kept)))

    def state_of(self, method: Method) -> State:
        """Copies of what the method remembers."""
        with self.calling("state_dict"):
            state = method.state_dict()
        if not isinstance(state, dict) or not all(
            isinstance(name, str) and torch.is_tensor(value) for name, value in state.items()
        ):
            raise CheckError(
                "state_dict does not return a flat dict of named tensors",
                "Return {name: tensor}; store a number as torch.tensor(number).",
            )
        return {name: value.detach().clone() for name, value in state.items()}

    @contextmanager
    def calling(self, what: str) -> Iterator[None]:
        """Call the method: an error becomes a finding; what it changes is noted and undone."""
        before = ProcessState.now(self.job.method_class)
        seeded: list[str] = []
        try:
            with no_streams(), seeding() as seeded:
                yield
        except FsdilError as error:
            raise CheckError(f"{what} failed: {error.message}", error.remedy) from error
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # also sys.exit, which would end the command in peace
            place = self._place(error)
            raise CheckError(
                f"{what} raised {type(error).__name__}: {error}",
                f"Fix it; it was raised in line {place.lineno} of {place.filename}.",
            ) from error
        finally:
            now = ProcessState.now(self.job.method_class)
            for change in [*before.differences(now), *seeded]:
                self.changed.setdefault(change, what)
            before.restore()

    def _place(self, error: BaseException) -> traceback.FrameSummary:
        """Where in the method's own files an error comes from; else, where it was raised."""
        frames = traceback.extract_tb(error.__traceback__)
        own = {module.__file__ for module in own_modules(self.job.method_class).values()}
        return next((frame for frame in reversed(frames) if frame.filename in own), frames[-1])

    def _images(self, samples: Samples) -> torch.Tensor:
        views = self.pictures.plain(samples)
        return self.pictures.transform.normalise(views, self.job.backbone.device)

    def _stream(self, size: WorldSize) -> Stream:
        """The same object every time, as in a run: what a method changes in it stays changed."""
        if size not in self._streams:
            self._streams[size] = self.untouched_stream(size)
        return self._streams[size]


def open_small_world(
    method: str,
    *,
    registry: Registry,
    scenario: str = SCENARIO,
    config: Options | None = None,
    backbone: str = "",
    size: WorldSize | None = None,
    progress: Progress | None = None,
) -> SmallWorld:
    """A small part of `scenario` for a method under `config`, on the CPU."""
    request = RunRequest.of(
        method=method, scenario=scenario, seed=_SEED, backbone=backbone, config=config,
        device="cpu", workers=0,
    )  # fmt: skip
    job = prepare(request, registry)
    return SmallWorld(job, size or WorldSize(), config or {}, progress or Progress())


def mixture(count: int) -> torch.Tensor:
    """Positions in a random order that is always the same."""
    return torch.from_numpy(numpy_generator(_SEED, "mixture").permutation(count))


def _lowered(config: Any, given: Options) -> dict[str, int]:
    """Shorter training, by the names of options, unless the user has set them."""
    lengths = {
        f.name: getattr(config, f.name)
        for f in fields(config)
        if f.name.rsplit("_", 1)[-1] in _LENGTHS and f.name not in given
    }
    return {k: _SHORT for k, v in lengths.items() if isinstance(v, int) and v > _SHORT}
