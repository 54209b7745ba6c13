"""What starts the processes of all sealed runs of this process.

It imports torch itself and takes seconds for it, so it is started as soon as a sealed run is asked
for. Nothing here imports torch.
"""

from __future__ import annotations

import atexit
import os
import sys
import tempfile
from pathlib import Path

from fsdil_bench.data.streams import SEALED
from fsdil_bench.system import posix
from fsdil_bench.system.fork_server import ForkServer
from fsdil_bench.system.fresh_interpreters import FreshInterpreters

_MODULE = "fsdil_bench.runs.sealed.child"
_GRACE = 10  # seconds that processes have to end by themselves when this one is gone
_LEADS_TO_SAMPLES = ("FSDIL_CACHE", "FSDIL_DATA")
_LEADS_TO_SCORES = ("MLFLOW_", "WANDB_")  # those of trackers begin so

_shared: list[ForkServer | FreshInterpreters] = []


def shared_server() -> ForkServer | FreshInterpreters:
    """What starts the processes of all sealed runs of this process.

    It has imported what every method needs, but nothing of any plugin.
    """
    if not _shared:
        variables = environment() | {"PYTHONPATH": os.pathsep.join(module_paths())}
        command, folder = (sys.executable, "-P"), tempfile.gettempdir()
        _shared.append(
            ForkServer(_MODULE, environment=variables, command=command, folder=folder, grace=_GRACE)
            if posix.CAN_FORK
            else FreshInterpreters(_MODULE, environment=variables, command=command, folder=folder)
        )
        atexit.register(close_server)
    return _shared[0]


def close_server() -> None:
    """End the server; the next sealed run starts another."""
    atexit.unregister(close_server)
    while _shared:
        _shared.pop().close()


def environment() -> dict[str, str]:
    """This process's environment without what leads to samples, or to scores so far."""
    return {
        name: value
        for name, value in os.environ.items()
        if name not in _LEADS_TO_SAMPLES and not name.startswith(_LEADS_TO_SCORES)
    } | {SEALED: "1"}


def module_paths() -> list[str]:
    """Where modules are found, whatever the working folder is."""
    return [str(Path(entry).absolute()) for entry in sys.path]
