"""The record of a run that has just gone through its stream, part by part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from fsdil_bench.data.groups import groups_of_tests
from fsdil_bench.data.scenario import Stream
from fsdil_bench.errors import RecordError
from fsdil_bench.records.identity import PROTOCOL, SEALED_SUFFIX
from fsdil_bench.records.metrics import scores
from fsdil_bench.records.record import Record, file_sha256

from .audit import audit_state
from .base_reuse import base_origin
from .provenance import provenance
from .run_folder import RunFolder

if TYPE_CHECKING:
    from fsdil_bench.data.transforms import Transform

    from .job import Job
    from .loop import Outcome

_SAME, _DIFFERENT = "same predictions", "other predictions"  # as records say it

# The part of the predictions in which a sealed run may differ from the ordinary one: it mixes the
# test images differently, and the last bits of a sum may depend on the batch.
_LAST_BITS = 1e-3


def make_record(job: Job, outcome: Outcome, transform: Transform, folder: RunFolder) -> Record:
    """Write the predictions into the run's folder and make the record that belongs to them."""
    stream = job.stream
    tests = [len(domain.test) for domain in stream.domains]
    digest = file_sha256(folder.save_predictions(outcome.predictions | _truth(stream)))
    unseen = {"names": [name for name, _ in stream.unseen], "matrix": outcome.unseen_matrix}
    return Record(
        run_id=job.run_id,
        protocol=PROTOCOL,
        spec=job.spec.to_dict(),
        scenario=_scenario_part(stream, transform),
        method=_method_part(job),
        matrix=outcome.matrix,
        metrics=scores(outcome.matrix, tests),
        oracle_matrix=outcome.oracle_matrix or None,
        oracle_metrics=scores(outcome.oracle_matrix, tests) if outcome.oracle_matrix else None,
        routing=outcome.routing or None,
        unseen=unseen if stream.unseen else None,
        served=[each for each in outcome.served if each] if all(outcome.served) else None,
        audit=_audit_part(job, outcome, transform) if job.info.exemplar_free else None,
        sealed=job.request.sealed,
        warnings=outcome.warnings or None,
        cost=_cost_part(job, outcome),
        diagnostics={"per_domain": outcome.diagnostics} if any(outcome.diagnostics) else {},
        provenance=_provenance_part(job, outcome, folder),
        predictions_sha256=digest,
        folder=folder.path,
    ).hashed()


def differs_from_ordinary(record: Record) -> bool:
    """Whether a sealed run predicted differently from the ordinary one of the same id."""
    return record.provenance.get("ordinary_run") == _DIFFERENT


def _truth(stream: Stream) -> dict[str, np.ndarray]:
    """What the predictions are compared with: label, test set and group of every image."""
    tests = [domain.test for domain in stream.domains]
    sizes = [len(samples) for samples in tests]
    truth: dict[str, np.ndarray] = {
        "labels": np.concatenate([samples.labels for samples in tests]).astype(np.int32),
        "domains": np.repeat(np.arange(len(sizes)), sizes).astype(np.int16),
    }
    groups = groups_of_tests(tests)
    if groups is not None:
        truth["groups"] = groups
    if stream.unseen:
        sizes = [len(samples) for _, samples in stream.unseen]
        labels = np.concatenate([samples.labels for _, samples in stream.unseen])
        truth["unseen_labels"] = labels.astype(np.int32)
        truth["unseen_sets"] = np.repeat(np.arange(len(sizes)), sizes).astype(np.int16)
    return truth


def _scenario_part(stream: Stream, transform: Transform) -> dict[str, Any]:
    unseen = [
        {"name": name, "test": len(samples), "test_sha256": samples.digest()}
        for name, samples in stream.unseen
    ]
    return {
        "digest": stream.digest(),
        "classes": list(stream.class_names),
        "transform": transform.describe(),
        "domains": [
            {
                "name": domain.name,
                "train": len(domain.train),
                "train_sha256": domain.train.digest(),
                "test": len(domain.test),
                "test_sha256": domain.test.digest(),
            }
            for domain in stream.domains
        ],
        **({"unseen": unseen} if unseen else {}),
        **stream.notes,
    }


def _method_part(job: Job) -> dict[str, Any]:
    plugin = job.registry.origin("method", job.spec.method)
    return {
        **({"plugin": plugin.label} if plugin is not None and plugin.third_party else {}),
        "summary": job.info.summary,
        "paper": job.info.paper,
        "exemplar_free": job.info.exemplar_free,
        "keeps_features": job.info.keeps_features,
        "code": job.code,
        "weights": job.backbone.weights_hash,
        **({"backbone": job.backbone.notes} if job.backbone.notes else {}),
    }


def _audit_part(job: Job, outcome: Outcome, transform: Transform) -> list[dict[str, Any]]:
    images = [len(domain.train) for domain in job.stream.domains]
    return audit_state(outcome.state_bytes, images, transform.spec.size, job.backbone.embed_dim)


def _cost_part(job: Job, outcome: Outcome) -> dict[str, Any]:
    from .cost import peak_memory_bytes, total

    peak = max(outcome.peak_memory_bytes, peak_memory_bytes(job.backbone.device))
    return total(outcome.costs) | {
        "per_domain": outcome.costs,
        "peak_memory_bytes": peak,
        "state_bytes": outcome.state_bytes,
        "trained_parameters": outcome.trained_parameters,
    }


def _provenance_part(job: Job, outcome: Outcome, folder: RunFolder) -> dict[str, Any]:
    from fsdil_bench.models.device import repeatable

    device, deterministic = job.backbone.device, job.request.deterministic
    plugins = {plugin.source: plugin.version for plugin in job.registry.plugins if plugin.offers}
    origin = base_origin(folder)
    return {
        **provenance(device, plugins),
        "batch_size": job.backbone.batch_size,
        "compile": job.request.compile,
        "deterministic": deterministic,
        "repeatable": repeatable(device, deterministic),
        "resumed_after": outcome.resumed_after,
        **({"base_from": origin} if origin else {}),
        **(_sealed_part(job, outcome, folder) if job.request.sealed else {}),
    }


def _sealed_part(job: Job, outcome: Outcome, folder: RunFolder) -> dict[str, Any]:
    """What kept a sealed run's method from the rest, whom one has to trust, what was noticed."""
    from .sealed.suspicions import suspicions
    from .sealed.task import sealed_by, third_parties

    trusted = {kind: plugin.label for kind, plugin in third_parties(job).items()}
    trusted.pop("method", None)
    noticed = suspicions(folder.path)
    return {
        "sealed_by": sealed_by(),
        "order_salt": folder.order_salt(),
        **({"trusts": trusted} if trusted else {}),
        **({"suspicions": noticed} if noticed else {}),
        **_compared_with_ordinary(folder, outcome.predictions),
    }


def _compared_with_ordinary(
    folder: RunFolder, predictions: Mapping[str, np.ndarray]
) -> dict[str, str]:
    """Whether a sealed run predicts as the ordinary one of the same id, if that is complete."""
    ordinary = RunFolder(folder.path.with_name(folder.path.name.removesuffix(SEALED_SUFFIX)))
    try:
        before = Record.load(ordinary.path).predictions()
    except RecordError:  # not complete, or damaged since
        return {}
    total = sum(map(len, predictions.values()))
    differ = sum(int((before[name] != own).sum()) for name, own in predictions.items())
    if differ > _LAST_BITS * total:
        return {"ordinary_run": _DIFFERENT}
    return {"ordinary_run": _SAME + (f" but for {differ} of {total:,}" if differ else "")}
