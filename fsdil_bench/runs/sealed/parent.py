"""Sealed runs, the harness's side: a method learns and predicts in processes that share nothing.

For every domain one process learns it and another predicts the test images, each beginning with
the method as built and the state after the last domain: only `state_dict()` lives on. The oracle's
pass and that over test sets of no domain have processes of their own. Images, frozen features and
embedded texts are handed over by this process, so the others know no sample ids, no labels or
domains of test images, no later domain, and neither the data, the cache nor the run's folder.

This is for honesty, not against malice: nothing keeps a process from looking for files of its own
accord. `fsdil_bench.runs.sealed.child` is the other side.
"""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from fsdil_bench import errors
from fsdil_bench.cache.folder import cache_folder
from fsdil_bench.data.streams import SEALED
from fsdil_bench.errors import FsdilError, PluginError
from fsdil_bench.plugins.method import Method, RouterMethod, State
from fsdil_bench.runs.cost import Meter
from fsdil_bench.runs.self_report import SelfReport
from fsdil_bench.runs.views import Batch, TrainDomain
from fsdil_bench.system.posix import CAN_FORK, require_posix

from .wire import NUMBER, Channel, Message

require_posix("a sealed run")

if TYPE_CHECKING:
    from fsdil_bench.progress import Progress
    from fsdil_bench.runs.job import Job
    from fsdil_bench.runs.pictures import Pictures
    from fsdil_bench.runs.run_folder import RunFolder

_UNSAID = ("FSDIL_CACHE", "FSDIL_DATA")  # where samples and their ids can be found
_GRACE = 10  # seconds within which it must be known how a process ended
_MOST_OUTPUT = 20_000  # characters of a process's output that the log keeps
_DOING = {
    "learn": "learning domain {}",
    "predict": "predicting after domain {}",
    "oracle": "predicting with true domains after domain {}",
    "predict unseen": "predicting unseen test sets after domain {}",
}


class Nursery:
    """A process that has imported what every method needs, but nothing of any plugin.

    The processes of all sealed runs are its forks, one at a time: each is as new as the first one,
    and torch is imported once.
    """

    _shared: Nursery | None = None

    def __init__(self) -> None:
        self.control, theirs = socket.socketpair()
        self._process: subprocess.Popen[bytes] | None = _interpreter(theirs.fileno())
        theirs.close()

    @classmethod
    def shared(cls) -> Nursery:
        """The one of this process."""
        if cls._shared is None:
            cls._shared = cls() if CAN_FORK else Interpreters()
            atexit.register(cls._shared.close)
        return cls._shared

    def start(self, *descriptors: int) -> int:
        """A new process that holds these file descriptors; its id."""
        with suppress(OSError):
            socket.send_fds(self.control, [b"."], descriptors)
            if (answer := self._answer()) is not None:
                return answer
        self.close()
        raise FsdilError(
            "the process that starts those of a sealed run has died",
            "The same command goes on after the last finished domain.",
        )

    def exit_code(self) -> int | None:
        """How the last process ended (waits for its end); None if that cannot be known."""
        with suppress(OSError):
            return self._answer()
        return None

    def _answer(self) -> int | None:
        answer = self.control.recv(NUMBER.size)
        return NUMBER.unpack(answer)[0] if answer else None

    def close(self) -> None:
        """End it; the next sealed run starts another."""
        if Nursery._shared is self:
            Nursery._shared = None
        atexit.unregister(self.close)
        self.control.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()


class Interpreters(Nursery):
    """Where no process with torch can be forked: a new interpreter for every task."""

    def __init__(self) -> None:
        self.control, self._news = socket.socketpair()
        self._process = None

    def start(self, *descriptors: int) -> int:
        """A new process that holds these file descriptors; its id."""
        process = self._process = _interpreter(*descriptors)
        threading.Thread(target=self._tell_end, args=(process,), daemon=True).start()
        return process.pid

    def _tell_end(self, process: subprocess.Popen[bytes]) -> None:
        code = process.wait()
        with suppress(OSError):  # nobody listens any more
            self._news.sendall(NUMBER.pack(code))


