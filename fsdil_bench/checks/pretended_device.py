"""A pretended CUDA device: tensors that hold ordinary memory but obey the rules of a GPU.

    with pretended_device():
        model.to("cuda")            # works on any machine
        model(images)               # RuntimeError: the images are on the CPU

What computes on the device computes the CPU's numbers, in fp32 also under bf16 autocast; what a
CUDA device refuses is refused with CUDA's words: to mix tensors of the two devices, to make NumPy
arrays of device tensors, to draw on one device with a generator of the other, to pin device memory.
There is one device, "cuda:0". Streams, graphs and several devices are not pretended.

How: a device tensor is a wrapper around a CPU tensor (`raw`). To torch's C++ code it lies on the
device "meta:1", of which nothing else makes use, so that torch's own logic of devices (what `to`
copies, where gradients go) applies, and to Python code on "cuda:0". One mode translates between the
two names, another computes.
"""

from __future__ import annotations

import copy
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

DEVICE = torch.device("cuda:0")
_HELD = torch.device("meta:1")  # with an index, which real meta tensors do not have
_CPU = torch.device("cpu")
_DATA: Any = torch.Tensor.data  # the descriptor that DeviceTensor overrides

#: Functions that make tensors of Python data: torch fills these without asking any mode.
_OF_DATA = (torch.tensor, torch.as_tensor, torch.asarray, torch.Tensor.new_tensor)
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
            dtype=raw.dtype, device=_HELD,
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
        return _compute(func, args, kwargs or {})

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
        return super().to(*map(_held, args), **tree_map(_held, kwargs))

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


class _Names(TorchFunctionMode):
    """Has torch's C++ code read `cuda` as the device that it knows the tensors on."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func is torch.Tensor.cuda:
            return args[0].to(_HELD)
        if func is torch.Tensor.to:
            args = (args[0], *map(_held, args[1:]))
        if isinstance(kwargs.get("device"), torch.device | str | int):
            kwargs["device"] = _held(kwargs["device"])
        _check_generator(args, kwargs)
        if kwargs.pop("pin_memory", False):
            return func(*args, **kwargs).pin_memory()
        if func in _OF_DATA:
            return _of_data(func, args, kwargs)
        return func(*args, **kwargs)


class _Computing(TorchDispatchMode):
    """Computes what is asked for on the device."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _compute(func, args, kwargs or {})


