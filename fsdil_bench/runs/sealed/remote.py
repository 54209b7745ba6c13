"""The harness as seen from the process of a method: it serves views and texts, shows progress."""

from __future__ import annotations

import os
import shutil
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import count, islice
from typing import Any

import torch

from fsdil_bench.data.scenario import Samples
from fsdil_bench.data.transforms import Transform
from fsdil_bench.models.backbone import Backbone
from fsdil_bench.progress import Progress
from fsdil_bench.runs.cost import Meter
from fsdil_bench.runs.pictures import Draw

from .wire import Channel, Message

_AHEAD = 4  # batches asked for before they are needed


class Harness:
    """The other end of the line: it answers questions by their number, in any order."""

    def __init__(self, channel: Channel, scratch: str) -> None:
        self._scratch = scratch
        self._channel = channel
        self._numbers = count(1)  # the task itself was number 0
        self._answers: dict[int, Message] = {}
        self._unwanted: set[int] = set()
        self._news = threading.Condition()
        threading.Thread(target=self._listen, daemon=True).start()

    def expect(self) -> int:
        """The number of an answer to come."""
        return next(self._numbers)

    def ask(self, kind: str, **fields: Any) -> int:
        """Ask for something; the number of the answer."""
        number = self.expect()
        self._channel.send(kind, number=number, **fields)
        return number

    def answer(self, number: int) -> Message:
        """Wait for the answer of that number."""
        with self._news:
            self._news.wait_for(lambda: number in self._answers)
            return self._answers.pop(number)

    def tell(
        self, kind: str, tensors: dict[str, torch.Tensor] | None = None, **fields: Any
    ) -> None:
        """Send something that needs no answer."""
        self._channel.send(kind, tensors, **fields)

    def forget(self, numbers: Iterable[int]) -> None:
        """Drop answers that nobody waits for any more."""
        with self._news:
            for number in numbers:
                if self._answers.pop(number, None) is None:
                    self._unwanted.add(number)

    def _listen(self) -> None:
        # A thread, so that neither side ever waits for the other to read, and so that a process
        # whose harness has been killed ends at once, whatever it is doing.
        while True:
            try:
                message = self._channel.receive()
            except (EOFError, OSError):
                shutil.rmtree(self._scratch, ignore_errors=True)  # nobody else can any more
                os._exit(1)
            number = message.fields["number"]
            with self._news:
                if number in self._unwanted:
                    self._unwanted.remove(number)
                else:
                    self._answers[number] = message
                self._news.notify_all()


class RemotePictures:
    """Does what `Pictures` does: views of one domain, made by the harness."""

    def __init__(
        self, harness: Harness, domain: int, backbone: Backbone, transform: Transform, meter: Meter
    ) -> None:
        self.backbone = backbone
        self.transform = transform
        self.meter = meter
        self._harness = harness
        self._domain = domain

    def features(self, samples: Samples) -> torch.Tensor:
        """Frozen embeddings of the domain's images."""
        del samples
        with self.meter.phase("features"):
            answer = self._harness.answer(self._harness.ask("features", domain=self._domain))
        return answer.tensors["views"]

    def plain(self, samples: Samples) -> torch.Tensor:
        """Plain views of the domain's images."""
        [views] = self.batches(samples, [(range(len(samples)), None)])
        return views

    def batches(self, samples: Samples, draws: Iterable[Draw]) -> Iterator[torch.Tensor]:
        """Views, batch by batch, asked for some batches ahead."""
        del samples
        asked = (self._ask(*draw) for draw in draws)
        waiting = deque(islice(asked, _AHEAD))
        try:
            while waiting:
                with self.meter.phase("images"):
                    views = self._harness.answer(waiting[0]).tensors["views"]
                waiting.popleft()
                waiting.extend(islice(asked, 1))
                yield views
        finally:
            self._harness.forget(waiting)

    def to_device(self, tensor: torch.Tensor) -> torch.Tensor:
        """The tensor on the run's device."""
        return tensor.to(self.backbone.device)

    def _ask(self, positions: Any, seeds: Any) -> int:
        return self._harness.ask(
            "views",
            domain=self._domain,
            positions=[int(position) for position in positions],
            seeds=seeds if seeds is None else list(seeds),
        )


class RemoteProgress(Progress):
    """Progress that the harness shows."""

    def __init__(self, harness: Harness) -> None:
        self._harness = harness
        self._ids = count()

    @contextmanager
    def phase(self, name: str, total: int | None = None) -> Iterator[None]:
        """Tell the harness when it begins and ends."""
        mark = next(self._ids)
        self._harness.tell("phase", id=mark, name=name, total=total)
        try:
            yield
        finally:
            self._harness.tell("phase over", id=mark)

    def advance(self, amount: int = 1) -> None:
        """Tell the harness how far it is."""
        self._harness.tell("advance", amount=amount)