def _interpreter(*descriptors: int) -> subprocess.Popen[bytes]:
    """`sealed_child` in a process that is as new as can be; it is told these file descriptors."""
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "fsdil_bench.runs.sealed.child", *map(str, descriptors)],
        pass_fds=descriptors,
        cwd=tempfile.gettempdir(),
        env=_environment() | {"PYTHONPATH": os.pathsep.join(_paths())},
        stdin=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C is the harness's to handle
    )


class Child:
    """A process in which a method lives for one task; `scratch` is a folder of its own."""

    def __init__(self, nursery: Nursery) -> None:
        self._nursery = nursery
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        self._lost = False
        self.scratch = tempfile.mkdtemp(prefix="fsdil-sealed-")
        ours, theirs = Pipe()
        self.channel = Channel(ours)
        self._pid = nursery.start(theirs.fileno(), self._output.fileno())
        theirs.close()

    def send(self, kind: str, tensors: Mapping[str, torch.Tensor], **fields: Any) -> None:
        """Send a message; a process that has died is noticed when it should answer."""
        with suppress(BrokenPipeError, ConnectionResetError):
            self.channel.send(kind, tensors, **fields)

    def receive(self) -> Message | None:
        """The next message; None if the process has died."""
        connection: Connection = self.channel.connection
        # Whoever else holds the line open (a process that the method started): death is noticed.
        if connection in wait([connection, self._nursery.control]):
            with suppress(EOFError, OSError):
                return self.channel.receive()
        self._lost = True
        return None

    def close(self) -> tuple[int | None, str]:
        """End the process and all it has started: its exit code and what it printed."""
        self.channel.close()
        control = self._nursery.control
        dead = control in wait([control], timeout=_GRACE if self._lost else 0)
        code = self._nursery.exit_code() if dead else None
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._pid, signal.SIGKILL)
        if not dead:
            self._nursery.exit_code()
        self._output.seek(0)
        printed = self._output.read().decode(errors="replace")[-_MOST_OUTPUT:]
        self._output.close()
        shutil.rmtree(self.scratch, ignore_errors=True)
        return code, printed


