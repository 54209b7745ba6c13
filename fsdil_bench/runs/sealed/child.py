"""Sealed runs, the method's side: the harness starts `python -m fsdil_bench.runs.sealed.child`.

The process that is started (the nursery) imports what every method needs and then forks one process
after another, each for one task: to learn a domain, or to predict batches of test images. Whatever
a method leaves in memory ends with the task.
"""

from __future__ import annotations

import faulthandler
import os
import shutil
import socket
import sys
import tempfile
import threading
import traceback
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count, islice
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import open_clip  # noqa: F401 - most backbones need it as soon as a method runs the model
import torch

from fsdil_bench.data.scenario import Samples, ScenarioId, Stream
from fsdil_bench.data.transforms import Transform, build_transform
from fsdil_bench.errors import FsdilError, PluginError
from fsdil_bench.models.backbone import Backbone
from fsdil_bench.models.device import numerics
from fsdil_bench.plugins.code_hash import code_version
from fsdil_bench.plugins.method import Method
from fsdil_bench.plugins.options import resolve
from fsdil_bench.plugins.registry import load_registry
from fsdil_bench.progress import Progress
from fsdil_bench.records.identity import RunSpec
from fsdil_bench.runs.cost import Meter, peak_memory_bytes
from fsdil_bench.runs.job import Job, load_method_class
from fsdil_bench.runs.lookup import describe_backbone
from fsdil_bench.runs.loop import call_plugin, checked_state
from fsdil_bench.runs.pictures import Draw
from fsdil_bench.runs.request import RunRequest
from fsdil_bench.runs.self_report import self_report
from fsdil_bench.runs.views import Batch, TrainDomain
from fsdil_bench.seeds import seed_everything

from .wire import NUMBER, Channel, Message

_AHEAD = 4  # batches asked for before they are needed


