"""The view that a method gets in its own process: it leads to pixels and labels, not to samples.

Samples know ids, and a loader that takes any id, also those of test images. So they stay with a
thread of the harness, and the view holds a queue to that thread: it asks for positions and gets
tensors. In a sealed run the harness is another process instead (`runs.sealed`).
"""

from __future__ import annotations

import _thread
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from itertools import count, tee
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

import numpy as np
import torch

from fsdil_bench.data.scenario import Samples
from fsdil_bench.errors import PluginError

from .pictures import Draw, to_device
from .views import TrainDomain, ViewSource

View = TypeVar("View", bound=TrainDomain)

_PATIENCE = 1.0  # seconds after which a waiting thread asks whether the domain is over


@contextmanager
def served(domain: TrainDomain, kind: Callable[..., View]) -> Iterator[View]:
    """A view of the same images that holds no samples, open for as long as the context is.

    `kind` builds it from the arguments of `TrainDomain`. What it hands out is noted in the ledger
    of `domain`.
    """
    with ExitStack() as stack:
        made = _view(domain, kind, stack)
        stack.callback(made.close)
        yield made


def _view(domain: TrainDomain, kind: Callable[..., Any], stack: ExitStack) -> Any:
    labels = domain._open_samples().labels
    unnamed = Samples(tuple(map(str, range(len(labels)))), labels, _no_loader)
    earlier = domain._earlier
    if earlier is not None:
        earlier = tuple(_view(each, kind, stack) for each in earlier)
    pictures = ServedPictures(domain._pictures, len(labels))
    stack.callback(pictures.close)
    # Not threading.Thread: all threads would list it, with the domain among its arguments.
    _thread.start_new_thread(_serve, (_Desk(domain), pictures.questions, torch.get_num_threads()))
    return kind(
        domain.index, unnamed, domain.class_names, pictures, domain._seed, domain._progress, earlier
    )


class ServedPictures:
    """Does what `Pictures` does for the images of one domain, which are known by position."""

    def __init__(self, pictures: ViewSource, images: int) -> None:
        self.backbone = pictures.backbone
        self.transform = pictures.transform
        self.meter = pictures.meter
        self.questions: SimpleQueue[Any] = SimpleQueue()
        self._images = images
        self._open = True
        self._process = os.getpid()

    def features(self, samples: Samples) -> torch.Tensor:
        """Frozen embeddings of the domain's images."""
        del samples
        found: torch.Tensor = self._ask("features")
        return found

    def plain(self, samples: Samples) -> torch.Tensor:
        """Plain views of the domain's images."""
        [views] = self.batches(samples, [(range(len(samples)), None)])
        return views

    def batches(self, samples: Samples, draws: Iterable[Draw]) -> Iterator[torch.Tensor]:
        """Views, batch by batch."""
        del samples
        number = self._ask("begin", map(self._checked, draws))
        try:
            while (views := self._ask("next", number)) is not None:
                yield views
        finally:
            # Without waiting for an answer: this may be run by the thread that would answer.
            self.questions.put((None, "end", (number,)))

    def to_device(self, tensor: torch.Tensor) -> torch.Tensor:
        """The tensor on the run's device."""
        return to_device(tensor, self.backbone.device)

    def close(self) -> None:
        """End the thread that answers."""
        self._open = False
        self.questions.put(None)

    def _checked(self, draw: Draw) -> Draw:
        positions = np.array(draw[0], dtype=np.int64)
        if len(positions) and not 0 <= positions.min() <= positions.max() < self._images:
            raise PluginError(
                f"the method asked for image {positions.max()} of a domain with {self._images}",
                f"Positions are from 0 to {self._images - 1}.",
            )
        return positions, draw[1]

    def _ask(self, question: str, *arguments: Any) -> Any:
        if os.getpid() != self._process:
            raise PluginError(
                "a process that the method has started asked for images",
                "Read the domain in the method's own process; a data loader needs num_workers=0.",
            )
        answers: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()
        self.questions.put((answers, question, arguments))
        while self._open:
            try:
                answer, error = answers.get(timeout=_PATIENCE)
            except Empty:
                continue
            if error is not None:
                raise error
            return answer
        raise PluginError(
            "the method read images of a domain after that domain was over",
            "Old images may not be used; keep what you need of them (not the images) as state.",
        )


class _Desk:
    """The thread's side: it has the samples, and notes what it hands out."""

    def __init__(self, domain: TrainDomain) -> None:
        self._domain = domain
        self._samples = domain._open_samples()
        self._numbers = count()
        self._begun: dict[int, Iterator[torch.Tensor]] = {}

    def features(self) -> torch.Tensor:
        """All features."""
        self._note(None)
        return self._domain._pictures.features(self._samples)

    def begin(self, draws: Iterator[Draw]) -> int:
        """The number of an iterator over batches of views."""
        number = next(self._numbers)
        self._begun[number] = self._batches(draws)
        return number

    def next(self, number: int) -> torch.Tensor | None:
        """The next batch of an iterator, None at its end."""
        return next(self._begun[number], None)

    def end(self, number: int) -> None:
        """Forget an iterator."""
        self._begun.pop(number, None)

    def _batches(self, draws: Iterator[Draw]) -> Iterator[torch.Tensor]:
        now, ahead = tee(draws)
        views = self._domain._pictures.batches(self._samples, ahead)
        for (positions, _), pixels in zip(now, views, strict=True):
            self._note(positions)
            yield pixels

    def _note(self, positions: Any) -> None:
        self._domain._ledger.note(self._domain.index, self._samples.labels, positions)


#: What a thread of the harness works in: much of torch's state belongs to a single thread.
thread_context: Callable[[], AbstractContextManager[object]] = nullcontext


def _serve(desk: _Desk, questions: SimpleQueue[Any], threads: int) -> None:
    """Answer questions until there is None."""
    torch.set_num_threads(threads)
    with thread_context():
        _answer_all(desk, questions)


def _answer_all(desk: _Desk, questions: SimpleQueue[Any]) -> None:
    while (asked := questions.get()) is not None:
        answers, question, arguments = asked
        answer: tuple[Any, BaseException | None]
        try:
            answer = getattr(desk, question)(*arguments), None
        except BaseException as error:
            # The frames of a traceback would lead to the samples.
            error.__context__ = error.__cause__ = None
            answer = None, error.with_traceback(None)
        if answers is not None:
            answers.put(answer)
        del asked, answers, arguments, answer  # nothing that was handed out is kept here


def _no_loader(sample_id: str) -> np.ndarray:
    raise PluginError(f"image {sample_id} cannot be read but through the views")
