"""Sealed runs, the harness's side: a method learns and predicts in processes that share nothing.

For every domain one process learns it and another predicts the test images, each beginning with
the method as built and the state after the last domain: only `state_dict()` lives on. The oracle's
pass and that over test sets of no domain have processes of their own. Images, frozen features and
embedded texts are handed over by this process, so the other processes know no sample ids, no labels
or domains of test images, no later domain, and neither the data, the cache nor the run's folder.

What a process does besides is noted or prevented (`watch`, `import_guard`, Landlock).
`fsdil_bench.runs.sealed.child` is the other side.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from fsdil_bench import errors
from fsdil_bench.cache.folder import cache_folder
from fsdil_bench.errors import PluginError
from fsdil_bench.plugins.method import RouterMethod, State
from fsdil_bench.runs.cost import Meter
from fsdil_bench.runs.executor import Call, Purpose
from fsdil_bench.runs.self_report import SelfReport
from fsdil_bench.runs.tracking import tracker_folder
from fsdil_bench.runs.views import Batch, TrainDomain

from .process import Ended, SealedProcess
from .server import close_server, shared_server
from .suspicions import suspect
from .task import describe
from .watch import judged
from .wire import Message

if TYPE_CHECKING:
    from fsdil_bench.progress import Progress
    from fsdil_bench.runs.job import Job
    from fsdil_bench.runs.pictures import Pictures
    from fsdil_bench.runs.run_folder import RunFolder

_DOING: dict[Purpose, str] = {
    "learn": "learning domain {}",
    "predict": "predicting after domain {}",
    "oracle": "predicting with true domains after domain {}",
    "predict unseen": "predicting unseen test sets after domain {}",
}


class SealedExecutor:
    """Has every task of a method done by a process of its own; a context manager."""

    def __init__(self, job: Job, pictures: Pictures, folder: RunFolder, progress: Progress) -> None:
        self.inputs: frozenset[str] = job.method_class.inputs
        self.routes = issubclass(job.method_class, RouterMethod)
        self.peak_memory_bytes = 0
        self.order_salt = folder.order_salt(job.order_salt)  # digests are public, this is not
        self._job = job
        self._pictures = pictures
        self._folder = folder
        self._progress = progress
        self._process: SealedProcess | None = None
        self._next: SealedProcess | None = None  # prepared while another one is at work
        self._ending: list[tuple[SealedProcess, str]] = []  # killed, and what they were doing
        self._purpose: Purpose = "learn"
        self._t = 0
        self._preloaded: set[str] = set()
        self._answer_number = 0  # of the next batch that is sent
        self._state: State | None = None
        self._report = SelfReport(0, {}, [])
        self._phases: dict[int, ExitStack] = {}
        self._preload(job.method_class.libraries)
        self._preload_model("images" in self.inputs)
        data = (job.request.data, os.environ.get("FSDIL_DATA"))
        runs = (folder.path.parents[1], tracker_folder(folder))  # both tell accuracies
        self._secret = [cache_folder(), *runs, *(Path(d) for d in data if d)]

    def __enter__(self) -> SealedExecutor:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            self._release()
            if self._next is not None:
                self._next.kill()
            self._bury()
            if self._next is not None:
                self._next.close()
        finally:
            if kind is not None and not issubclass(kind, Exception):
                close_server()  # interrupted anywhere: a process may have begun that nobody knows

    def restart(self, state: State | None) -> None:
        """Let the next processes begin with `state`."""
        self._state = state

    def begin(self, purpose: Purpose, t: int) -> None:
        """End the process at work; the next call is the first to a new one, which seeds itself."""
        self._release()
        self._purpose, self._t = purpose, t

    def learn(self, domain: TrainDomain) -> None:
        """Have the domain learned, serving its images."""
        views = {each.index: each for each in (*(domain._earlier or ()), domain)}
        meter, self._pictures.meter = self._pictures.meter, Meter()
        try:
            with meter.phase("process"):
                earlier = None if domain._earlier is None else [v.index for v in domain._earlier]
                labels = {str(i): torch.tensor(v._samples.labels) for i, v in views.items()}
                process = self._open(labels, index=domain.index, earlier=earlier)
                done = self._wait(process, "learned", views)
                self._preload_model(done.fields["built"])
                self._release()
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

    def state(self) -> State:
        """The state after the last domain learned."""
        return self._state or {}

    def self_report(self) -> SelfReport:
        """What the method said when it had learned."""
        return self._report

    def predict(self, call: Call, batch: Batch, domains: torch.Tensor | None = None) -> np.ndarray:
        """Have a batch predicted."""
        if self._process is None:
            with self._pictures.meter.phase("process"):
                self._open({})
        assert self._process is not None
        held = {"images": batch._images, "features": batch._features, "domains": domains}
        tensors = {name: tensor for name, tensor in held.items() if tensor is not None}
        self._process.send("batch", tensors, number=self._answer_number, call=call)
        answer = self._wait(self._process, "predicted")
        self._answer_number = answer.fields["number"]
        self._note_memory(answer)
        ids: np.ndarray = answer.tensors["ids"].numpy()
        return ids

    def _preload_model(self, runs_the_model: bool) -> None:
        """The processes of a method that runs the model get it imported beforehand."""
        self._preload({"open_clip"} if runs_the_model else set())

    def _preload(self, names: Iterable[str]) -> None:
        if more := set(names) - self._preloaded:
            shared_server().preload_more(more)
            self._preloaded |= more

    def _note_memory(self, message: Message) -> None:
        self.peak_memory_bytes = max(self.peak_memory_bytes, message.fields["peak_memory_bytes"])

    def _open(self, tensors: Mapping[str, torch.Tensor], **fields: Any) -> SealedProcess:
        """A new process with the method in the last state, ready for its task."""
        process = self._process = self._next or self._prepared()
        self._next = None
        state = {f"state.{name}": tensor for name, tensor in (self._state or {}).items()}
        own = {f"labels.{name}": tensor for name, tensor in tensors.items()}
        known = self._state is not None
        process.send(
            "task", state | own, number=0, purpose=self._purpose, t=self._t, state=known, **fields
        )
        self._next = self._prepared()
        ready = self._wait(process, "ready")
        self.inputs = frozenset(ready.fields["inputs"])
        self._answer_number = ready.fields["number"]
        return process

    def _prepared(self) -> SealedProcess:
        """A new process that gets ready for a task: it imports the plugin and waits.

        It knows nothing of any domain yet. The method is built when the task comes, so that no
        second model takes memory meanwhile.
        """
        process = SealedProcess()
        process.send("prepare", {}, scratch=process.scratch, **describe(self._job))
        return process

    def _wait(
        self, process: SealedProcess, kind: str, views: Mapping[int, TrainDomain] | None = None
    ) -> Message:
        """Serve a process until it sends a message of this kind."""
        while (message := process.receive()) is not None:
            if message.kind == kind:
                return message
            if message.kind == "failed":
                self._folder.log(message.fields["traceback"])
                self._end()
                kind_of_error = getattr(errors, message.fields["error"], PluginError)
                raise kind_of_error(message.fields["message"], message.fields["remedy"])
            self._serve(process, message, views or {})
        raise _death(self._job.spec.method, self._doing, self._end(), self._folder)

    @property
    def _doing(self) -> str:
        return _DOING[self._purpose].format(self._t + 1)

    def _serve(
        self, process: SealedProcess, message: Message, views: Mapping[int, TrainDomain]
    ) -> None:
        """Answer a question of a process, or show how far it is."""
        fields = message.fields
        match message.kind:
            case "texts":
                embedded = self._job.backbone.encode_text(fields["texts"])
                process.send("texts", {"texts": embedded}, number=fields["number"])
            case "features" | "views":
                pixels = _views(_allowed(views, fields), message)
                process.send("views", {"views": pixels}, number=fields["number"])
            case "phase":
                stack = self._phases[fields["id"]] = ExitStack()
                stack.enter_context(self._progress.phase(fields["name"], fields["total"]))
            case "phase over":
                self._phases.pop(fields["id"]).close()
            case "say":
                self._progress.say(fields["text"])
            case "advance":
                self._progress.advance(fields["amount"])

    def _release(self) -> None:
        """Kill the process at work, if there is one; while it ends, the next one may begin.

        What was noted about it so far is kept at once: the next domain may never come.
        """
        self._bury()
        process, self._process = self._process, None
        self._close_phases()
        if process is not None:
            self._judge(process.kill(), self._doing)
            self._ending.append((process, self._doing))

    def _bury(self) -> None:
        """Wait until those that were killed are gone, and keep what they left."""
        while self._ending:
            self._keep(*self._ending.pop())

    def _end(self) -> Ended:
        """Wait for the end of the process at work, which has failed."""
        process, self._process = self._process, None
        self._close_phases()
        return Ended() if process is None else self._keep(process, self._doing)

    def _keep(self, process: SealedProcess, doing: str) -> Ended:
        """What a process printed goes to the run's log, what it did is judged."""
        ended = process.close()
        if ended.printed.strip():
            self._folder.log(f"output of {doing}:\n{ended.printed}")
        self._judge(ended.notes, doing)
        return ended

    def _judge(self, notes: bytes, doing: str) -> None:
        for sentence in judged(notes, self._secret):
            suspect(self._folder.path, f"the process {doing} {sentence}")

    def _close_phases(self) -> None:
        while self._phases:
            self._phases.popitem()[1].close()


