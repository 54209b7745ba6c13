"""Checkpoints as named tensors: safetensors, torch files, OpenAI's archives; nothing is executed.

Names are open_clip's, which are those of OpenAI's CLIP. Numbers become float32.
"""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from fsdil_bench.errors import DataError

from .archive import UnknownNameError, is_archive, read_archive

#: The tensors of a checkpoint by name.
Tensors = dict[str, torch.Tensor]

_FORMS = "Save the model's state_dict(), as safetensors or with torch.save."


def read_checkpoint(path: Path) -> Tensors:
    """The tensors of a checkpoint by name, in float32."""
    try:
        return _flat(_load(path), path)
    except DataError:
        raise
    except pickle.UnpicklingError as error:
        raise _refused(path, error) from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    except Exception as error:  # the libraries raise a dozen kinds for a damaged file
        raise _damaged(path, error) from error


def _load(path: Path) -> Any:
    if _is_safetensors(path):
        return load_file(path)
    if is_archive(path):
        return read_archive(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is wrong is said by the error
        return torch.load(path, map_location="cpu", weights_only=True)


def _is_safetensors(path: Path) -> bool:
    """By content: the length of a JSON header, then the header."""
    with path.open("rb") as file:
        start = file.read(9)
    return path.suffix == ".safetensors" or start[8:] == b"{"


def _is_plain_pickle(path: Path) -> bool:
    """By content: the mark of a pickle, and its last instruction."""
    content = path.read_bytes()
    return content[:1] == b"\x80" and content[-1:] == b"."


def _flat(loaded: Any, path: Path) -> Tensors:
    """The state dict in what was loaded: a training checkpoint keeps it among other things."""
    if isinstance(loaded, dict) and isinstance(loaded.get("state_dict"), dict):
        loaded = loaded["state_dict"]
    tensors = loaded if isinstance(loaded, dict) else {}
    if not tensors or not all(isinstance(value, torch.Tensor) for value in tensors.values()):
        inside = ", ".join(str(key) for key in list(tensors)[:5]) or type(loaded).__name__
        raise DataError(
            f"{path} is not a checkpoint of named tensors; it holds: {inside}",
            _FORMS,
        )
    return {
        name.removeprefix("module."): value.float() if value.is_floating_point() else value
        for name, value in tensors.items()
    }


def _damaged(path: Path, error: Exception) -> DataError:
    reason = " ".join(str(error).split()).partition(". ")[0]
    return DataError(
        f"{path} is damaged, or no checkpoint: {type(error).__name__}: {reason}",
        "Copy or download it again; its size shows whether it is complete. " + _FORMS,
    )


def _refused(path: Path, error: Exception) -> DataError:
    """For a pickle that asks for more than tensors: what it asks for was not imported."""
    if isinstance(error, UnknownNameError):
        name = error.name
    else:  # torch names it in its message: "... GLOBAL os.system was not an allowed global ..."
        name = "".join(str(error).partition("GLOBAL ")[2].split()[:1])
    if not name and _is_plain_pickle(path):
        return DataError(
            f"{path} is a pickle that torch.save did not write; it was not loaded", _FORMS
        )
    if not name:
        return _damaged(path, error)
    return DataError(
        f"{path} holds more than tensors: it asks for {name}, which could run code",
        "It was not loaded. If you trust its source, save its state_dict() as safetensors.",
    )
