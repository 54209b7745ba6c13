"""Tensors of the pretended CUDA device, and what is computed with them.

A device tensor is a wrapper around a CPU tensor (`raw`). To torch's C++ code it is on the device
"meta:1", which nothing else uses, so that torch's own logic of devices (what `to` copies, where
gradients go) applies. To Python code it is on "cuda:0".
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch.utils._pytree import tree_flatten, tree_map

DEVICE = torch.device("cuda:0")
INNER_DEVICE = torch.device("meta:1")  # with an index, which real meta tensors do not have
_CPU = torch.device("cpu")
_DATA: Any = torch.Tensor.data  # the descriptor that DeviceTensor overrides

#: Operations that take tensors of several devices: copies, and indices on the CPU.
_COPIES = ("aten::copy_", "aten::_to_copy")
_INDEXING = ("aten::index", "aten::index_put", "aten::index_put_", "aten::_index_put_impl_")
#: Products that some processors cannot compute in bf16.
_PRODUCTS = ("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::convolution")


class RefusedError(RuntimeError):
    """Breaks a rule of CUDA's; `remedy` says what a method does instead."""

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message)
        self.remedy = remedy


class NoArrayError(RefusedError, TypeError):
    """The same where CUDA raises a TypeError. (torch's operators swallow all others of these.)"""


class NotPretendedError(NotImplementedError):
    """A real device can do it, this one cannot."""


