"""The small world that methods are checked on: a slice of a scenario, and runs through it.

The harness' own parts do the work (shots, views, seeds, backbone); only the loop is written anew,
because checks look at what happens between the steps. Runs are short: options that say how long to
train are lowered, since no check asks how good a method is.
"""

from __future__ import annotations

import copy
import hashlib
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch

from fsdil_bench.data.scenario import Samples, Stream
from fsdil_bench.errors import FsdilError
from fsdil_bench.plugins.method import Context, Method, RouterMethod, State
from fsdil_bench.plugins.registry import Registry
from fsdil_bench.progress import Progress
from fsdil_bench.runs.job import Job, prepare
from fsdil_bench.runs.lookup import describe_backbone
from fsdil_bench.runs.request import RunRequest
from fsdil_bench.runs.views import Batch
from fsdil_bench.seeds import numpy_generator, seed_everything

from .finding import CheckError
from .surroundings import Surroundings, own_modules, seeding
from .watching import Sightings, WatchedDomain

SCENARIO = "drawn-2shot"
_SEED = 0
#: How options are called that say how long to train, and these with those for how often to look.
TRAINING = {"steps", "epochs", "iterations"}
_LENGTHS = TRAINING | {"views"}
_SHORT = 2
_SYNONYMS = 3  # per class: texts cost more than images in a world this small


@dataclass(frozen=True)
class Cut:
    """How large a slice is; `other` takes other base images and wrong labels throughout."""

    classes: int = 3
    domains: int = 3
    base: int = 5  # images per class
    shots: int = 2
    other: bool = False


@dataclass(frozen=True)
class Stage:
    """A method after a domain: copies of its state, and what it predicts for the tests so far."""

    state: State
    classes: Any
    domains: Any = None  # guessed, by a router

    def digest(self) -> str:
        """Equal for equal states and predictions, to the last bit."""
        found = hashlib.blake2b(digest_size=16)
        guesses = {"classes": self.classes, "domains": self.domains}
        for name, value in [*sorted(self.state.items()), *guesses.items()]:
            array = np.ascontiguousarray(as_array(value))
            found.update(f"{name} {array.dtype} {array.shape}".encode())
            found.update(array.tobytes())
        return found.hexdigest()


class Trial:
    """A whole run that was watched."""

    def __init__(self, world: Slice) -> None:
        self.seen = Sightings()
        world.build()  # what importing a library changes is not the method's doing
        world.changed.clear()
        self.method = world.build()
        self.stages: list[Stage] = []
        self.returned: list[Any] = []  # by learn
        for t in range(world.cut.domains):
            self.returned.append(world.learn(self.method, t, seen=self.seen))
            self.stages.append(world.stage(self.method, t))