def _allowed(views: Mapping[int, TrainDomain], fields: Mapping[str, Any]) -> TrainDomain:
    """The open view of the domain asked for; other domains and positions are not served."""
    domain = views.get(fields["domain"])
    positions = fields.get("positions", [])
    if domain is None or not all(0 <= p < len(domain) for p in positions):
        raise PluginError("a sealed method asked for images that are not those of its domain")
    return domain


def _views(domain: TrainDomain, message: Message) -> torch.Tensor:
    samples, pictures = domain._open_samples(), domain._pictures
    if message.kind == "features":
        domain._ledger.note(domain.index, samples.labels)
        return pictures.features(samples)
    positions, seeds = message.fields["positions"], message.fields["seeds"]
    domain._ledger.note(domain.index, samples.labels, positions)
    [views] = pictures.batches(samples, [(positions, seeds)])
    return views


def _death(method: str, doing: str, ended: Ended, folder: RunFolder) -> PluginError:
    """The error for a process that ended without a word."""
    code = ended.code
    how = f"ended with exit code {code}"
    if code is None:
        how = "ended"
    elif code < 0:
        how = f"was killed by {signal.Signals(-code).name}"
    memory = " (often for lack of memory)" if code == -signal.SIGKILL else ""
    last = ended.printed.strip().splitlines()[-1:]
    return PluginError(
        f"method '{method}': the process {doing} {how}{memory}"
        + "".join(f"; its last words: {line}" for line in last),
        f"All that it printed is in {folder.path / 'log.txt'}. "
        "The same command resumes after the last finished domain.",
    )
