"""Finished runs as tidy data frames, for analyses that no command offers.

`load_runs` has a line per run, `load_accuracies` a line per run, learned domain and tested domain.
The columns `board` and `row` say which runs belong together: `board` is the name of the files of
`fsdil-bench leaderboard`, `row` the label on that board.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fsdil_bench.data.scenario import ScenarioId
from fsdil_bench.errors import RecordError
from fsdil_bench.records.metrics import METRICS, unseen_accuracy
from fsdil_bench.records.record import Record, find_records

from .grouping import SheetKey, board_key, distinct_runs, row_key, row_labels

if TYPE_CHECKING:
    import pandas as pd


def load_runs(*folders: str | Path, strict: bool = False) -> pd.DataFrame:
    """All complete runs below the given folders, a line per run.

    Scores are percentages: `AA*`, `FA*`, `Avg` and `Last`. Methods that guess the domain also have
    the scores with the true domain of every image (`oracle AA*` ...) and `routing`, the share of
    test images whose domain is guessed right at the end. `unseen` is the accuracy on test sets of
    no domain. Times are in seconds. The options of the methods are in columns `option.<name>`. A
    value that a run does not have is missing (NaN or None).

    A run that is there twice counts once. Damaged records are left out with a warning, or refused
    with `strict`.
    """
    import pandas as pd

    records = _read(folders, strict)
    labels = _labels(records)
    lines = [_run(record) | labels[record.run_id] | _results(record) for record in records]
    names = sorted({name for record in records for name in record.spec["config"]})
    for line, record in zip(lines, records, strict=True):
        line |= {f"option.{name}": record.spec["config"].get(name) for name in names}
    numbers = ["routing", "unseen", *(f"oracle {metric}" for metric in METRICS)]
    return pd.DataFrame(lines).astype(dict.fromkeys(numbers, float))  # also where nobody has one


def load_accuracies(*folders: str | Path, strict: bool = False) -> pd.DataFrame:
    """The accuracies of all complete runs below the given folders, in percent.

    There is a line per run, learned domain (`step` is its position, from 0; `learned` its name) and
    tested domain (`domain` and `tested`), as far as the tested domain was learned by then.
    `oracle` is the accuracy with the true domain of every image, for methods that guess it.
    """
    import pandas as pd

    records = _read(folders, strict)
    labels = _labels(records)
    return pd.DataFrame(
        _run(record) | labels[record.run_id] | cell for record in records for cell in _cells(record)
    )


def _read(folders: Iterable[str | Path], strict: bool) -> list[Record]:
    records = distinct_runs(find_records(*folders, strict=strict))
    if not records:
        where = ", ".join(map(str, folders)) or "no folder"
        raise RecordError(f"there is no complete run below {where}", "Give a folder that has runs.")
    return sorted(records, key=lambda r: (r.spec["scenario"], r.spec["method"], r.seed, r.run_id))


def _labels(records: Sequence[Record]) -> dict[str, dict[str, str]]:
    """The board and the row of every run, by run id; labels are as on the leaderboards."""
    sheets: dict[SheetKey, list[Record]] = defaultdict(list)
    for record in records:
        sheets[board_key(record).sheet].append(record)
    found = {}
    for members in sheets.values():
        keys = {r.run_id: row_key(r.spec, r.method["code"]) for r in members}
        labels = row_labels(set(keys.values()))
        for record in members:
            board = board_key(record).file_name
            found[record.run_id] = {"board": board, "row": labels[keys[record.run_id]]}
    return found


def _run(record: Record) -> dict[str, Any]:
    """What says which run a line is of."""
    spec = record.spec
    scenario = ScenarioId.parse(spec["scenario"])
    return {
        "run_id": record.run_id,
        "method": spec["method"],
        "scenario": spec["scenario"],
        "dataset": scenario.dataset,
        "variant": scenario.variant,
        "shots": scenario.shots,
        "seed": record.seed,
        "backbone": spec["backbone"],
        "precision": spec["precision"],
    }


def _results(record: Record) -> dict[str, Any]:
    cost = record.cost
    oracle: Mapping[str, float | None] = record.oracle_metrics or {}
    return {
        **{metric: record.metrics[metric] for metric in METRICS},
        **{f"oracle {metric}": oracle.get(metric) for metric in METRICS},
        "routing": record.routing[-1] if record.routing else None,
        "unseen": unseen_accuracy(record.unseen),
        "learn_seconds": cost["seconds"].get("learn", 0.0),
        "predict_seconds": cost["seconds"].get("predict", 0.0),
        "trained_parameters": max(cost["trained_parameters"]),
        "state_bytes": cost["state_bytes"][-1],
        "peak_memory_bytes": cost["peak_memory_bytes"],
        "exemplar_free": record.exemplar_free,
        "sealed": record.sealed,
        "folder": str(record.folder),
    }


def _cells(record: Record) -> Iterable[dict[str, Any]]:
    names = record.domain_names
    for step, row in enumerate(record.matrix):
        for domain, accuracy in enumerate(row[: step + 1]):
            yield {
                "step": step,
                "learned": names[step],
                "domain": domain,
                "tested": names[domain],
                "accuracy": accuracy,
                "oracle": record.oracle_matrix[step][domain] if record.oracle_matrix else None,
            }
