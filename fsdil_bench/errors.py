"""Problems a user can fix: one message that names the thing, and a remedy.

The command line prints these without a traceback (unless `--debug`) and exits with their
`exit_code` (`exit_codes`).
"""

from __future__ import annotations

import difflib
import errno
import os
from collections.abc import Iterable

from .exit_codes import BAD_INPUT, BUSY, FAILED


class FsdilError(Exception):
    """Base of all errors this project raises on purpose."""

    exit_code = FAILED

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message if not remedy else f"{message}\n{remedy}")
        self.message = message
        self.remedy = remedy


class RequestError(FsdilError):
    """What was asked for does not exist or does not fit: a name, an option, a path."""

    exit_code = BAD_INPUT


class HeldError(FsdilError):
    """Another process is at work on this very run."""

    exit_code = BUSY


class DataError(FsdilError):
    """The data set on disk is missing, incomplete or unreadable."""

    exit_code = BAD_INPUT


class PluginError(FsdilError):
    """A plugin broke the contract or raised; the message names it."""


class RecordError(FsdilError):
    """A run record is missing, damaged or of another version."""

    exit_code = BAD_INPUT


#: What the operating system reports of a place that cannot be written to.
UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS, errno.EFBIG)
#: ... and of a path on whose way something else is in its place.
_MISPLACED = (errno.EEXIST, errno.ENOTDIR, errno.EISDIR)


def from_system(error: OSError) -> FsdilError:
    """The message for what the operating system reports, such as a full disk."""
    what = "the output cannot be written"
    if error.filename is not None:
        what = f"'{os.fsdecode(error.filename)}' cannot be used"
    said = f"{what}: {error.strerror or error}"
    remedy = "Check the path; --debug shows where it was needed."
    if error.errno in _MISPLACED:
        return RequestError(
            said, "Choose another path: a file is where a folder should be, or the reverse."
        )
    if error.errno == errno.ENAMETOOLONG:
        return RequestError(said, "Choose a shorter name.")
    if error.errno in UNWRITABLE:
        remedy = "Make room, or choose a place that you can write to."
    elif error.errno == errno.EMFILE:
        remedy = "Raise the limit of open files: ulimit -n 4096."
    return FsdilError(said, remedy)


def unknown(kind: str, name: str, known: Iterable[str], see: str = "") -> RequestError:
    """The error for a name nobody registered, with the nearest known one and where all of them
    are shown; without such a place they are listed."""
    known = list(known)
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"Did you mean '{near[0]}'? " if near else ""
    everything = f"`{see}` shows all of them." if see else f"There are {', '.join(known)}."
    return RequestError(f"unknown {kind} '{name}'", hint + everything)
