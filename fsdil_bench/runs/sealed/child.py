"""Sealed runs, the method's side: what a process does that the harness has started for one task.

It learns a domain, or predicts batches of test images. Whatever a method leaves in memory ends
with the task. Processes are copies of a fork server that has imported this module.
"""

from __future__ import annotations

import faulthandler
import os
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch

from fsdil_bench.data.scenario import Samples, ScenarioId, Stream
from fsdil_bench.data.stream_guard import no_streams
from fsdil_bench.data.transforms import build_transform
from fsdil_bench.errors import FsdilError, PluginError
from fsdil_bench.models.backbone import Backbone
from fsdil_bench.models.device import numerics
from fsdil_bench.plugins.code_hash import code_version
from fsdil_bench.plugins.described import describe
from fsdil_bench.plugins.method import Method
from fsdil_bench.plugins.options import resolve
from fsdil_bench.plugins.registry import Registry, load_registry
from fsdil_bench.records.identity import RunSpec
from fsdil_bench.runs.cost import Meter, peak_memory_bytes
from fsdil_bench.runs.job import Job, load_method_class
from fsdil_bench.runs.lookup import describe_backbone
from fsdil_bench.runs.plugin_calls import call_plugin, checked_state, predicted_ids
from fsdil_bench.runs.request import RunRequest
from fsdil_bench.runs.self_report import self_report
from fsdil_bench.runs.views import Batch, TrainDomain
from fsdil_bench.seeds import seed_everything
from fsdil_bench.system import landlock

from .import_guard import ImportGuard
from .libraries import import_libraries
from .remote import Harness, RemotePictures, RemoteProgress
from .watch import watch
from .wire import Channel, Message

#: Variables that name a folder to write to; it is the process's own.
_OWN_FOLDER = (
    "FSDIL_CACHE", "FSDIL_DATA", "TMPDIR", "MPLCONFIGDIR", "TRITON_CACHE_DIR", "CUDA_CACHE_PATH",
)  # fmt: skip


def preload() -> None:
    """Get ready what every method needs."""
    registry = _own_plugins()
    for name, info in registry.backbones.items():
        if not info.pattern:
            _own_backbone(name)
    _openmp_of_intel()
    for method in registry.methods.values():
        code_version(method.factory)  # remembers what it has read


def preload_more(names: Sequence[str]) -> None:
    """Import what most backbones need to run the model, or what a method is made with."""
    import_libraries(names)


@cache
def _own_plugins() -> Registry:
    """All plugins, of which those of third parties are not imported yet."""
    return load_registry((), ())


@cache
def _own_backbone(name: str) -> Backbone:
    """A backbone that comes with the harness, described: the hash of its weights takes a while."""
    return describe_backbone(_own_plugins().backbone(name), name)


@cache
def _openmp_of_intel() -> bool:
    """Whether torch runs on Intel's OpenMP; a process has thousands of lines to read for this."""
    maps = Path("/proc/self/maps")
    return maps.exists() and "libiomp" in maps.read_text(encoding="utf-8")


def main(order: Mapping[str, Any], descriptors: Sequence[int]) -> NoReturn:
    """Do the task that comes over the line with the first descriptor, then end at once.

    What should not happen is noted on the second one.
    """
    del order
    faulthandler.enable()
    code = 0
    channel = Channel(Connection(descriptors[0]))
    try:
        _work(channel, descriptors[1])
    except BaseException as error:
        code = 1
        said = error if isinstance(error, FsdilError) else _unexpected(error)
        channel.send(
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


def _work(channel: Channel, notes: int) -> None:
    """Get ready without knowing the task, which may come much later; then do it."""
    message = channel.receive()
    task = message.fields
    torch.set_num_threads(task["threads"])
    os.environ.clear()
    os.environ |= task["environment"]
    sys.path[:] = task["paths"]
    os.chdir(task["folder"])  # the backbone may be given as a path
    describing = message.kind == "describe"
    registry = _own_plugins()
    registry.add_files(task["files"])
    # The backbone comes first if it is the harness's own: to find its weights takes the cache.
    model = None if describing or not task["own_backbone"] else _backbone(registry, task)
    import_libraries(task.get("libraries", ()))  # where no fork server has done it
    _seal(task, notes, scenarios=describing)
    # From here on code of third parties is imported, and only then are there more threads.
    registry.open(task["plugins"])
    if describing:
        [plugin] = [each for each in registry.plugins if each.key in task["plugins"]]
        channel.send("described", **describe(registry, plugin))
        return
    harness = Harness(channel, task["scratch"])
    with numerics(task["precision"], deterministic=task["deterministic"]):
        job = _job(task, harness, registry, model or _backbone(registry, task))
        with no_streams():
            _do(harness, job, harness.answer(0))


def _seal(task: Mapping[str, Any], notes: int, *, scenarios: bool) -> None:
    """Leave this process nothing but its own folder to write to, and no way to a scenario."""
    scratch = task["scratch"]
    os.chdir(scratch)
    os.environ |= dict.fromkeys(_OWN_FOLDER, scratch)
    tempfile.tempdir = None  # ask the environment again
    note = watch(notes, scratch)
    if not scenarios:
        ImportGuard(task["refused"], note).install()
    if task["landlock"]:
        # Intel's OpenMP ends the process if it cannot leave its mark there.
        shared = ["/dev/shm"] if _openmp_of_intel() else []
        landlock.write_only_below([scratch, *shared], existing=["/dev"])


def _backbone(registry: Registry, task: Mapping[str, Any]) -> Backbone:
    """The backbone, described but not built."""
    name = task["backbone"]
    if task["own_backbone"] and name in _own_plugins().backbones:
        return _own_backbone(name)
    before = os.environ.get("FSDIL_CACHE")
    if task["own_backbone"]:
        os.environ["FSDIL_CACHE"] = task["cache"]  # hashes of large files of weights
    try:
        return describe_backbone(registry.backbone(name), name)
    finally:
        os.environ.pop("FSDIL_CACHE", None)
        if before is not None:
            os.environ["FSDIL_CACHE"] = before


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


def _job(task: dict[str, Any], harness: Harness, registry: Registry, backbone: Backbone) -> Job:
    """What the method is built from, without a way to any stream."""
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
    how = [task[name] for name in ("batch_size", "checkpointing", "compile")]
    backbone.place(place, task["precision"], None, names, *how)
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
    transform = build_transform(job.stream.transform, job.backbone.image)
    progress = RemoteProgress(harness)

    def view(i: int, earlier: tuple[TrainDomain, ...] | None) -> TrainDomain:
        labels = message.tensors[f"labels.{i}"].numpy()
        samples = Samples(tuple(map(str, range(len(labels)))), labels, _no_loader)
        pictures = RemotePictures(harness, i, job.backbone, transform, meter)
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
        built=job.backbone.built,
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
        ids = torch.from_numpy(predicted_ids(name, method, message.fields["call"], batch, *given))
        number = harness.expect()
        peak = peak_memory_bytes(device)
        harness.tell("predicted", {"ids": ids}, number=number, peak_memory_bytes=peak)


def _part(message: Message, prefix: str) -> dict[str, torch.Tensor]:
    return {
        name.removeprefix(prefix): tensor
        for name, tensor in message.tensors.items()
        if name.startswith(prefix)
    }


def _no_loader(sample_id: str) -> np.ndarray:
    raise PluginError(f"image {sample_id} cannot be read in a sealed run but through the views")


if __name__ == "__main__":  # where no process can be forked
    main({}, [int(word) for word in sys.argv[1:]])
