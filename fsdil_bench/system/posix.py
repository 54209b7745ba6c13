"""What the operating system must offer: runs are for POSIX systems, which means Linux and macOS."""

from __future__ import annotations

import os
import platform
import sys

from fsdil_bench.errors import RequestError

#: Whether a process that has imported torch can be forked. Not on macOS: its libraries start
#: threads of their own, and a fork may then hang or crash.
CAN_FORK = sys.platform == "linux"


def require_posix(what: str) -> None:
    """Say clearly that this part cannot work here, before an import fails for a reason unsaid."""
    if os.name != "posix":
        raise RequestError(
            f"{what} needs Linux or macOS; this is {platform.system() or os.name}",
            "On Windows, install fsdil-bench in WSL (Windows Subsystem for Linux).",
        )