class Slice:
    """One method on a small world, and ways to run it there."""

    def __init__(self, job: Job, cut: Cut, given: Mapping[str, Any], progress: Progress) -> None:
        self.cut = replace(
            cut,
            domains=min(cut.domains, len(job.stream.domains)),
            classes=min(cut.classes, len(job.stream.class_names)),
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
        self._batches: dict[tuple[Cut, int], Batch] = {}
        self._streams: dict[Cut, Stream] = {}
        self._trial: Trial | None = None
        self._unwatchable = ""

    @property
    def watched(self) -> Trial:
        """The run that most checks look at; if it fails, it is not tried again."""
        if self._unwatchable:
            raise CheckError(
                "could not be checked, because a plain run fails",
                f"Mend it first: {self._unwatchable}",
            )
        if self._trial is None:
            try:
                self._trial = Trial(self)
            except CheckError as error:
                self._unwatchable = error.found
                raise
        return self._trial

    def pristine_model(self) -> torch.nn.Module:
        """The backbone's model, built once more."""
        return self.job.backbone._build()

    def kept_stream(self) -> Stream:
        """The stream that the watched run went through."""
        return self._stream(self.cut)

    def untouched_stream(self, cut: Cut | None = None) -> Stream:
        """A stream that no method has seen."""
        return cut_stream(self.job.stream, cut or self.cut, self._tests)

    def on(self, device: torch.device, precision: str) -> Slice:
        """The same slice where a method computes on another device.

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
        other.model, other.changed, other._trial = backbone.model, {}, None
        other._batches, other._streams = {}, {}
        return other

    def close(self) -> None:
        """Release the caches."""
        self.pictures.close()

    def build(
        self, cut: Cut | None = None, options: Mapping[str, Any] | None = None, seed: int = _SEED
    ) -> Method:
        """A fresh method."""
        stream = self._stream(cut or self.cut)
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
        cut: Cut | None = None,
        seed: int = _SEED,
        seen: Sightings | None = None,
    ) -> Any:
        """Show the method domain t; gives what `learn` gave."""
        stream = self._stream(cut or self.cut)
        seen = seen or Sightings()

        def view(i: int, earlier: tuple[WatchedDomain, ...] | None) -> WatchedDomain:
            return WatchedDomain(
                i, stream.domains[i].train, stream.class_names, self.pictures, (seed, t),
                Progress(), earlier, seen=seen,
            )  # fmt: skip

        keeps = not self.job.info.exemplar_free
        domain = view(t, tuple(view(i, ()) for i in range(t)) if keeps else None)
        seed_everything(seed, "learn", t)
        with self.calling(f"learn (domain {t + 1})"):
            given = method.learn(domain)
        domain.close()
        self.pictures.forget(stream.domains[t].train)
        return given

    def stage(self, method: Method, t: int, cut: Cut | None = None, seed: int = _SEED) -> Stage:
        """The method as it is after domain t."""
        classes, domains = self.predict(method, self.tests(t, cut), t, seed)
        return Stage(self.state_of(method), classes, domains)

    def stages(
        self, cut: Cut | None = None, options: Mapping[str, Any] | None = None, seed: int = _SEED
    ) -> Iterator[Stage]:
        """A run, domain by domain, as far as it is asked for."""
        cut = replace(cut, domains=self.cut.domains) if cut else self.cut
        method = self.build(cut, options, seed)
        for t in range(cut.domains):
            self.learn(method, t, cut=cut, seed=seed)
            yield self.stage(method, t, cut, seed)

    def predict(self, method: Method, batch: Batch, t: int, seed: int = _SEED) -> tuple[Any, Any]:
        """Classes and, of a router, domains, as they come from the method."""
        seed_everything(seed, "predict", t)
        with torch.no_grad(), self.calling(f"predict (after domain {t + 1})"):
            if not isinstance(method, RouterMethod):
                return method.predict(batch), None
            domains = method.predict_domain(batch)
            given = torch.as_tensor(domains).to(self.job.backbone.device)
            return method.predict_in_domain(batch, given), domains

    def tests(self, t: int, cut: Cut | None = None) -> Batch:
        """The test images of domains 0..t in a random mixture, as the method wants them."""
        cut = cut or self.cut
        if (cut, t) not in self._batches:
            tests = [domain.test for domain in self._stream(cut).domains[: t + 1]]
            device = self.job.backbone.device
            batch = Batch(
                torch.cat([self._images(test) for test in tests])
                if "images" in self.job.method_class.inputs
                else None,
                torch.cat([self.pictures.features(test) for test in tests]).to(device)
                if "features" in self.job.method_class.inputs
                else None,
            )
            self._batches[cut, t] = batch.select(mixture(len(batch)))
        kept = self._batches[cut, t]
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
                "state_dict does not give a flat dict of named tensors",
                "Give {name: tensor}; store a number as torch.tensor(number).",
            )
        return {name: value.detach().clone() for name, value in state.items()}

    @contextmanager
    def calling(self, what: str) -> Iterator[None]:
        """Call the method: what it raises is a finding, what it changes is noted and undone."""
        before = Surroundings.now(self.job.method_class)
        seeded: list[str] = []
        try:
            with seeding() as seeded:
                yield
        except FsdilError as error:
            raise CheckError(f"{what} failed: {error.message}", error.remedy) from error
        except Exception as error:
            place = self._place(error)
            raise CheckError(
                f"{what} raised {type(error).__name__}: {error}",
                f"Mend it; it was raised in line {place.lineno} of {place.filename}.",
            ) from error
        finally:
            now = Surroundings.now(self.job.method_class)
            for change in [*before.differences(now), *seeded]:
                self.changed.setdefault(change, what)
            before.restore()

    def _place(self, error: Exception) -> traceback.FrameSummary:
        """Where in the method's own files an error comes from; else, where it was raised."""
        frames = traceback.extract_tb(error.__traceback__)
        own = {module.__file__ for module in own_modules(self.job.method_class).values()}
        return next((frame for frame in reversed(frames) if frame.filename in own), frames[-1])

    def _images(self, samples: Samples) -> torch.Tensor:
        views = self.pictures.plain(samples)
        return self.pictures.transform.normalise(views, self.job.backbone.device)

    def _stream(self, cut: Cut) -> Stream:
        """The same object every time, as in a run: what a method changes in it stays changed."""
        if cut not in self._streams:
            self._streams[cut] = self.untouched_stream(cut)
        return self._streams[cut]


def open_slice(
    method: str,
    *,
    registry: Registry,
    scenario: str = SCENARIO,
    config: Mapping[str, Any] | None = None,
    backbone: str = "",
    cut: Cut | None = None,
    progress: Progress | None = None,
) -> Slice:
    """A slice of `scenario` for a method under `config`, on the CPU."""
    request = RunRequest.of(
        method=method, scenario=scenario, seed=_SEED, backbone=backbone, config=config,
        device="cpu", workers=0,
    )  # fmt: skip
    job = prepare(request, registry)
    return Slice(job, cut or Cut(), config or {}, progress or Progress())


def cut_stream(stream: Stream, cut: Cut, tests: int) -> Stream:
    """A few classes, domains (from the first to the last) and images of a stream."""
    places = np.linspace(0, len(stream.domains) - 1, cut.domains).round().astype(int)
    domains = []
    for t, place in enumerate(places):
        domain = stream.domains[place]
        skipped = cut.base if cut.other and t == 0 else 0
        train = _first(domain.train, cut.classes, cut.shots if t else cut.base, skipped)
        if cut.other:
            wrong = (train.labels + 1) % cut.classes
            train = Samples(train.ids, wrong, train.load, train.keys)
        domains.append(replace(domain, train=train, test=_first(domain.test, cut.classes, tests)))
    names = stream.class_names[: cut.classes]
    synonyms = tuple(words[:_SYNONYMS] for words in stream.synonyms[: cut.classes])
    return replace(stream, class_names=names, synonyms=synonyms, domains=tuple(domains), unseen=())


def mixture(count: int) -> torch.Tensor:
    """Positions in a random order that is always the same."""
    return torch.from_numpy(numpy_generator(_SEED, "mixture").permutation(count))


def as_array(value: Any) -> np.ndarray:
    """Anything a method may give as an array."""
    if torch.is_tensor(value):
        value = value.detach().cpu()
        value = (value.float() if value.dtype == torch.bfloat16 else value).numpy()
    return np.asarray(value) if value is not None else np.zeros(0)


def _first(samples: Samples, classes: int, count: int, skipped: int = 0) -> Samples:
    """Some images of each of the first classes."""
    members = [
        np.flatnonzero(samples.labels == c)[skipped : skipped + count] for c in range(classes)
    ]
    return samples.subset(np.concatenate(members).tolist())


def _lowered(config: Any, given: Mapping[str, Any]) -> dict[str, int]:
    """Shorter training, by the names of options, unless the user has set them."""
    lengths = {
        f.name: getattr(config, f.name)
        for f in fields(config)
        if f.name.rsplit("_", 1)[-1] in _LENGTHS and f.name not in given
    }
    return {k: _SHORT for k, v in lengths.items() if isinstance(v, int) and v > _SHORT}
