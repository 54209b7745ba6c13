"""Landlock: a Linux process gives up the right to write files, for itself and all it starts.

Needs no privileges and cannot be undone. Kernels from 5.13 on have it, unless it is switched off;
newer ones can also forbid TCP connections, and signals to processes outside.
https://docs.kernel.org/userspace-api/landlock.html
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterable
from contextlib import suppress

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # system calls, the same on all architectures
_VERSION_FLAG, _BENEATH = 1, 1
_NO_NEW_PRIVILEGES = 38

_WRITE_FILE, _TRUNCATE, _REFER = 1 << 1, 1 << 14, 1 << 13
_REMOVE_AND_MAKE = sum(1 << bit for bit in range(4, 13))
_TCP = 0b11  # bind and connect
_SCOPES = 0b11  # abstract sockets and signals


class _Rules(ctypes.Structure):
    _fields_ = (
        ("files", ctypes.c_uint64),
        ("network", ctypes.c_uint64),
        ("scopes", ctypes.c_uint64),
    )


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32))


def version() -> int:
    """The version of Landlock that this kernel offers; 0 if none."""
    if sys.platform != "linux":
        return 0
    with suppress(OSError):
        return _call(_CREATE, None, 0, _VERSION_FLAG)
    return 0


def write_only_below(folders: Iterable[str], existing: Iterable[str] = ()) -> None:
    """From now on this thread, and what it starts, writes below `folders` alone.

    Below `existing`, files can be written but not made or removed: devices. TCP and signals to
    other processes are forbidden too, where the kernel can. OSError if it has no Landlock.
    """
    offered = version()
    if not offered:
        raise OSError("this kernel has no Landlock")
    rights = _WRITE_FILE | _REMOVE_AND_MAKE
    rights |= _REFER if offered >= 2 else 0
    rights |= _TRUNCATE if offered >= 3 else 0
    rules = _Rules(rights, _TCP if offered >= 4 else 0, _SCOPES if offered >= 6 else 0)
    # Older kernels know a shorter structure; they take a longer one if its end is zero.
    ruleset = _call(_CREATE, ctypes.byref(rules), ctypes.sizeof(rules), 0)
    try:
        for folder in folders:
            _allow(ruleset, folder, rights)
        for folder in existing:
            _allow(ruleset, folder, rights & (_WRITE_FILE | _TRUNCATE))
        _library().prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        _call(_RESTRICT, ruleset, 0)
    finally:
        os.close(ruleset)


def _allow(ruleset: int, folder: str, rights: int) -> None:
    descriptor = os.open(folder, os.O_PATH | os.O_CLOEXEC)
    try:
        rule = _Beneath(rights, descriptor)
        _call(_ADD, ruleset, _BENEATH, ctypes.byref(rule), 0)
    finally:
        os.close(descriptor)


def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _call(number: int, *arguments: object) -> int:
    result: int = _library().syscall(number, *arguments)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
