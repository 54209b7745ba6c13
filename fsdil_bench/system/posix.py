"""What the operating system must offer: runs are for POSIX systems, which means Linux and macOS."""

from __future__ import annotations

import os
import platform
import signal
import sys

from fsdil_bench.errors import RequestError

#: Whether a process that has imported torch can be forked. Not on macOS: its libraries start
#: threads of their own, and a fork may then hang or crash.
CAN_FORK = sys.platform == "linux"


def require_posix(what: str) -> None:
    """Say clearly that this part cannot work here, before an import fails without saying why."""
    if os.name != "posix":
        raise RequestError(
            f"{what} needs Linux or macOS; this is {platform.system() or os.name}",
            "On Windows, install fsdil-bench in WSL (Windows Subsystem for Linux).",
        )


def end_with(pipe: int) -> None:
    """Wait until the other end of a pipe is closed, even by a kill; then kill this process, and
    what it has started."""
    while os.read(pipe, 1):
        pass
    os.killpg(0, signal.SIGKILL)
