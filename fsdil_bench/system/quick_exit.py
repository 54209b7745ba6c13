"""The end of a process, without taking apart what it has imported.

Python frees all modules one by one when it ends. After torch and open_clip this takes most of a
second, and the system frees the memory anyway.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from contextlib import suppress
from typing import NoReturn


def leave(code: int) -> NoReturn:
    """End as Python does: threads finish, exit functions run, output is written. Then stop."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, AttributeError, ValueError):  # broken, missing, closed
            stream.flush()
    os._exit(code)