def main() -> None:
    """Do one task if a pair of descriptors (line, output) is given.

    Else fork a process for every such pair received, one at a time.
    """
    if len(sys.argv) == 3:
        _live(*map(int, sys.argv[1:]))
    control = socket.socket(fileno=int(sys.argv[1]))
    while True:
        word, descriptors, _, _ = socket.recv_fds(control, 1, 2)
        if not word:
            return
        pid = os.fork()
        if pid == 0:
            control.close()
            os.setsid()  # so that it can be ended with all it may start
            _live(*descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        try:
            control.sendall(NUMBER.pack(pid))
            status = os.waitpid(pid, 0)[1]
            control.sendall(NUMBER.pack(os.waitstatus_to_exitcode(status)))
        except BrokenPipeError:  # the harness has gone; the process notices by itself
            return


def _live(line: int, output: int) -> None:
    """A process's whole life: one task, then the end without a look back."""
    os.dup2(output, sys.stdout.fileno())
    os.dup2(output, sys.stderr.fileno())
    os.close(output)
    faulthandler.enable()
    code = 0
    harness = Harness(Channel(Connection(line)))
    try:
        _work(harness)
    except BaseException as error:
        code = 1
        said = error if isinstance(error, FsdilError) else _unexpected(error)
        harness.tell(
            "failed",
            error=type(said).__name__,
            message=said.message,
            remedy=said.remedy,
            traceback=traceback.format_exc(),
        )
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _unexpected(error: BaseException) -> FsdilError:
    text = f"unexpected {type(error).__name__} in a sealed process: {error}"
    return FsdilError(text, "The traceback is in the run's log.txt.")


class Harness:
    """The harness, as seen from here: it answers questions by their number, in any order."""

    def __init__(self, channel: Channel) -> None:
        self.scratch = ""
        self._channel = channel
        self._numbers = count()
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
        """Say something that needs no answer."""
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
                if self.scratch:  # the harness cannot remove it any more
                    shutil.rmtree(self.scratch, ignore_errors=True)
                os._exit(1)
            number = message.fields["number"]
            with self._news:
                if number in self._unwanted:
                    self._unwanted.remove(number)
                else:
                    self._answers[number] = message
                self._news.notify_all()


class AskedPictures:
    """Stands for `Pictures`: the views of one domain, made by the harness."""

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


class ToldProgress(Progress):
    """Progress that the harness shows."""

    def __init__(self, harness: Harness) -> None:
        self._harness = harness
        self._ids = count()

    @contextmanager
    def phase(self, name: str, total: int | None = None) -> Iterator[None]:
        """Tell when it begins and ends."""
        mark = next(self._ids)
        self._harness.tell("phase", id=mark, name=name, total=total)
        try:
            yield
        finally:
            self._harness.tell("phase over", id=mark)

    def advance(self, amount: int = 1) -> None:
        """Tell how far it is."""
        self._harness.tell("advance", amount=amount)


def _work(harness: Harness) -> None:
    message = harness.answer(harness.expect())
    task = message.fields
    torch.set_num_threads(task["threads"])
    with numerics(task["precision"], deterministic=task["deterministic"]):
        _do(harness, _job(task, harness), message)


def _do(harness: Harness, job: Job, message: Message) -> None:
    task, method = message.fields, job.build_method()
    name = job.spec.method
    if task["state"]:
        device = job.backbone.device
        state = {key: tensor.to(device) for key, tensor in _part(message, "state.").items()}
        call_plugin(name, "load_state_dict", lambda: method.load_state_dict(state))
    if task["purpose"] == "learn":
        _learn(harness, job, method, message)
    else:
        _predict(harness, job, method, task)


def _job(task: dict[str, Any], harness: Harness) -> Job:
    """What the method is built from, in a folder of its own, without a way to any stream."""
    os.environ.clear()
    os.environ |= task["environment"]
    sys.path[:] = task["paths"]
    registry = load_registry(task["plugins"])
    os.chdir(task["folder"])  # the backbone may be given as a path
    os.environ["FSDIL_CACHE"] = task["cache"]  # hashes of large files of weights
    backbone = describe_backbone(registry.backbone(task["backbone"]), task["backbone"])
    harness.scratch = task["scratch"]
    os.chdir(task["scratch"])
    os.environ |= dict.fromkeys(("FSDIL_CACHE", "FSDIL_DATA", "TMPDIR"), task["scratch"])
    tempfile.tempdir = None  # ask the environment again

    info = registry.method(task["method"])
    code = code_version(info.factory)
    if code != task["code"] or backbone.weights_hash != task["weights"]:
        raise PluginError(
            f"the code of method '{info.name}' or the weights of '{backbone.name}' have changed "
            "since the run began",
            "Run it again.",
        )
    names = tuple(task["class_names"])
    place = torch.device(task["device"])
    backbone.place(place, task["precision"], None, names, task["batch_size"])
    backbone.say = lambda text: harness.tell("say", text=text)
    backbone.ask_for_texts(
        lambda texts: harness.answer(harness.ask("texts", texts=texts)).tensors["texts"]
    )
    kind = load_method_class(info)
    settings = resolve(kind.Config, task["config"], owner=f"method {info.name}", see="")
    spec = RunSpec(info.name, task["config"], "", task["seed"], backbone.name, task["precision"])
    synonyms = tuple(tuple(words) for words in task["synonyms"])
    stream = Stream("sealed", names, (), synonyms, transform=task["preset"])
    request = RunRequest(method=info.name, scenario=ScenarioId("sealed", 1))
    return Job(request, spec, "", {}, info, kind, settings, stream, backbone, registry)


def _learn(harness: Harness, job: Job, method: Method, message: Message) -> None:
    task, meter = message.fields, Meter(job.backbone.device)
    transform = build_transform(task["preset"], job.backbone.image)
    progress = ToldProgress(harness)

    def view(i: int, earlier: tuple[TrainDomain, ...] | None) -> TrainDomain:
        labels = message.tensors[f"labels.{i}"].numpy()
        samples = Samples(tuple(map(str, range(len(labels)))), labels, _no_loader)
        pictures = AskedPictures(harness, i, job.backbone, transform, meter)
        seed = (job.spec.seed, task["t"])
        return TrainDomain(i, samples, job.stream.class_names, pictures, seed, progress, earlier)

    earlier = task["earlier"]
    domain = view(task["index"], None if earlier is None else tuple(view(i, ()) for i in earlier))
    harness.tell("ready", number=0, inputs=sorted(method.inputs))
    seed_everything(job.spec.seed, "learn", task["t"])
    with meter.phase("learn"):
        call_plugin(job.spec.method, "learn", lambda: method.learn(domain))
    job.backbone.check_untouched()
    harness.tell(
        "learned",
        checked_state(job.spec.method, method),
        report=self_report(method),
        peak_memory_bytes=peak_memory_bytes(job.backbone.device),
        **meter.take(),
    )


def _predict(harness: Harness, job: Job, method: Method, task: dict[str, Any]) -> None:
    """Answer batches until the harness ends this process."""
    device, name = job.backbone.device, job.spec.method
    number = harness.expect()
    harness.tell("ready", number=number, inputs=sorted(method.inputs))
    # The oracle's pass follows the ordinary one: it begins with the same seed.
    purpose = "predict" if task["purpose"] == "oracle" else task["purpose"]
    seed_everything(job.spec.seed, purpose, task["t"])
    while True:
        message = harness.answer(number)
        held = {key: tensor.to(device) for key, tensor in message.tensors.items()}
        batch = Batch(held.get("images"), held.get("features"))
        given = [held["domains"]] if "domains" in held else []
        call = message.fields["call"]
        with torch.no_grad():
            ask = partial(getattr(method, call), batch, *given)
            ids = _tensor(call_plugin(name, call, ask))
        number = harness.expect()
        peak = peak_memory_bytes(device)
        harness.tell("predicted", {"ids": ids}, number=number, peak_memory_bytes=peak)


def _tensor(values: Any) -> torch.Tensor:
    """What a method returned as ids; the harness checks whether they are."""
    if torch.is_tensor(values):
        return values
    try:
        return torch.from_numpy(np.asarray(values))
    except TypeError as error:
        raise PluginError(f"the method returned {type(values)} instead of ids") from error


def _part(message: Message, prefix: str) -> dict[str, torch.Tensor]:
    return {
        name.removeprefix(prefix): tensor
        for name, tensor in message.tensors.items()
        if name.startswith(prefix)
    }


def _no_loader(sample_id: str) -> np.ndarray:
    raise PluginError(f"image {sample_id} cannot be read in a sealed run but through the views")


if __name__ == "__main__":
    main()
