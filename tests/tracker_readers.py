"""What TensorBoard, MLflow and W&B hold of runs, read back with their own libraries."""

from __future__ import annotations

import json
import struct
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Logged:
    """One run: all values by name with their steps, its parameters, the copy of its record."""

    name: str
    curves: dict[str, list[tuple[int, float]]] = field(default_factory=lambda: defaultdict(list))
    params: dict[str, object] = field(default_factory=dict)
    record: str | None = None
    ended: str = ""
    bits: int = 64

    def final(self, name: str) -> float:
        """The value that was logged once."""
        [(_, value)] = self.curves[name]
        return value

    def steps(self, name: str = "seen/mean") -> list[int]:
        """The steps of a value, in the order in which they were logged."""
        return [step for step, _ in self.curves[name]]


def read_tensorboard(runs: Path) -> list[Logged]:
    """The runs below the folder of all runs."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.util.tensor_util import make_ndarray

    found = []
    base = runs / "trackers/tensorboard"
    for folder in sorted({path.parent for path in base.rglob("events.out.*")}):
        events = EventAccumulator(str(folder), size_guidance={"scalars": 0})
        events.Reload()
        logged = Logged(str(folder.relative_to(base)), bits=32)
        for name in events.Tags()["scalars"]:
            logged.curves[name] = [(each.step, each.value) for each in events.Scalars(name)]
        texts = {
            name.partition("/")[0]: make_ndarray(events.Tensors(name)[0].tensor_proto)
            for name in events.Tags()["tensors"]
            if name.endswith("/text_summary")
        }
        for name, array in texts.items():
            text = array.reshape(-1)[0].decode()
            if name == "run":
                rows = text.splitlines()[2:]
                logged.params |= dict(row[2:-2].split(" | ", 1) for row in rows)
            else:
                logged.record = text.removeprefix("```json\n").removesuffix("```")
        found.append(logged)
    return found


def read_mlflow(runs: Path, uri: str = "") -> list[Logged]:
    """The runs in the file below the folder of all runs, or elsewhere."""
    from mlflow.tracking import MlflowClient

    from fsdil_bench.trackers.mlflow_tracker import TAG

    client = MlflowClient(uri or f"sqlite:///{runs.absolute()}/trackers/mlflow/mlflow.db")
    experiments = [each.experiment_id for each in client.search_experiments()]
    found = []
    for run in client.search_runs(experiments):
        number = run.info.run_id
        logged = Logged(run.data.tags[TAG], params=dict(run.data.params), ended=run.info.status)
        for name in run.data.metrics:
            for metric in client.get_metric_history(number, name):
                logged.curves[name].append((metric.step, metric.value))
        for file in client.list_artifacts(number):
            assert not file.is_dir
            logged.record = Path(client.download_artifacts(number, file.path)).read_text()
        found.append(logged)
    return sorted(found, key=lambda each: each.name)


def read_wandb(runs: Path) -> list[Logged]:
    """The runs that were logged offline. What several processes have logged is put together."""
    found: dict[str, Logged] = {}
    for file in sorted((runs / "trackers/wandb").glob("offline-run-*/*.wandb")):
        for record in whole_wandb_file(file):
            kind = record.WhichOneof("record_type")
            if kind == "run":
                key = record.run.run_id
                logged = found.setdefault(key, Logged(key))
                logged.params |= {
                    each.key: json.loads(each.value_json) for each in record.run.config.update
                }
            elif kind == "history":
                values = {_key(each): json.loads(each.value_json) for each in record.history.item}
                for name, value in values.items():
                    logged.curves[name].append((values["_step"], value))
            elif kind == "summary":
                for each in record.summary.update:
                    if not _key(each).startswith(("_", "seen", "accuracy", "cost", "diagnostics")):
                        value = json.loads(each.value_json)
                        logged.curves[_key(each)] = [(len(logged.steps()), value)]
            elif kind == "artifact":
                [content] = record.artifact.manifest.contents
                logged.record = Path(content.local_path).read_text()
            elif kind == "exit":
                logged.ended = str(record.exit.exit_code)
    return sorted(found.values(), key=lambda each: each.name)


def _key(item) -> str:
    return item.key or ".".join(item.nested_key)


def whole_wandb_file(file: Path) -> list:
    """The records of a file up to its last one: a process of W&B writes it, and may need a moment
    longer than the run."""
    deadline = time.monotonic() + 60
    while True:
        records = list(wandb_records(file))
        if any(record.WhichOneof("record_type") == "exit" for record in records):
            return records
        assert time.monotonic() < deadline, f"{file} has no end"
        time.sleep(0.05)


def wandb_records(file: Path) -> Iterator:
    """The records of a .wandb file: W&B's messages in the form of LevelDB's log.

    W&B's own reader is a program for its servers; its messages come with the library.
    """
    from wandb.proto import wandb_internal_pb2

    data, i, whole = file.read_bytes(), 7, b""
    while i < len(data):
        if (left := 32768 - i % 32768) < 7:
            i += left
            continue
        if i + 7 > len(data):
            return
        _, size, kind = struct.unpack("<IHB", data[i : i + 7])
        if kind == 0:
            return
        if i + 7 + size > len(data):  # half-written
            return
        whole += data[i + 7 : i + 7 + size]
        i += 7 + size
        if kind in (1, 4):  # the whole message, or its last part
            record = wandb_internal_pb2.Record()
            record.ParseFromString(whole)
            yield record
            whole = b""


READERS = {"tensorboard": read_tensorboard, "mlflow": read_mlflow, "wandb": read_wandb}