class SealedMethod(Method):
    """Stands for a method whose every task is done by a process of its own."""

    def __init__(self, job: Job, pictures: Pictures, folder: RunFolder, progress: Progress) -> None:
        # No context: what a method is built from is sent to the processes.
        self.inputs = job.method_class.inputs  # type: ignore[misc]
        self.peak_memory_bytes = 0
        self._job = job
        self._pictures = pictures
        self._folder = folder
        self._progress = progress
        self._nursery = Nursery.shared()
        self._child: Child | None = None
        self._task, self._wanted = ("", 0), 0
        self._state: State | None = None
        self._report = SelfReport(0, {}, [])
        self._phases: dict[int, ExitStack] = {}

    def __enter__(self) -> SealedMethod:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            self._end()
        finally:
            if kind is not None and not issubclass(kind, Exception):
                self._nursery.close()  # interrupted anywhere: it may be out of step

    def begin(self, purpose: str, t: int) -> None:
        """End the process at work; the next call is the first to a new one."""
        self._end()
        self._task = (purpose, t)

    def learn(self, domain: TrainDomain) -> None:
        """Have the domain learned, serving its images."""
        views = {each.index: each for each in (*(domain._earlier or ()), domain)}
        meter, self._pictures.meter = self._pictures.meter, Meter()
        try:
            with meter.phase("process"):
                earlier = None if domain._earlier is None else [v.index for v in domain._earlier]
                labels = {str(i): torch.tensor(v._samples.labels) for i, v in views.items()}
                child = self._open(labels, index=domain.index, earlier=earlier)
                done = self._wait(child, "learned", views)
                self._end()
            # The method's own clock counts: it also knows how long it has waited for images.
            meter.move("process", to=done.fields["seconds"])
            own = self._pictures.meter.images.get("features", 0)
            for phase, images in (*done.fields["images"].items(), ("features", own)):
                if images:
                    meter.count(phase, images)
        finally:
            self._pictures.meter = meter
        device = self._job.backbone.device
        self._state = {name: tensor.to(device) for name, tensor in done.tensors.items()}
        self._report = SelfReport(*done.fields["report"])
        self.peak_memory_bytes = 0
        self._note_memory(done)

    def predict(self, batch: Batch) -> torch.Tensor:
        """Have a batch predicted."""
        return self._ask("predict", batch)

    def state_dict(self) -> State:
        """The state after the last domain learned."""
        return self._state or {}

    def load_state_dict(self, state: State) -> None:
        """Go on from `state`."""
        self._state = state

    def self_report(self) -> SelfReport:
        """What the method said when it had learned."""
        return self._report

    def _ask(self, call: str, batch: Batch, domains: torch.Tensor | None = None) -> torch.Tensor:
        if self._child is None:
            with self._pictures.meter.phase("process"):
                self._open({})
        assert self._child is not None
        held = {"images": batch._images, "features": batch._features, "domains": domains}
        tensors = {name: tensor for name, tensor in held.items() if tensor is not None}
        self._child.send("batch", tensors, number=self._wanted, call=call)
        answer = self._wait(self._child, "predicted")
        self._wanted = answer.fields["number"]
        self._note_memory(answer)
        return answer.tensors["ids"]

    def _note_memory(self, message: Message) -> None:
        self.peak_memory_bytes = max(self.peak_memory_bytes, message.fields["peak_memory_bytes"])

    def _open(self, tensors: Mapping[str, torch.Tensor], **fields: Any) -> Child:
        """A new process with the method in the last state, ready for its task."""
        child = self._child = Child(self._nursery)
        state = {f"state.{name}": tensor for name, tensor in (self._state or {}).items()}
        own = {f"labels.{name}": tensor for name, tensor in tensors.items()}
        known = self._state is not None
        purpose, t = self._task
        child.send(
            "task", state | own, number=0, purpose=purpose, t=t, state=known,
            scratch=child.scratch, **_description(self._job), **fields,
        )  # fmt: skip
        ready = self._wait(child, "ready")
        self.inputs = frozenset(ready.fields["inputs"])  # type: ignore[misc]
        self._wanted = ready.fields["number"]
        return child

    def _wait(
        self, child: Child, kind: str, views: Mapping[int, TrainDomain] | None = None
    ) -> Message:
        """Serve a process until it sends a message of this kind."""
        while (message := child.receive()) is not None:
            if message.kind == kind:
                return message
            if message.kind == "failed":
                self._folder.log(message.fields["traceback"])
                self._end()
                kind_of_error = getattr(errors, message.fields["error"], PluginError)
                raise kind_of_error(message.fields["message"], message.fields["remedy"])
            self._serve(child, message, views or {})
        purpose, t = self._task
        raise _death(
            self._job.spec.method, _DOING[purpose].format(t + 1), *self._end(), self._folder
        )

    def _serve(self, child: Child, message: Message, views: Mapping[int, TrainDomain]) -> None:
        fields = message.fields
        match message.kind:
            case "texts":
                embedded = self._job.backbone.encode_text(fields["texts"])
                child.send("texts", {"texts": embedded}, number=fields["number"])
            case "features" | "views":
                pixels = _views(_allowed(views, fields), message)
                child.send("views", {"views": pixels}, number=fields["number"])
            case "phase":
                stack = self._phases[fields["id"]] = ExitStack()
                stack.enter_context(self._progress.phase(fields["name"], fields["total"]))
            case "phase over":
                self._phases.pop(fields["id"]).close()
            case "say":
                self._progress.say(fields["text"])
            case "advance":
                self._progress.advance(fields["amount"])

    def _end(self) -> tuple[int | None, str]:
        """End the process at work, if there is one; what it printed goes to the run's log."""
        while self._phases:
            self._phases.popitem()[1].close()
        child, self._child = self._child, None
        if child is None:
            return None, ""
        code, printed = child.close()
        if printed.strip():
            purpose, t = self._task
            self._folder.log(f"output of {_DOING[purpose].format(t + 1)}:\n{printed}")
        return code, printed


