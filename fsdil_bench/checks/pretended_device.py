"""A pretended CUDA device: tensors that hold ordinary memory but obey the rules of a GPU.

    with pretended_device():
        model.to("cuda")            # works on any machine
        model(images)               # RuntimeError: the images are on the CPU

What computes on the device computes the CPU's numbers, in fp32 also under bf16 autocast; what a
CUDA device refuses is refused with CUDA's words: to mix tensors of the two devices, to make NumPy
arrays of device tensors, to draw on one device with a generator of the other, to pin device memory.
There is one device, "cuda:0". Streams, graphs and several devices are not pretended.

How: tensors of the device have two names for their device, one for Python and one for torch's C++
code (`device_tensor`). One mode translates between the two names, another one computes.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from fsdil_bench.runs import served_views

from .device_tensor import (
    DEVICE,
    INNER_DEVICE,
    DeviceTensor,
    NotPretendedError,
    RefusedError,
    compute,
    inner_device,
    is_pretended,
)

__all__ = [
    "DEVICE",
    "DeviceTensor",
    "NotPretendedError",
    "RefusedError",
    "pretended_device",
]

#: Functions that make tensors of Python data: torch fills these without asking any mode.
_OF_DATA = (torch.tensor, torch.as_tensor, torch.asarray, torch.Tensor.new_tensor)


class _Names(TorchFunctionMode):
    """Has torch's C++ code read `cuda` as the device that it knows the tensors on."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func is torch.Tensor.cuda:
            return args[0].to(INNER_DEVICE)
        if func is torch.Tensor.to:
            args = (args[0], *map(inner_device, args[1:]))
        if isinstance(kwargs.get("device"), torch.device | str | int):
            kwargs["device"] = inner_device(kwargs["device"])
        _check_generator(args, kwargs)
        if kwargs.pop("pin_memory", False):
            return func(*args, **kwargs).pin_memory()
        if func in _OF_DATA:
            return _of_data(func, args, kwargs)
        return func(*args, **kwargs)


class _Computing(TorchDispatchMode):
    """Computes what is asked for on the device."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return compute(func, args, kwargs or {})


def _check_generator(args: Any, kwargs: Mapping[str, Any]) -> None:
    """A generator draws for tensors of its own device only."""
    given = (*args, *kwargs.values())
    generator = next((each for each in given if _is_generator(each)), None)
    if generator is None:
        return
    target = kwargs.get("device")
    there = any(isinstance(each, DeviceTensor) for each in given)
    drawn = "cuda" if (there if target is None else is_pretended(target)) else "cpu"
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
        made = made if target is None else made.to(inner_device(target))
    return made.requires_grad_() if trained else made


def _is_generator(value: Any) -> bool:
    return isinstance(value, torch._C.Generator)


class _DeviceGenerator(torch._C.Generator):
    """A generator for the device; it draws what one of the same seed draws on the CPU."""

    device = property(lambda self: DEVICE)


class _AnyGenerator(type):
    """Stands for the class torch.Generator: makes generators of both devices, and knows them."""

    def __call__(cls, device: Any = "cpu") -> Any:
        return _DeviceGenerator("cpu") if is_pretended(device) else torch._C.Generator(device)

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
def _modes() -> Iterator[None]:
    """What makes this thread pretend."""
    with _Computing(), _Names():
        yield


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
        stack.enter_context(_modes())
        stack.enter_context(patch(served_views, "thread_context", _modes))
        yield DEVICE
