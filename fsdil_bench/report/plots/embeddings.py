"""A map of the test images in two dimensions: as the frozen backbone sees them, and as the method
sees them at the end.

It is coloured once by class and once by domain, and made with UMAP where that is installed, with
principal components otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fsdil_bench.errors import RecordError
from fsdil_bench.plugins.registry import Registry
from fsdil_bench.progress import Progress
from fsdil_bench.records.record import Record
from fsdil_bench.runs.job import Job, prepare
from fsdil_bench.runs.rerun import identity_differences, request_of
from fsdil_bench.runs.run_folder import RunFolder
from fsdil_bench.seeds import numpy_generator

from .style import (
    MARKERS,
    PALETTE,
    check_ending,
    in_style,
    new_figure,
    run_name,
    save,
    set_headline,
)

if TYPE_CHECKING:
    import torch

MOST_POINTS = 1500


@in_style
def plot_embeddings(
    record: Record, file: Path, registry: Registry, **request: str | Path | None
) -> Path:
    """Draw the map of a finished run into `file` (PNG, SVG or PDF by its ending).

    `request` completes what a record does not hold: `data`, `names`, `synonyms`, `backbone` where
    the weights are a file, `device`.
    """
    check_ending(file)
    job = _job_of(record, registry, request)
    before, after, labels, domains = _embeddings(job, record)
    panels = [("frozen backbone", _flatten(before))]
    if after is not None:
        panels.append((f"{record.spec['method']}, at the end", _flatten(after)))

    figure, axes = new_figure(11, 5.2 * len(panels), len(panels), 2)
    for (title, points), (by_class, by_domain) in zip(panels, axes, strict=True):
        _scatter(by_class, points, labels, job.stream.class_names, f"{title}: by class")
        names = [domain.name for domain in job.stream.domains]
        _scatter(by_domain, points, domains, names, f"{title}: by domain")
    means = "UMAP" if find_spec("umap") else "principal components"
    set_headline(figure, f"{run_name(record)}: test images in two dimensions, by {means}")
    return save(figure, file)


def _job_of(record: Record, registry: Registry, request: Mapping[str, Any]) -> Job:
    """The run of a record; refused if code or data differ here from those of the record."""
    job = prepare(request_of(record, request), registry)
    if different := identity_differences(record, job):
        raise RecordError(
            f"{record.folder} would be another run here: {'; '.join(different)}",
            "Run it again, then plot the new run.",
        )
    return job


def _embeddings(
    job: Job, record: Record
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray, np.ndarray]:
    """Embeddings before and after (None if the method has none), classes and domains."""
    import torch

    from fsdil_bench.runs.views import Batch

    assert record.folder is not None
    last = len(job.stream.domains) - 1
    try:
        state = RunFolder(record.folder).load_state(last)
    except FileNotFoundError:
        raise RecordError(
            f"{record.folder} has no checkpoint after the last domain",
            "Only runs on the machine that made them have one; run it again with --fresh.",
        ) from None
    method = job.build_method()
    method.load_state_dict({name: value.to(job.backbone.device) for name, value in state.items()})
    pictures = job.pictures(Progress())
    share = max(1, MOST_POINTS // (last + 1))
    before: list[torch.Tensor] = []
    after: list[torch.Tensor] = []
    labels, domains = [], []
    for t, domain in enumerate(job.stream.domains):
        order = numpy_generator(0, "plot", t).permutation(len(domain.test))
        chosen = domain.test.subset(np.sort(order[:share]))
        features = pictures.features(chosen).to(job.backbone.device)
        images = pictures.transform.normalise(pictures.plain(chosen), job.backbone.device)
        with torch.no_grad():
            own = method.embed(Batch(images, features))
        before.append(features.cpu())
        if own is not None:
            after.append(own.float().cpu())
        labels.append(chosen.labels)
        domains.append(np.full(len(chosen), t))
    pictures.close()
    return (
        torch.cat(before).numpy(),
        torch.cat(after).numpy() if after else None,
        np.concatenate(labels),
        np.concatenate(domains),
    )


def _flatten(points: np.ndarray) -> np.ndarray:
    """Two dimensions that show as much as possible."""
    try:
        from umap import UMAP
    except ImportError:
        centred = points - points.mean(0)
        _, _, axes = np.linalg.svd(centred, full_matrices=False)
        return np.asarray(centred @ axes[:2].T)
    return np.asarray(UMAP(random_state=0, metric="cosine").fit_transform(points))


def _scatter(axes: Any, points: np.ndarray, groups: np.ndarray, names: Any, title: str) -> None:
    for i, name in enumerate(names):
        members = groups == i
        # Colour and marker together distinguish more groups than colour alone.
        style = {
            "c": PALETTE[i % len(PALETTE)],
            "marker": MARKERS[i // len(PALETTE) % len(MARKERS)],
        }
        axes.scatter(*points[members].T, s=9, alpha=0.7, linewidths=0, label=name, **style)
    axes.set_title(title)
    axes.set_axis_off()  # the directions have no meaning
    axes.legend(
        fontsize=7, ncols=1 + len(names) // 16, loc="center left", bbox_to_anchor=(1.0, 0.5),
        frameon=False, markerscale=1.6,
    )  # fmt: skip
