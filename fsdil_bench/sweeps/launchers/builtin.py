"""The launchers that come with the harness; what they need is imported when they are used."""

from __future__ import annotations

from collections.abc import Iterable

from fsdil_bench.plugins.descriptors import LauncherInfo
from fsdil_bench.plugins.hookspecs import hookimpl


@hookimpl
def fsdil_launchers() -> Iterable[LauncherInfo]:
    """Processes of this machine, and of clusters."""
    return [
        LauncherInfo(
            "local",
            "one process per run on this machine",
            "fsdil_bench.sweeps.launchers.local:launch",
            options="fsdil_bench.sweeps.launchers.local:LocalOptions",
        ),
        LauncherInfo(
            "ray",
            "one process per run on the nodes of a Ray cluster",
            "fsdil_bench.sweeps.launchers.ray_launcher:launch",
            extra="ray",
            options="fsdil_bench.sweeps.launchers.ray_launcher:RayOptions",
        ),
        LauncherInfo(
            "slurm",
            "one job per run, in arrays, on a Slurm cluster",
            "fsdil_bench.sweeps.launchers.slurm_launcher:launch",
            extra="slurm",
            options="fsdil_bench.sweeps.launchers.slurm_launcher:SlurmOptions",
        ),
    ]
