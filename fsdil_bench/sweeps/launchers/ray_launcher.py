"""The launcher for Ray clusters (extra `ray`): one actor per run, which starts the worker process.

An actor waits in Ray's queue until a node has the resources of its run. Nothing is retried by Ray:
what a lost node was running is reported as lost, and the scheduler of the sweep submits it again.
Runs write into their folders on a shared file system, or (`transfer`) travel through Ray.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from fsdil_bench.errors import HeldError, RequestError
from fsdil_bench.exit_codes import BUSY
from fsdil_bench.plugins.options import option
from fsdil_bench.runs.run_folder import RunFolder

from .launcher import Event, LauncherSetup, Resources, Task
from .process import own_environment
from .transfer import pack_request, take_home

_LOOK = 2.0  # seconds between two looks at the nodes of the cluster
_GB = 10**9
_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".",  # what raylets say would end up among the sweep's own lines
}


@dataclass(frozen=True)
class RayOptions:
    """What `--launcher-set` can say to the Ray launcher."""

    address: str = option(
        "auto",
        "the cluster: host:port, ray://host:port, auto (RAY_ADDRESS, or the one on this machine) "
        "or local (one is started for the sweep)",
    )
    gpus: float = option(0.0, "GPUs of a run that asks for none; 0.5: two share one", minimum=0)
    memory_gb: float = option(0.0, "memory of a run that asks for none; 0: any", minimum=0)
    transfer: bool = option(
        False, "the nodes do not share this machine's files: send runs there and results back"
    )
    python: str = option("", "the interpreter on the nodes, if it is another than Ray's")
    autoscale: bool = option(False, "also queue runs that no node is large enough for yet")
    timeout: float = option(30.0, "seconds to wait for the cluster to answer", minimum=1)


@dataclass
class _Flight:
    """A task on its way: the actor, and what is to come from it next."""

    task: Task
    actor: Any
    ref: Any
    started: bool = False
    held: ExitStack = field(default_factory=ExitStack)


class RayLauncher:
    """Tasks as actors of a Ray cluster that this process is connected to."""

    def __init__(self, ray: Any, setup: LauncherSetup, *, own: bool) -> None:
        self._ray = ray
        self._jobs = setup.jobs
        self._threads = setup.threads
        self._options: RayOptions = setup.options or RayOptions()
        self._own = own  # the connection ends with the sweep
        self._flights: dict[str, _Flight] = {}
        self._events: list[Event] = []
        self._seen: set[tuple[tuple[str, float], ...]] = set()
        self._looked, self._room = float("-inf"), 1

    def capacity(self) -> int:
        """`jobs`, or as many runs as the nodes that are there have room for."""
        if self._jobs:
            return self._jobs
        if time.monotonic() - self._looked > _LOOK:
            self._looked = time.monotonic()
            needs = self._needs(Resources(cpus=self._threads))
            self._room = max(1, sum(_fits(node, needs) for node in self._nodes()))
        return self._room

    def submit(self, tasks: Sequence[Task]) -> None:
        """Create an actor for each task."""
        for task in tasks:
            needs = self._needs(task.resources)
            if not self._possible(needs):
                said = ", ".join(f"{amount:g} {name}" for name, amount in needs.items())
                self._events.append(
                    task.event(
                        "failed",
                        reason=f"no node of the Ray cluster has {said}",
                        remedy="Ask for less, or set autoscale=true if larger nodes will come.",
                        retry=False,
                    )
                )
                continue
            try:
                self._begin(task, needs)
            except HeldError as error:
                held = task.event("failed", reason=error.message, exit_code=BUSY)
                self._events.append(held)

    def poll(self, timeout: float) -> list[Event]:
        """What the actors report."""
        if not self._events:
            flying = {flight.ref: flight for flight in self._flights.values()}
            if not flying:
                time.sleep(timeout)
            else:
                done, _ = self._ray.wait(list(flying), num_returns=1, timeout=timeout)
                more, _ = self._ray.wait(list(flying), num_returns=len(flying), timeout=0)
                for ref in dict.fromkeys([*done, *more]):
                    self._hear(flying[ref])
        events, self._events = self._events, []
        return events

    def cancel(self, keys: Collection[str], *, force: bool = False) -> None:
        """Stop the workers; those still in Ray's queue are taken out of it."""
        for key in keys:
            flight = self._flights.get(key)
            if flight is None:
                continue
            if flight.started and not force:
                flight.actor.stop.remote(False)
            elif flight.started:
                flight.actor.stop.remote(True)
            else:
                self._land(flight, flight.task.event("lost", reason="stopped before it began"))

    def close(self) -> None:
        """Kill what is still there and leave the cluster."""
        for flight in list(self._flights.values()):
            self._land(flight)
        if self._own and self._ray.is_initialized():
            self._ray.shutdown()

    def _begin(self, task: Task, needs: dict[str, float]) -> None:
        with ExitStack() as held:
            parcel = None
            if self._options.transfer:  # nobody else may run it here meanwhile
                held.enter_context(RunFolder(task.folder).locked())
                parcel = pack_request(task)
            actor = self._actor(needs)
            environment = {} if self._options.transfer else own_environment()
            ref = actor.start.remote(task.to_json(), environment, self._options.python, parcel)
            self._flights[task.key] = _Flight(task, actor, ref, held=held.pop_all())

    def _actor(self, needs: dict[str, float]) -> Any:
        from .ray_node import Node

        kind = self._ray.remote(Node).options(
            num_cpus=needs["CPU"],
            num_gpus=needs.get("GPU", 0),
            memory=int(needs["memory"]) if "memory" in needs else None,
            max_restarts=0,
            max_task_retries=0,
            max_concurrency=3,  # stop() while wait() waits
        )
        return kind.remote()

    def _hear(self, flight: _Flight) -> None:
        """An actor has started its worker, has seen its end, or is gone."""
        try:
            news = self._ray.get(flight.ref)
        except self._ray.exceptions.RayError as error:
            self._land(flight, flight.task.event("lost", reason=_explained(error)))
            return
        if flight.started:
            code, parcel = news
            if parcel is not None:
                take_home(flight.task, parcel)
            self._land(flight, flight.task.ended(code))
        elif "blind" in news:
            missing = flight.task.event(
                "failed",
                reason=f"node {news['blind']} does not see {flight.task.scratch}",
                remedy="Sweep into a folder that all nodes share, or set transfer=true.",
                retry=False,
            )
            self._land(flight, missing)
        else:
            flight.started = True
            flight.ref = flight.actor.wait.remote()
            self._events.append(flight.task.event("started", **news))

    def _land(self, flight: _Flight, event: Event | None = None) -> None:
        """Give back what a task holds, and report its end."""
        del self._flights[flight.task.key]
        with suppress(Exception):  # it may be gone with its node
            self._ray.kill(flight.actor)
        flight.held.close()
        if event is not None:
            self._events.append(event)

    def _needs(self, resources: Resources) -> dict[str, float]:
        needs: dict[str, float] = {"CPU": resources.cpus}
        if gpus := resources.gpus or self._options.gpus:
            needs["GPU"] = gpus
        if memory := resources.memory_gb or self._options.memory_gb:
            needs["memory"] = memory * _GB
        return needs

    def _possible(self, needs: dict[str, float]) -> bool:
        """Whether some node has, or once had, the room for such a run."""
        shape = tuple(sorted(needs.items()))
        if shape not in self._seen and any(_fits(node, needs) for node in self._nodes()):
            self._seen.add(shape)
        return self._options.autoscale or shape in self._seen

    def _nodes(self) -> list[dict[str, float]]:
        return [node["Resources"] for node in self._ray.nodes() if node["Alive"]]