class SealedRouter(RouterMethod, SealedMethod):
    """Stands for a method that guesses domains."""

    def predict_domain(self, batch: Batch) -> torch.Tensor:
        """Have the domains of a batch guessed."""
        return self._ask("predict_domain", batch)

    def predict_in_domain(self, batch: Batch, domains: torch.Tensor) -> torch.Tensor:
        """Have a batch predicted under the given domains."""
        return self._ask("predict_in_domain", batch, domains)


def seal(job: Job, pictures: Pictures, folder: RunFolder, progress: Progress) -> SealedMethod:
    """What stands for the job's method in a sealed run; a context manager."""
    kind = SealedRouter if issubclass(job.method_class, RouterMethod) else SealedMethod
    return kind(job, pictures, folder, progress)


def _description(job: Job) -> dict[str, Any]:
    """All that a process needs to build the method, as JSON types: no scenario, no domain."""
    return {
        "plugins": [str(file) for file in job.registry.files],
        "method": job.spec.method,
        "config": job.spec.config,
        "seed": job.spec.seed,
        "code": job.code["method"],
        "backbone": job.request.backbone,
        "weights": job.backbone.weights_hash,
        "device": str(job.backbone.device),
        "precision": job.spec.precision,
        "batch_size": job.backbone.batch_size,
        "deterministic": job.request.deterministic,
        "preset": job.stream.transform,
        "class_names": job.stream.class_names,
        "synonyms": job.stream.synonyms,
        "environment": _environment(),
        "paths": _paths(),
        "threads": torch.get_num_threads(),
        # Only for finding the backbone's weights; the method gets neither.
        "folder": str(Path.cwd()),
        "cache": str(cache_folder()),
    }


def _environment() -> dict[str, str]:
    """This process's environment without what leads to samples."""
    return {k: v for k, v in os.environ.items() if k not in _UNSAID} | {SEALED: "1"}


def _paths() -> list[str]:
    """Where modules are found, whatever the working folder is."""
    return [str(Path(entry).absolute()) for entry in sys.path]


def _allowed(views: Mapping[int, TrainDomain], fields: Mapping[str, Any]) -> TrainDomain:
    """The open view of the domain asked for; other domains and positions are not served."""
    domain = views.get(fields["domain"])
    positions = fields.get("positions", [])
    if domain is None or not all(0 <= p < len(domain) for p in positions):
        raise PluginError("a sealed method asked for images that are not those of its domain")
    return domain


def _views(domain: TrainDomain, message: Message) -> torch.Tensor:
    samples, pictures = domain._of_now(), domain._pictures
    if message.kind == "features":
        domain._ledger.note(domain.index, samples.labels)
        return pictures.features(samples)
    positions, seeds = message.fields["positions"], message.fields["seeds"]
    domain._ledger.note(domain.index, samples.labels, positions)
    [views] = pictures.batches(samples, [(positions, seeds)])
    return views


def _death(
    method: str, doing: str, code: int | None, printed: str, folder: RunFolder
) -> PluginError:
    """The error for a process that ended without a word."""
    how = f"ended with exit code {code}"
    if code is None:
        how = "ended"
    elif code < 0:
        how = f"was killed by {signal.Signals(-code).name}"
    memory = " (often for lack of memory)" if code == -signal.SIGKILL else ""
    last = printed.strip().splitlines()[-1:]
    return PluginError(
        f"method '{method}': the process {doing} {how}{memory}"
        + "".join(f"; its last words: {line}" for line in last),
        f"All that it printed is in {folder.path / 'log.txt'}. "
        "The same command goes on after the last finished domain.",
    )