class DeviceTensor(torch.Tensor):
    """A tensor on the pretended device; `raw` is the CPU tensor that holds its numbers."""

    raw: torch.Tensor

    @staticmethod
    def __new__(cls, raw: torch.Tensor) -> DeviceTensor:
        """Put a CPU tensor on the device, without a copy."""
        made: DeviceTensor = torch.Tensor._make_wrapper_subclass(
            cls, raw.size(), strides=raw.stride(), storage_offset=raw.storage_offset(),
            dtype=raw.dtype, device=INNER_DEVICE,
        )  # fmt: skip
        made.raw = raw
        return made

    def __init__(self, raw: torch.Tensor) -> None:
        pass  # torch.Tensor takes no arguments

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Compute."""
        return compute(func, args, kwargs or {})

    device = property(lambda self: DEVICE)
    is_cuda = property(lambda self: True)
    is_meta = property(lambda self: False)

    @property
    def data(self) -> torch.Tensor:
        """The tensor without its history."""
        return _DATA.__get__(self)

    @data.setter
    def data(self, value: torch.Tensor) -> None:
        _DATA.__set__(self, value)  # refuses a tensor of another device
        self.raw = _raw(value)

    def get_device(self) -> int:
        """The number of the device."""
        return 0

    def to(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        """As of every tensor; also where no mode is active: in threads, and inside torch."""
        return super().to(*map(inner_device, args), **tree_map(inner_device, kwargs))

    def cuda(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        """Itself."""
        return self

    def __getitem__(self, index: Any) -> torch.Tensor:
        return super().__getitem__(_index(index))

    def __setitem__(self, index: Any, value: Any) -> None:
        super().__setitem__(_index(index), value)

    def numpy(self, *args: Any, **kwargs: Any) -> Any:
        """Refused."""
        raise NoArrayError(
            f"can't convert {DEVICE} device type tensor to numpy",
            "Copy the tensor first: tensor.cpu().numpy().",
        )

    __array__ = numpy

    def pin_memory(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        """Refused."""
        raise RefusedError(
            "cannot pin a 'cuda' tensor: only dense CPU tensors can be pinned",
            "Pin nothing: images, labels and features are on the device when they come.",
        )

    def tolist(self) -> Any:
        """The numbers."""
        return self.raw.tolist()

    def data_ptr(self) -> int:
        """Where the numbers are."""
        return self.raw.data_ptr()

    def untyped_storage(self) -> torch.UntypedStorage:
        """The memory that holds them."""
        return self.raw.untyped_storage()

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        return f"{self.raw!r:.{len(repr(self.raw)) - 1}}, device='{DEVICE}')"

    def __format__(self, form: str) -> str:
        return format(self.item() if self.dim() == 0 else repr(self), form)

    def __deepcopy__(self, memo: dict[int, Any]) -> torch.Tensor:
        if not self.is_leaf:
            raise RuntimeError("Only Tensors created explicitly by the user support deepcopy")
        if id(self) not in memo:
            with torch.no_grad():
                copied = self.clone().requires_grad_(self.requires_grad)
            copied.__dict__.update({k: v for k, v in vars(self).items() if k != "raw"})
            copied.grad = copy.deepcopy(self.grad, memo)
            memo[id(self)] = copied
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> Any:
        return DeviceTensor, (self.raw,)


def compute(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """The outcome of an operation of torch; on the device if its tensors are, or if asked for."""
    flat, _ = tree_flatten((args, kwargs))
    tensors = [value for value in flat if isinstance(value, torch.Tensor)]
    there = [tensor for tensor in tensors if isinstance(tensor, DeviceTensor)]
    target = kwargs.get("device")
    on_device = bool(there) if target is None else is_pretended(target)
    if not there and not on_device:
        return func(*args, **kwargs)
    name: str = func._schema.name
    if any(each.is_meta for each in tensors):  # made by torch itself, without any numbers
        raise NotPretendedError(name)
    _check_devices(name, args, tensors, there)
    raw_args, raw_kwargs = tree_map(_raw, (args, kwargs))
    if target is not None:
        raw_kwargs["device"] = _CPU
    wide = name in _PRODUCTS and there[0].dtype == torch.bfloat16
    if wide:
        raw_args = tree_map(lambda v: v.float() if isinstance(v, torch.Tensor) else v, raw_args)
    given = func(*raw_args, **raw_kwargs)
    known = {id(tensor.raw): tensor for tensor in there} | {id(each): each for each in tensors}

    def back(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        same = known.get(id(value))
        if same is not None:  # changed in place
            if torch.Tag.inplace_view in func.tags:  # in its shape: the wrapper has one, too
                with torch._C._DisableTorchDispatch():
                    func(same, *args[1:], **kwargs)
            return same
        value = value.bfloat16() if wide else value
        return DeviceTensor(value) if on_device else value

    return tree_map(back, given)


def _check_devices(
    name: str, args: Any, tensors: Sequence[torch.Tensor], there: Sequence[torch.Tensor]
) -> None:
    """CUDA's rules about tensors of two devices in one operation."""
    if name in _COPIES or not there:
        return
    if name in _INDEXING:
        if not isinstance(args[0], DeviceTensor) and any(
            isinstance(index, DeviceTensor) for index in args[1]
        ):
            raise RefusedError(
                "indices should be either on cpu or on the same device as the indexed tensor (cpu)",
                "Move the indices to the tensor, or the tensor to context.device.",
            )
        tensors = [args[0], *args[2:3]]  # indices may be on the CPU
    # A number on the CPU may be combined with device tensors, but not hold the outcome.
    in_place = name.endswith("_") and not name.endswith("__")
    changed = args[0] if isinstance(args[0], list | tuple) else args[:1]  # a list: many at a time
    if (in_place and not all(isinstance(each, DeviceTensor) for each in changed)) or any(
        each.dim() for each in tensors if not isinstance(each, DeviceTensor)
    ):
        raise RefusedError(
            "Expected all tensors to be on the same device, but found at least two devices, "
            f"{DEVICE} and cpu! (when calling {name})",
            "Make every tensor on context.device, and move there what comes from elsewhere.",
        )


def _index(index: Any) -> Any:
    """Lists and arrays of an index as tensors: torch would fill these without asking any mode."""
    if isinstance(index, tuple):
        return tuple(map(_index, index))
    if isinstance(index, list | range | np.ndarray):
        return torch.as_tensor(np.asarray(index, None if len(index) else np.int64))
    return index


def inner_device(value: Any) -> Any:
    """The device that torch's C++ code is to see; what is no CUDA device stays as it is."""
    if isinstance(value, str) and value.partition(":")[0] == "cuda":
        value = torch.device(value)
    if isinstance(value, int) and not isinstance(value, bool):
        value = torch.device("cuda", value)  # as torch reads a bare number
    if isinstance(value, torch.device) and value.type == "cuda":
        if value.index not in (None, 0):
            raise RuntimeError("CUDA error: invalid device ordinal")
        return INNER_DEVICE
    return value


def is_pretended(device: Any) -> bool:
    """Whether a device is the pretended one, under either of its names."""
    return inner_device(device) == INNER_DEVICE


def _raw(value: Any) -> Any:
    return value.raw if isinstance(value, DeviceTensor) else value
