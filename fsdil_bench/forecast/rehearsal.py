"""A method rehearsed: its own class and options in the harness' own loop, on towers that count."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch

from fsdil_bench.data.scenario import Stream
from fsdil_bench.errors import FsdilError, PluginError, RequestError
from fsdil_bench.models.backbone import Backbone
from fsdil_bench.plugins.descriptors import MethodInfo
from fsdil_bench.plugins.method import Context, Method
from fsdil_bench.progress import Progress
from fsdil_bench.runs.executor import InProcess, Purpose
from fsdil_bench.runs.loop import Loop
from fsdil_bench.runs.run_folder import RunFolder
from fsdil_bench.seeds import seed_everything

from .pass_cost import PassCost
from .stand_in import NARROW, WIDE, MadeUpPictures, StandIn, made_up_stream
from .tally import Peak, Phase, Work

_SEED = 0


@dataclass(frozen=True)
class Subject:
    """What is rehearsed: a method with its options, on a backbone, for a stream."""

    info: MethodInfo
    method_class: type[Method]
    config: Any
    backbone: Backbone
    cost: PassCost
    stream: Stream
    batch_size: int


@dataclass(frozen=True)
class Sizes:
    """Images in a rehearsal: of the base domain, of a later one, and for the test of a domain."""

    domains: int
    base: int
    shots: int
    tests: int


@dataclass(frozen=True)
class Rehearsed:
    """What a rehearsal found. `towers` is how many copies of the image tower the state holds."""

    sizes: Sizes
    work: dict[Phase, Work]
    largest_batch: dict[Phase, int]
    features: frozenset[tuple[str, int]]
    texts: str
    text_tokens: int
    peak: Peak
    towers: int
    routes: bool


class _Executor(InProcess):
    """Calls the method, and says which phase begins."""

    stand_in: StandIn

    def begin(self, purpose: Purpose, t: int) -> None:
        """Count what follows for this phase."""
        self.stand_in.tally.begin(purpose, t)
        super().begin(purpose, t)


def rehearse(subject: Subject, sizes: Sizes) -> Rehearsed:
    """Run the method through a made-up stream of these sizes."""
    try:
        return _rehearse(subject, sizes, NARROW)
    except RequestError:
        # With hundreds of classes a method may want more room: vectors that are all orthogonal.
        return _rehearse(subject, sizes, WIDE)


def _rehearse(subject: Subject, sizes: Sizes, width: int) -> Rehearsed:
    like = subject.stream
    backbone = StandIn(subject.backbone, subject.cost, like.class_names, subject.batch_size, width)
    stream = made_up_stream(like, sizes.domains, sizes.base, sizes.shots, sizes.tests)
    name = subject.info.name

    def build() -> Method:
        seed_everything(_SEED, "build")
        texts = stream.class_names, stream.synonyms
        return subject.method_class(Context(subject.config, backbone, *texts, _SEED))

    executor = _Executor(name, build, _SEED, backbone.device)
    executor.stand_in = backbone
    with _undisturbed(name), tempfile.TemporaryDirectory() as folder:
        backbone.model  # noqa: B018 - built before anything is counted
        backbone.tally.begin("learn", 0)
        loop = Loop(
            name, executor, stream, MadeUpPictures(stream, backbone), _SEED,  # type: ignore[arg-type]
            subject.info.exemplar_free, RunFolder(Path(folder)), Progress(),
        )  # fmt: skip
        loop.run()
    tally = backbone.tally
    # The first weight of an image tower has a shape that nothing else has.
    first = next(backbone.model.visual.conv1.parameters()).shape  # type: ignore[union-attr]
    towers = sum(tensor.shape == first for tensor in executor.state().values())
    return Rehearsed(
        sizes,
        tally.work(),
        dict(tally.largest_batch),
        frozenset(tally.features),
        tally.texts_digest(),
        tally.text_tokens,
        tally.peak,
        towers,
        executor.routes,
    )


@contextmanager
def _undisturbed(name: str) -> Iterator[None]:
    """Leave torch's generator and threads as they were; say which method could not be rehearsed."""
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)  # more would only wait for each other on tensors this small
        with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a run will show them
            yield
    except (FsdilError, KeyboardInterrupt):
        raise
    except BaseException as error:  # also sys.exit
        raise PluginError(
            f"method '{name}' cannot be rehearsed: {type(error).__name__}: {error}",
            "A rehearsal runs it on made-up images; --debug shows where it failed.",
        ) from error
    finally:
        torch.set_num_threads(threads)


def whole_numbers(config: Any) -> list[int]:
    """The options that are whole numbers: sizes at which the cost of a method may bend."""
    values = [getattr(config, each.name) for each in fields(config)]
    return [value for value in values if isinstance(value, int) and not isinstance(value, bool)]
