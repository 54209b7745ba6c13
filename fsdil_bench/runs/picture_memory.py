"""Decoded pictures and plain views kept in memory, up to a limit.

Part of the limit is kept free for few-shot domains, whose images are used most often.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable

import numpy as np

_LIMIT = 2 << 30  # bytes
_FORMS = ("", "shrunk/", "plain/")  # what stands before the key of a picture, by what is kept of it


class PictureMemory:
    """Arrays by name: the key of a picture, alone or with what was made of it."""

    def __init__(self, few_shot: Collection[str]) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self.bytes = 0
        self._few_shot = few_shot
        self._lock = threading.Lock()  # never held while decoding

    def keep(self, name: str, array: np.ndarray) -> None:
        """Keep an array while there is room: for few-shot images all of it, else half."""
        is_few_shot = name.removeprefix("shrunk/") in self._few_shot
        limit = _LIMIT if is_few_shot else _LIMIT // 2
        with self._lock:
            if name not in self.arrays and self.bytes + array.nbytes <= limit:
                self.arrays[name] = array
                self.bytes += array.nbytes

    def forget(self, keys: Iterable[str]) -> None:
        """Free what these pictures hold."""
        with self._lock:
            for key in keys:
                for form in _FORMS:
                    if (array := self.arrays.pop(f"{form}{key}", None)) is not None:
                        self.bytes -= array.nbytes
