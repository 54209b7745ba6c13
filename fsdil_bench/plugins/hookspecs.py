"""The hooks a plugin may implement: few, prefixed, returning descriptors.

A plugin is a module (an entry point of the group `fsdil_bench`, or a file given with
`--plugin`) with functions of these names marked with `fsdil_bench.hookimpl`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pluggy

from .descriptors import BackboneInfo, LauncherInfo, MethodInfo, ScenarioInfo, TrackerInfo

if TYPE_CHECKING:
    from fsdil_bench.records.record import Record
    from fsdil_bench.runs.finished_domain import FinishedDomain

GROUP = "fsdil_bench"
hookspec = pluggy.HookspecMarker(GROUP)
hookimpl = pluggy.HookimplMarker(GROUP)


@hookspec
def fsdil_methods() -> Iterable[MethodInfo]:  # type: ignore[empty-body]
    """Offer methods.

    Example:
        ```python
        @hookimpl
        def fsdil_methods():
            return [MethodInfo("my-method", "what it does", "my_package.method:MyMethod")]
        ```
    """


@hookspec
def fsdil_scenarios() -> Iterable[ScenarioInfo]:  # type: ignore[empty-body]
    """Offer data sets as streams of domains.

    Example:
        ```python
        @hookimpl
        def fsdil_scenarios():
            return [ScenarioInfo("my-data", "what it shows", "my_package.data:build")]
        ```
    """


@hookspec
def fsdil_backbones() -> Iterable[BackboneInfo]:  # type: ignore[empty-body]
    """Offer vision-language models.

    Example:
        ```python
        @hookimpl
        def fsdil_backbones():
            return [BackboneInfo("my-clip", "what it is", "my_package.clip:build")]
        ```
    """


@hookspec
def fsdil_launchers() -> Iterable[LauncherInfo]:  # type: ignore[empty-body]
    """Offer ways to run the tasks of a sweep: on this machine, on a cluster.

    Example:
        ```python
        @hookimpl
        def fsdil_launchers():
            return [LauncherInfo("my-cluster", "what it runs on", "my_package.cluster:launch")]
        ```
    """


@hookspec
def fsdil_trackers() -> Iterable[TrackerInfo]:  # type: ignore[empty-body]
    """Offer programs that show runs while they are made, for `--track NAME`.

    Example:
        ```python
        @hookimpl
        def fsdil_trackers():
            return [TrackerInfo("my-tracker", "where it logs", "my_package.tracker:MyTracker")]
        ```
    """


@hookspec
def fsdil_domain_finished(domain: FinishedDomain) -> None:
    """Take notice of a domain that is learned, tested and kept on disk.

    When a run resumes, it is called again for the domains that an earlier process had finished
    (`domain.resumed`): that process was perhaps killed before it could call it. An error raised
    here is reported and does not touch the run. It is not called in a sealed run, whose harness
    runs no code of plugins that it can do without.

    Example:
        ```python
        @hookimpl
        def fsdil_domain_finished(domain):
            print(domain.index + 1, "of", len(domain.domains), domain.name, domain.mean)
        ```
    """


@hookspec
def fsdil_run_finished(record: Record) -> None:
    """Take notice of a finished run, after its record is on disk (to upload it, to notify).

    An error raised here is reported and does not touch the run. It is not called after a sealed
    run, whose harness runs no code of plugins that it can do without.

    Example:
        ```python
        @hookimpl
        def fsdil_run_finished(record):
            print(record.run_id, record.metrics["AA*"])
        ```
    """