def launch(setup: LauncherSetup) -> RayLauncher:
    """The launcher for `fsdil-bench sweep --launcher ray`."""
    for name, value in _QUIET.items():  # Ray reads them when it is imported
        os.environ.setdefault(name, value)
    import ray

    if ray.is_initialized():
        return RayLauncher(ray, setup, own=False)
    options = setup.options or RayOptions()
    _connect(ray, options)
    return RayLauncher(ray, setup, own=True)


def _connect(ray: Any, options: RayOptions) -> None:
    address = options.address
    if address == "auto":
        address = os.environ.get("RAY_ADDRESS", "auto")
    if address not in ("auto", "local"):
        _check_answers(address, options.timeout)
    if address == "local":
        os.environ.setdefault("RAY_worker_niceness", "0")  # as with the launcher 'local'
    try:
        with _signals_kept():
            ray.init(address=address, log_to_driver=False, logging_level="ERROR")
    except Exception as error:
        if address == "auto":
            raise RequestError(
                "no Ray cluster was found on this machine",
                "Start one (`ray start --head`), or name one: --launcher-set address=HOST:6379; "
                "address=local starts one for this sweep.",
            ) from error
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise RequestError(
            f"the Ray cluster at {address} cannot be used: {reason[0]}",
            "Ray and Python must have the same versions here and there.",
        ) from error


def _check_answers(address: str, timeout: float) -> None:
    """Ray itself would wait for minutes."""
    plain = address.removeprefix("ray://")
    host, _, port = plain.rpartition(":")
    remedy = "Check --launcher-set address=HOST:PORT; `ray status` on its head node shows it."
    if not host or not port.isdecimal():
        raise RequestError(f"'{address}' is no address of a Ray cluster", remedy)
    silent = RequestError(f"no Ray cluster answers at {address}", remedy)
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout).close()
    except (OSError, OverflowError):
        raise silent from None
    if address == plain:
        command = [sys.executable, "-m", "ray.scripts.scripts", "health-check", "--address", plain]
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=timeout)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
            raise silent from None


@contextmanager
def _signals_kept() -> Iterator[None]:
    """Ray replaces the handler of SIGTERM; the sweep has one of its own."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _fits(node: dict[str, float], needs: dict[str, float]) -> int:
    """How many runs a node has room for."""
    return min(
        (int(node.get(name, 0) / amount) for name, amount in needs.items() if amount), default=0
    )


def _explained(error: Exception) -> str:
    """What Ray says, without the ids and traces around it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if "ActorUnavailable" in type(error).__name__:  # nobody knows yet what became of it
        return "its node, or Ray's process there, is gone"
    causes = [line for line in lines if line.startswith("The actor is dead because")]
    return (causes or lines or [type(error).__name__])[-1]
