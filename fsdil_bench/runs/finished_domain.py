"""What is known of a run when one of its domains is finished: learned, tested, and kept on disk."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import TYPE_CHECKING, Any

from fsdil_bench.records.metrics import scores
from fsdil_bench.records.record import Record

if TYPE_CHECKING:
    from .job import Job
    from .loop import Outcome


@dataclass(frozen=True)
class FinishedDomain:
    """A domain that was learned and tested; accuracies are percentages.

    `index` counts from 0, `domains` are the names of all domains of the run. `matrix` are the rows
    of the accuracy matrix so far, the last of them of this domain, and `metrics` the four scores of
    these rows. `spec` is that of the record to come: method, config, scenario, seed and so on.

    Of this domain alone: `seconds` and `images` by phase, `diagnostics` that the method reports
    (a loss, for instance), `routing` for methods that guess domains, `unseen` accuracies on test
    sets of no domain.

    `resumed` is true where an earlier process had finished the domain: this one has found it on
    disk.
    """

    run_id: str
    sealed: bool
    spec: Mapping[str, Any]
    domains: tuple[str, ...]
    index: int
    matrix: tuple[tuple[float, ...], ...]
    metrics: Mapping[str, float | None]
    seconds: Mapping[str, float]
    images: Mapping[str, int]
    state_bytes: int
    trained_parameters: int
    diagnostics: Mapping[str, Any] = field(default_factory=dict)
    routing: float | None = None
    unseen: Mapping[str, float] = field(default_factory=dict)
    resumed: bool = False

    @property
    def method(self) -> str:
        """The name of the method."""
        return str(self.spec["method"])

    @property
    def scenario(self) -> str:
        """The id of the scenario, such as "drawn-4shot"."""
        return str(self.spec["scenario"])

    @property
    def seed(self) -> int:
        """The seed of the run."""
        return int(self.spec["seed"])

    @property
    def name(self) -> str:
        """The name of the domain."""
        return self.domains[self.index]

    @property
    def accuracies(self) -> dict[str, float]:
        """The accuracy on every domain seen so far, by its name."""
        return dict(zip(self.domains, self.matrix[-1], strict=False))

    @property
    def mean(self) -> float:
        """The mean of `accuracies`."""
        return fmean(self.matrix[-1])


def of_outcome(job: Job, outcome: Outcome, t: int, *, resumed: bool) -> FinishedDomain:
    """The domain `t` of a run at work."""
    return _finished(
        t,
        run_id=job.run_id,
        sealed=job.request.sealed,
        spec=job.spec.to_dict(),
        domains=[domain.name for domain in job.stream.domains],
        tests=[len(domain.test) for domain in job.stream.domains],
        matrix=outcome.matrix,
        costs=outcome.costs,
        state_bytes=outcome.state_bytes,
        trained_parameters=outcome.trained_parameters,
        diagnostics=outcome.diagnostics,
        routing=outcome.routing,
        unseen_names=[name for name, _ in job.stream.unseen],
        unseen=outcome.unseen_matrix,
        resumed=resumed,
    )


def of_record(record: Record) -> Iterator[FinishedDomain]:
    """All domains of a complete run, as if they were finished one after another."""
    unseen = record.unseen or {"names": [], "matrix": []}
    for t in range(len(record.matrix)):
        yield _finished(
            t,
            run_id=record.run_id,
            sealed=record.sealed,
            spec=record.spec,
            domains=record.domain_names,
            tests=record.test_counts,
            matrix=record.matrix,
            costs=record.cost["per_domain"],
            state_bytes=record.cost["state_bytes"],
            trained_parameters=record.cost["trained_parameters"],
            diagnostics=record.diagnostics.get("per_domain", []),
            routing=record.routing or [],
            unseen_names=unseen["names"],
            unseen=unseen["matrix"],
            resumed=True,
        )


def _finished(
    t: int,
    *,
    run_id: str,
    sealed: bool,
    spec: Mapping[str, Any],
    domains: Sequence[str],
    tests: Sequence[int],
    matrix: Sequence[Sequence[float]],
    costs: Sequence[Mapping[str, Any]],
    state_bytes: Sequence[int],
    trained_parameters: Sequence[int],
    diagnostics: Sequence[Mapping[str, Any]],
    routing: Sequence[float],
    unseen_names: Sequence[str],
    unseen: Sequence[Sequence[float]],
    resumed: bool,
) -> FinishedDomain:
    """The facts of domain `t`, from lists with an entry for each domain. They are copies: what a
    plugin does with them changes no record."""
    rows = tuple(tuple(row) for row in matrix[: t + 1])
    return FinishedDomain(
        run_id=run_id,
        sealed=sealed,
        spec=_copy(spec),
        domains=tuple(domains),
        index=t,
        matrix=rows,
        metrics=scores(rows, tests),
        seconds=_copy(costs[t]["seconds"]),
        images=_copy(costs[t]["images"]),
        state_bytes=state_bytes[t],
        trained_parameters=trained_parameters[t],
        diagnostics=_copy(diagnostics[t]) if t < len(diagnostics) else {},
        routing=routing[t] if t < len(routing) else None,
        unseen=dict(zip(unseen_names, unseen[t], strict=True)) if t < len(unseen) else {},
        resumed=resumed,
    )


def _copy(values: Mapping[str, Any]) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(json.dumps(values))
    return plain
