"""The launchers that come with the harness; what they need is imported when they are used."""

from __future__ import annotations

from collections.abc import Iterable

from ..descriptors import LauncherInfo
from ..hookspecs import hookimpl


@hookimpl
def fsdil_launchers() -> Iterable[LauncherInfo]:
    """Processes of this machine."""
    return [
        LauncherInfo(
            "local",
            "one process per run on this machine",
            "fsdil_bench.sweeps.local:launch",
            options="fsdil_bench.sweeps.local:LocalOptions",
        ),
    ]
