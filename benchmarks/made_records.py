"""Records without runs: any number of them, with predictions, within seconds.

Accuracies follow a simple law (the method's level, less for every later domain, plus noise by
seed), and everything else in a record is as a run would write it.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from fsdil_bench.records.metrics import accuracy_row, scores
from fsdil_bench.records.record import PREDICTIONS_FILE, RECORD_FILE, Record, file_sha256

CLASSES = 5


def make_record(
    out: Path,
    method: str = "made",
    scenario: str = "made-1shot",
    seed: int = 0,
    *,
    level: float = 0.8,
    domains: int = 4,
    images: int = 60,
    exemplar_free: bool = True,
    sealed: bool = False,
    router: bool = False,
    summary: str = "a method that was never run",
    config: dict[str, Any] | None = None,
    backbone: str = "made-clip",
    **provenance: Any,
) -> Record:
    """Write the record of a run that never was below `out`; its numbers follow from its arguments.

    Seeds draw from the same stream of chances for all methods, so that differences between methods
    are paired as in real runs.
    """
    names = [f"domain {t}" for t in range(domains)]
    domain_of = np.repeat(np.arange(domains), images)
    labels = np.tile(np.arange(images) % CLASSES, domains)
    generator = np.random.default_rng([seed, domains, images])
    common = np.random.default_rng(1).random(len(labels))  # some images are hard for all seeds
    hardness = 0.9 * generator.random(len(labels)) + 0.1 * common
    arrays: dict[str, np.ndarray] = {
        "labels": labels.astype(np.int32), "domains": domain_of.astype(np.int16)
    }  # fmt: skip
    matrix, oracle, routing = [], [], []
    for t in range(domains):
        seen = domain_of <= t
        chance = level - 0.06 * domain_of[seen] - 0.02 * (t - domain_of[seen])
        right = hardness[seen] < chance
        arrays[f"classes_{t}"] = np.where(right, labels[seen], (labels[seen] + 1) % CLASSES)
        matrix.append(accuracy_row(right, domain_of[seen], t + 1))
        if router:
            told = hardness[seen] < chance + 0.03
            arrays[f"oracle_{t}"] = np.where(told, labels[seen], (labels[seen] + 1) % CLASSES)
            oracle.append(accuracy_row(told, domain_of[seen], t + 1))
            own = domain_of[seen]
            found = np.arange(len(own)) % 25 >= 2 * t  # 8 % more go astray after every domain
            arrays[f"routed_{t}"] = np.where(
                found, domain_of[seen], (domain_of[seen] + 1) % (t + 1)
            )
            routing.append(100.0 * float(found.mean()))
    spec = {
        "method": method, "config": config or {}, "scenario": scenario, "seed": seed,
        "backbone": backbone, "precision": "fp32", "order": names, "base_limit": None,
        "scenario_options": {},
    }  # fmt: skip
    run_id = _short(json.dumps([spec, level, sealed, exemplar_free]), 8)
    folder = out / scenario / _short(method, 4) / f"seed{seed}-{run_id}"
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / PREDICTIONS_FILE, **arrays)  # type: ignore[arg-type]
    counts = [images] * domains
    record = Record(
        run_id=run_id,
        spec=spec,
        scenario={
            "digest": _short(f"{scenario} {seed}", 32),
            "classes": [f"class {i}" for i in range(CLASSES)],
            "transform": {"preset": "clip", "size": 48},
            "domains": [
                {"name": name, "test": images, "test_sha256": _short(name, 32), "train": 5,
                 "train_sha256": _short(f"{name} {seed}", 32)}
                for name in names
            ],
        },
        method={
            "summary": summary, "paper": "", "exemplar_free": exemplar_free, "weights": "0" * 64,
            "code": {"method": _short(method, 8), "scenario": "0" * 16},
        },
        matrix=matrix,
        metrics=scores(matrix, counts),
        oracle_matrix=oracle if router else None,
        oracle_metrics=scores(oracle, counts) if router else None,
        routing=routing or None,
        sealed=sealed,
        cost=_cost(level, seed, domains, images),
        provenance={
            "time": f"2026-01-01T00:00:{seed % 60:02}+00:00", "python": "3.11.0", "device": "cpu",
            "packages": {"fsdil-bench": "0.1.0"}, "platform": "nowhere", "processor": "none",
            "command": "",
        }
        | provenance,
        predictions_sha256=file_sha256(folder / PREDICTIONS_FILE),
        folder=folder,
    )  # fmt: skip
    (folder / RECORD_FILE).write_text(record.to_json(), encoding="utf-8")
    return record


def make_records(out: Path, count: int, *, seeds: int = 5, **options: Any) -> list[Record]:
    """`count` records: every method on four numbers of shots, on as many data sets as needed."""
    records = []
    for number in range(count):
        rest, seed = divmod(number, seeds)
        rest, shots = divmod(rest, 4)
        dataset, method = divmod(rest, 20)
        records.append(
            make_record(
                out, f"method-{method}", f"made{dataset}-{2**shots}shot", seed,
                level=0.6 + 0.013 * method + 0.01 * shots, router=method % 2 == 0,
                config={"lr": 0.1 * method, "steps": 10}, **options,
            )
        )  # fmt: skip
    return records


def _cost(level: float, seed: int, domains: int, images: int) -> dict[str, Any]:
    learn = [round(100 ** (2 * level - 1) * (1 + 0.01 * seed), 4)] * domains
    predict = [round(0.01 * (t + 1) / level, 4) for t in range(domains)]
    handed = [images * (t + 1) for t in range(domains)]
    return {
        "seconds": {"learn": round(sum(learn), 4), "predict": round(sum(predict), 4)},
        "images": {"learn": 5 * domains, "predict": sum(handed)},
        "per_domain": [
            {"seconds": {"learn": a, "predict": b}, "images": {"learn": 5, "predict": c}}
            for a, b, c in zip(learn, predict, handed, strict=True)
        ],
        "peak_memory_bytes": 2**28 + seed,
        "state_bytes": [int(1000 * level * (t + 1)) for t in range(domains)],
        "trained_parameters": [int(1000 * level)] * domains,
    }


def _short(text: str, size: int) -> str:
    return hashlib.blake2b(text.encode(), digest_size=size).hexdigest()
