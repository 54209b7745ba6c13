"""Tensors of a TorchScript archive, the format of OpenAI's published CLIP, without running it.

The archive is a ZIP file. `data.pkl` describes a tree of modules by their attributes, `data/0`,
`data/1` ... are the numbers, and `code/` is a program, which is ignored. The pickle is read by
an interpreter that can build tensors and mute placeholders for modules, and nothing else.
"""

from __future__ import annotations

import pickle
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch

_DTYPES = {
    "DoubleStorage": torch.float64,
    "FloatStorage": torch.float32,
    "HalfStorage": torch.float16,
    "BFloat16Storage": torch.bfloat16,
    "LongStorage": torch.int64,
    "IntStorage": torch.int32,
    "ShortStorage": torch.int16,
    "CharStorage": torch.int8,
    "ByteStorage": torch.uint8,
    "BoolStorage": torch.bool,
}


def is_archive(path: Path) -> bool:
    """Whether a file is a TorchScript archive: a ZIP file with code in it."""
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return any("/code/" in name for name in archive.namelist())


def read_archive(path: Path) -> dict[str, torch.Tensor]:
    """All tensors of the archive's modules, by their dotted names."""
    with zipfile.ZipFile(path) as archive:
        (entry,) = (name for name in archive.namelist() if name.count("/") == 1
                    and name.endswith("/data.pkl"))  # fmt: skip
        folder = entry.removesuffix(".pkl")
        with archive.open(entry) as file:
            root = _Reader(file, lambda key: archive.read(f"{folder}/{key}")).load()
    return dict(_tensors(root))


class UnknownNameError(pickle.UnpicklingError):
    """The pickle asks for something that no tensor needs."""

    def __init__(self, name: str) -> None:
        super().__init__(f"it asks for {name}")
        self.name = name


class _Module:
    """A placeholder for a module: attributes, no behaviour."""

    attributes: dict[str, Any]

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.attributes = state


class _Storage(NamedTuple):
    """Numbers in a row, of which tensors are views."""

    values: torch.Tensor


class _Reader(pickle.Unpickler):
    """Understands what TorchScript writes; anything else is refused, not imported."""

    def __init__(self, file: Any, read: Callable[[str], bytes]) -> None:
        super().__init__(file)
        self._read = read
        self._storages: dict[str, _Storage] = {}

    def find_class(self, module: str, name: str) -> Any:
        """The harmless stand-in for a name in the pickle."""
        if module.partition(".")[0] == "__torch__":
            return _Module
        if module == "torch" and name in _DTYPES:
            return _DTYPES[name]
        known = {
            ("torch._utils", "_rebuild_tensor_v2"): _tensor,
            ("collections", "OrderedDict"): OrderedDict,
        }
        if (module, name) in known:
            return known[module, name]
        if module == "torch.jit._pickle":  # marks the type of a list or a dict
            return lambda value, *_: value
        raise UnknownNameError(f"{module}.{name}")

    def persistent_load(self, pid: Any) -> _Storage:
        """The numbers that a tensor is a view of."""
        _, dtype, key, _, count = pid
        if key not in self._storages:
            content = self._read(key)
            values = torch.frombuffer(bytearray(content), dtype=dtype) if content else \
                torch.empty(0, dtype=dtype)  # fmt: skip
            if len(values) < count:
                raise pickle.UnpicklingError(f"storage {key} has {len(values)} of {count} numbers")
            self._storages[key] = _Storage(values)
        return self._storages[key]


def _tensor(storage: _Storage, offset: int, size: Any, stride: Any, *_: Any) -> torch.Tensor:
    return storage.values.as_strided(size, stride, offset)


def _tensors(module: _Module, prefix: str = "") -> Iterator[tuple[str, torch.Tensor]]:
    for name, value in module.attributes.items():
        if isinstance(value, torch.Tensor):
            yield prefix + name, value
        elif isinstance(value, _Module):
            yield from _tensors(value, f"{prefix}{name}.")