def _compute(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """The outcome of an operation of torch; on the device if its tensors are, or if asked for."""
    flat, _ = tree_flatten((args, kwargs))
    tensors = [value for value in flat if isinstance(value, torch.Tensor)]
    there = [tensor for tensor in tensors if isinstance(tensor, DeviceTensor)]
    target = kwargs.get("device")
    on_device = bool(there) if target is None else _is_held(target)
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
    if (in_place and not isinstance(args[0], DeviceTensor)) or any(
        each.dim() for each in tensors if not isinstance(each, DeviceTensor)
    ):
        raise RefusedError(
            "Expected all tensors to be on the same device, but found at least two devices, "
            f"{DEVICE} and cpu! (when calling {name})",
            "Make every tensor on context.device, and move there what comes from elsewhere.",
        )


def _check_generator(args: Any, kwargs: Mapping[str, Any]) -> None:
    """A generator draws for tensors of its own device only."""
    given = (*args, *kwargs.values())
    generator = next((each for each in given if _is_generator(each)), None)
    if generator is None:
        return
    target = kwargs.get("device")
    there = any(isinstance(each, DeviceTensor) for each in given)
    drawn = "cuda" if (there if target is None else _is_held(target)) else "cpu"
    if generator.device.type != drawn:
        raise RefusedError(
            f"Expected a '{drawn}' device type for generator but found '{generator.device.type}'",
            "Draw on the CPU and move what was drawn: torch.randn(n, generator=g).to(device).",
        )


def _of_data(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """A tensor of Python data, made on the CPU and copied."""
    target = kwargs.pop("device", None)
    trained = kwargs.pop("requires_grad", False)
    if func is torch.Tensor.new_tensor:
        target = args[0].device if target is None else target
        kwargs.setdefault("dtype", args[0].dtype)
        func, args = torch.tensor, args[1:]
    if isinstance(args[0], torch.Tensor):
        copied = args[0] if func is not torch.tensor else args[0].detach().clone()
        made = copied.to(target or copied.device, kwargs.get("dtype"))
    else:
        made = func(*args, **kwargs)
        made = made if target is None else made.to(_held(target))
    return made.requires_grad_() if trained else made


def _index(index: Any) -> Any:
    """Lists and arrays of an index as tensors: torch would fill these without asking any mode."""
    if isinstance(index, tuple):
        return tuple(map(_index, index))
    if isinstance(index, list | range | np.ndarray):
        return torch.as_tensor(np.asarray(index, None if len(index) else np.int64))
    return index


def _held(value: Any) -> Any:
    """The device that torch's C++ code is to see; what is no CUDA device stays as it is."""
    if isinstance(value, str) and value.partition(":")[0] == "cuda":
        value = torch.device(value)
    if isinstance(value, int) and not isinstance(value, bool):
        value = torch.device("cuda", value)  # as torch reads a bare number
    if isinstance(value, torch.device) and value.type == "cuda":
        if value.index not in (None, 0):
            raise RuntimeError("CUDA error: invalid device ordinal")
        return _HELD
    return value


def _is_held(device: Any) -> bool:
    return _held(device) == _HELD


def _is_generator(value: Any) -> bool:
    return isinstance(value, torch._C.Generator)


def _raw(value: Any) -> Any:
    return value.raw if isinstance(value, DeviceTensor) else value


class _DeviceGenerator(torch._C.Generator):
    """A generator for the device; it draws what one of the same seed draws on the CPU."""

    device = property(lambda self: DEVICE)


class _AnyGenerator(type):
    """Stands for the class torch.Generator: makes generators of both devices, and knows them."""

    def __call__(cls, device: Any = "cpu") -> Any:
        return _DeviceGenerator("cpu") if _is_held(device) else torch._C.Generator(device)

    def __instancecheck__(cls, instance: Any) -> bool:
        return _is_generator(instance)


class _Generator(metaclass=_AnyGenerator):
    pass


def _pin_memory(self: torch.Tensor, *_: Any) -> torch.Tensor:
    """Another copy in memory: what pinning does, as far as a program can see."""
    if _is_pinned(self):
        return self
    copied = self.clone()
    copied._pretended_to_be_pinned = True  # type: ignore[attr-defined]
    return copied


def _is_pinned(self: torch.Tensor, *_: Any) -> bool:
    return getattr(self, "_pretended_to_be_pinned", False)


_NO_STREAM = types.SimpleNamespace(is_capturing=lambda: False, synchronize=lambda: None)
_PROPERTIES = types.SimpleNamespace(
    name="pretended device", total_memory=1 << 34, major=8, minor=0, multi_processor_count=1
)
#: What functions of torch.cuda and torch.accelerator answer.
_ANSWERS: dict[str, dict[str, Any]] = {
    "cuda": {
        "is_available": True,
        "is_bf16_supported": True,
        "is_current_stream_capturing": False,
        "device_count": 1,
        "current_device": 0,
        "current_stream": _NO_STREAM,
        "get_device_name": _PROPERTIES.name,
        "get_device_capability": (8, 0),
        "get_device_properties": _PROPERTIES,
        "max_memory_allocated": 1 << 20,
        "memory_allocated": 1 << 20,
        "mem_get_info": (1 << 33, 1 << 34),
        **dict.fromkeys(("synchronize", "set_device", "empty_cache", "reset_peak_memory_stats")),
        **dict.fromkeys(("manual_seed", "manual_seed_all", "get_rng_state", "set_rng_state")),
    },
    "accelerator": {
        "is_available": True,
        "device_count": 1,
        "current_accelerator": torch.device("cuda"),
        "current_device_index": 0,
        "current_stream": _NO_STREAM,
        **dict.fromkeys(("set_device_index", "synchronize")),
    },
}


def _keeping(apply: Callable[..., Any]) -> Callable[..., Any]:
    """What `Module.to` does, with the parameters left the objects that they were, as for CUDA."""
    is_set, choose = (
        torch.__future__.get_swap_module_params_on_conversion,
        torch.__future__.set_swap_module_params_on_conversion,
    )

    def keep(*args: Any, **kwargs: Any) -> Any:
        before = is_set()
        try:
            choose(True)
            return apply(*args, **kwargs)
        except RuntimeError as error:
            if "Couldn't swap" not in str(error):
                raise
            choose(False)  # a graph holds on to a parameter: then it gets another object
            return apply(*args, **kwargs)
        finally:
            choose(before)

    return keep


def _always(answer: Any) -> Callable[..., Any]:
    return lambda *_, **__: answer


@contextmanager
def pretended_device() -> Iterator[torch.device]:
    """Have a CUDA device in this thread for a while; gives it. What torch says is put back."""
    with ExitStack() as stack:
        patch = mock.patch.object
        if not torch.cuda.is_available():
            stack.enter_context(patch(torch.cuda, "_lazy_init", _always(None)))
        for module in (getattr(torch, name) for name in _ANSWERS if hasattr(torch, name)):
            answers = _ANSWERS[module.__name__.removeprefix("torch.")]
            for name, answer in answers.items():
                if hasattr(module, name):
                    stack.enter_context(patch(module, name, _always(answer)))
        stack.enter_context(patch(torch, "Generator", _Generator))
        stack.enter_context(patch(torch.Tensor, "pin_memory", _pin_memory))
        stack.enter_context(patch(torch.Tensor, "is_pinned", _is_pinned))
        stack.enter_context(patch(torch.nn.Module, "_apply", _keeping(torch.nn.Module._apply)))
        stack.enter_context(_Computing())
        stack.enter_context(_Names())
        yield DEVICE
