"""Leaderboards from run records: Markdown and CSV, the same bytes for the same records.

One board per scenario, domain order, backbone and precision: results that do not compare never
share a table. A row is one method with one config and one code version; its value is the mean
and the population standard deviation over seeds.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import pandas as pd

from .audit import worst
from .folder import write_atomically
from .metrics import METRICS, mean_and_std, unseen_accuracy
from .record import PREDICTIONS_FILE, RECORD_FILE, Record

_AUDIT_MARKS = {"images": " †", "features": " ‡", "": ""}
_AUDIT_NOTE = (
    "{} by size alone, the state could hold the {} seen so far, or what it grew by those of a new"
    " domain; whether it does was not looked at."
)
_AUDIT_NOTES = {"images": "training images", "features": "frozen features of the training images"}
_FEATURES_NOTE = (
    "§ keeps no images, but its state can hold the frozen feature of a single training image."
)
_SEALED_NOTE = (
    "sealed: every domain was learned in one process and predicted in another, which shared the"
    " method's state alone."
)

BoardKey = tuple[str, str, str]


def write_leaderboards(records: Sequence[Record], out: str | Path) -> list[Path]:
    """Write all boards and an index `README.md` below `out`; returns the files."""
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    index = ["# Leaderboards", "", "| scenario | backbone | methods | runs |", "|---|---|---|---|"]
    for key, members in sorted(group_into_boards(_one_per_run(records)).items()):
        scenario, backbone, _ = key
        table = board(members)
        name = board_name(key)
        write_atomically(folder / f"{name}.md", markdown(key, members, table))
        write_atomically(folder / f"{name}.csv", table.to_csv(index=False, lineterminator="\n"))
        written += [folder / f"{name}.md", folder / f"{name}.csv"]
        index.append(f"| [{scenario}]({name}.md) | {backbone} | {len(table)} | {len(members)} |")
    write_atomically(folder / "README.md", "\n".join(index) + "\n")
    return [folder / "README.md", *written]


def copy_records(records: Sequence[Record], out: str | Path) -> None:
    """Copy records and predictions (no checkpoints) below `out`/records, to publish with boards."""
    for record in records:
        assert record.folder is not None
        scenario = record.spec["scenario"].replace("@", "-at-")
        name = f"seed{record.spec['seed']}-{record.run_id}" + ("-sealed" if record.sealed else "")
        target = Path(out) / "records" / scenario / record.spec["method"] / name
        if target.resolve() != record.folder.resolve():
            target.mkdir(parents=True, exist_ok=True)
            for file in (PREDICTIONS_FILE, RECORD_FILE):  # the record last: it says "complete"
                shutil.copyfile(record.folder / file, target / file)


def group_into_boards(records: Iterable[Record]) -> dict[BoardKey, list[Record]]:
    """Records that may be compared, under (scenario, backbone, what else sets them apart)."""
    boards: dict[BoardKey, list[Record]] = defaultdict(list)
    for record in records:
        spec = record.spec
        apart = {
            "order": spec["order"],
            "precision": spec["precision"],
            "base_limit": spec["base_limit"],
            "options": spec["scenario_options"],
            "weights": record.method["weights"],
            "classes": record.scenario["classes"],
            "tests": [domain["test_sha256"] for domain in record.scenario["domains"]],
            "transform": record.scenario["transform"],
        }
        key = (spec["scenario"], spec["backbone"], json.dumps(apart, sort_keys=True))
        boards[key].append(record)
    return boards


def board_name(key: BoardKey) -> str:
    """A file name for a board, unique for what sets it apart."""
    scenario, backbone, apart = key
    short = hashlib.blake2b(apart.encode(), digest_size=3).hexdigest()
    return f"{scenario}_{backbone}_{short}".replace("@", "-at-").replace(":", "-").replace("/", "-")


def board(records: Sequence[Record]) -> pd.DataFrame:
    """One row per method, config and code version, the best AA* first."""
    rows: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for record in records:
        told_apart = json.dumps([record.spec["config"], record.method["code"]], sort_keys=True)
        rows[record.spec["method"], told_apart].append(record)
    names = [method for method, _ in rows]
    table = []
    for (method, told_apart), members in rows.items():
        mark = hashlib.blake2b(told_apart.encode(), digest_size=2).hexdigest()
        label = method if names.count(method) == 1 else f"{method} [{mark}]"
        notes = _seals(members, records) | _findings(members, records) | _features(members, records)
        table.append(_row(label, members) | notes)
    table.sort(key=lambda row: (-row["AA*"], row["method"]))
    return pd.DataFrame(table)


def markdown(key: BoardKey, records: Sequence[Record], table: pd.DataFrame) -> str:
    """A board as a GitHub-ready page."""
    scenario, backbone, _ = key
    domains = [domain["name"] for domain in records[0].scenario["domains"]]
    notes = [
        f"# {scenario}, {backbone}",
        "",
        f"Domains in order: {', '.join(domains)}. Precision: {records[0].spec['precision']}.",
        "Percent, mean ± population standard deviation over seeds; higher is better throughout"
        " (FA* is forgetting alleviation).",
        "",
    ]
    marks = ["" if free else " \\*" for free in table["exemplar free"]]
    features = table.get("keeps features", pd.Series(False, table.index))
    signs = [" §" if keeps else "" for keeps in features]
    shown = pd.DataFrame({"method": table["method"] + marks + signs})
    for metric in METRICS:
        shown[metric] = [
            _cell(*pair) for pair in zip(table[metric], table[f"{metric} std"], strict=True)
        ]
    if table["routing"].notna().any():
        shown["AA* oracle"] = [_cell(value, None) for value in table["AA* oracle"]]
        shown["routing"] = [_cell(value, None) for value in table["routing"]]
    if "unseen" in table:
        pairs = zip(table["unseen"], table["unseen std"], strict=True)
        shown["unseen"] = [_cell(*pair) for pair in pairs]
    shown["seeds"] = table["seeds"].astype(str)
    if "sealed" in table:
        pairs = zip(table["sealed"], table["seeds"], strict=True)
        shown["sealed"] = [_share(*pair) for pair in pairs]
    shown["learn s"] = [f"{value:.1f}" for value in table["learn s"]]
    shown["predict img/s"] = [f"{value:.0f}" for value in table["predict img/s"]]
    shown["trained"] = [f"{value:,}" for value in table["trained parameters"]]
    shown["state KB"] = [f"{value / 1024:.0f}" for value in table["state bytes"]]
    if "audit" in table:
        shown["state KB"] += [_AUDIT_MARKS[kind] for kind in table["audit"]]
    shown["peak MB"] = [f"{value / 2**20:.0f}" for value in table["peak memory bytes"]]
    text: str = shown.to_markdown(index=False, disable_numparse=True)
    footnote = ["", "\\* keeps old images: a ceiling, not a competitor."] if any(marks) else []
    footnote += ["", _FEATURES_NOTE] if any(signs) else []
    for kind, what in _AUDIT_NOTES.items():
        if "audit" in table and kind in set(table["audit"]):
            footnote += ["", _AUDIT_NOTE.format(_AUDIT_MARKS[kind].strip(), what)]
    if "sealed" in table:
        footnote += ["", _SEALED_NOTE]
    return "\n".join([*notes, text, *footnote]) + "\n"


def _one_per_run(records: Sequence[Record]) -> list[Record]:
    """Copies of the same run (in two folders, say) count once, and of an ordinary and a sealed run
    the sealed one; a fixed order fixes every sum."""
    distinct = {record.run_id: record for record in sorted(records, key=lambda r: r.sealed)}
    return [distinct[run_id] for run_id in sorted(distinct)]


def _row(label: str, records: Sequence[Record]) -> dict[str, Any]:
    free = all(record.method["exemplar_free"] for record in records)
    row: dict[str, Any] = {"method": label}
    for metric in METRICS:
        row[metric], row[f"{metric} std"] = mean_and_std([r.metrics[metric] for r in records])
    oracle = [r.oracle_metrics["AA*"] for r in records if r.oracle_metrics]
    routing = [r.routing[-1] for r in records if r.routing]
    row["AA* oracle"] = mean_and_std(oracle)[0]
    row["routing"] = fmean(routing) if routing else None
    row["seeds"] = len(records)
    seconds = [record.cost["seconds"] for record in records]
    row["learn s"] = fmean(each.get("learn", 0.0) for each in seconds)
    images = [record.cost["images"].get("predict", 0) for record in records]
    row["predict img/s"] = sum(images) / max(
        1e-9, sum(each.get("predict", 0.0) for each in seconds)
    )
    row["trained parameters"] = max(max(r.cost["trained_parameters"]) for r in records)
    row["state bytes"] = max(r.cost["state_bytes"][-1] for r in records)
    row["peak memory bytes"] = max(r.cost["peak_memory_bytes"] for r in records)
    row["exemplar free"] = free
    row["run ids"] = " ".join(sorted(record.run_id for record in records))
    if any(record.unseen for record in records):
        unseen = [unseen_accuracy(record.unseen) for record in records]
        row["unseen"], row["unseen std"] = mean_and_std(unseen)
    return row


def _seals(members: Sequence[Record], board: Sequence[Record]) -> dict[str, int]:
    """How many runs of a row were sealed, on boards where any was."""
    return {"sealed": sum(r.sealed for r in members)} if any(r.sealed for r in board) else {}


def _findings(members: Sequence[Record], board: Sequence[Record]) -> dict[str, str]:
    """What the state of a row's method could hold, on boards where any could hold something."""
    if not any(record.audit for record in board):
        return {}
    return {"audit": worst([found for record in members for found in record.audit or ()])}


def _features(members: Sequence[Record], board: Sequence[Record]) -> dict[str, bool]:
    """Whether a row's method can hold features of single images, on boards where any can."""
    if not any(record.method.get("keeps_features") for record in board):
        return {}
    return {"keeps features": any(bool(r.method.get("keeps_features")) for r in members)}


def _share(part: int, whole: int) -> str:
    return {0: "no", whole: "yes"}.get(part, f"{part} of {whole}")


def _cell(mean: float | None, std: float | None) -> str:
    if mean is None or pd.isna(mean):
        return "–"
    return f"{mean:.2f}" if std is None or pd.isna(std) else f"{mean:.2f} ± {std:.2f}"
