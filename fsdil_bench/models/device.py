"""Where and how precisely to compute, and where results are repeatable.

Three precisions: fp32, full single precision everywhere; tf32, the same tensors, with matrix
products and convolutions in TensorFloat-32; bf16, mixed precision. torch keeps such choices in
switches of the process: a run turns them, and puts them back (`numerics`).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

import torch

from fsdil_bench.errors import RequestError

from .cpu_products import fast_products

PRECISIONS = ("fp32", "tf32", "bf16")

_DEVICES = "Use auto, cpu, cuda, cuda:1 or mps."
_NATIVE = (8, 0)  # compute capability from which on a GPU has bf16 and TF32


def choose(device: str, precision: str) -> tuple[torch.device, str]:
    """The device and precision that `auto` or an explicit request stands for.

    A GPU that has bf16 computes in it by default; older ones would only imitate it. All other
    devices compute in fp32: on a CPU bf16 is slower, and on some the instructions are missing.
    """
    place = _device(device)
    if precision == "auto":
        precision = usual_precision(place)
    if precision not in PRECISIONS:
        raise RequestError(
            f"'{precision}' is not a precision", f"Use auto, {', '.join(PRECISIONS)}."
        )
    if precision != "fp32" and place.type != "cuda":
        raise RequestError(f"{precision} is for CUDA devices only", "Use --precision fp32.")
    if precision == "tf32" and not _is_native(place):
        raise RequestError(
            f"'{torch.cuda.get_device_name(place)}' has no TF32: its compute capability is below"
            f" {'.'.join(map(str, _NATIVE))}",
            "Use --precision fp32.",
        )
    return place, precision


def usual_precision(place: torch.device) -> str:
    """What `auto` means on a device."""
    return "bf16" if place.type == "cuda" and _is_native(place) else "fp32"


def _device(name: str) -> torch.device:
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        place = torch.device(name)
    except RuntimeError:
        raise RequestError(f"'{name}' is not a device", _DEVICES) from None
    match place.type:
        case "cpu":
            return place
        case "cuda":
            if not torch.cuda.is_available():
                raise RequestError("no CUDA device is available", "Use --device cpu.")
            if (place.index or 0) >= (count := torch.cuda.device_count()):
                raise RequestError(
                    f"there is no {name}: this machine has {count} CUDA devices",
                    f"Use cuda:0 to cuda:{count - 1}." if count > 1 else "Use --device cuda.",
                )
            return place
        case "mps":
            if not torch.backends.mps.is_available():
                raise RequestError(
                    "this machine, or this build of torch, has no MPS (Apple's GPUs)",
                    "Use --device cpu.",
                )
            return place
    raise RequestError(f"fsdil-bench does not compute on '{place.type}' devices", _DEVICES)


def _is_native(place: torch.device) -> bool:
    return torch.cuda.get_device_capability(place) >= _NATIVE


@contextlib.contextmanager
def numerics(precision: str, *, deterministic: bool = False) -> Iterator[None]:
    """Let torch compute with this precision; afterwards its switches are as they were.

    `deterministic` also asks for algorithms that compute the same bits every time. An
    operation that has none raises an error: a run that says it is deterministic is.
    """
    tf32 = precision == "tf32"
    with contextlib.ExitStack() as stack:
        _switch(stack, torch.backends.cuda.matmul, "allow_tf32", tf32)
        _switch(stack, torch.backends.cudnn, "allow_tf32", tf32)
        stack.enter_context(fast_products())
        if deterministic:
            _switch(stack, torch.backends.cudnn, "deterministic", True)
            _switch(stack, torch.backends.cudnn, "benchmark", False)
            stack.callback(
                torch.use_deterministic_algorithms,
                torch.are_deterministic_algorithms_enabled(),
                warn_only=torch.is_deterministic_algorithms_warn_only_enabled(),
            )
            torch.use_deterministic_algorithms(True)
            if "CUBLAS_WORKSPACE_CONFIG" not in os.environ:  # read with the first matrix product
                os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
                stack.callback(os.environ.pop, "CUBLAS_WORKSPACE_CONFIG", None)
        yield


@contextlib.contextmanager
def full_precision(device: torch.device) -> Iterator[None]:
    """fp32 without any reduction, whatever the precision around it is."""
    with numerics("fp32"), torch.autocast(device.type, enabled=False):
        yield


def _switch(stack: contextlib.ExitStack, place: Any, name: str, value: bool) -> None:
    stack.callback(setattr, place, name, getattr(place, name))
    setattr(place, name, value)


def repeatable(device: torch.device, deterministic: bool) -> str:
    """For the record: where the same run has the same bits again."""
    if device.type == "cpu":
        return "to the bit, on such a processor with these threads, batch size and packages"
    if deterministic:
        return "to the bit, on such a device with this batch size and these packages"
    return "but for last bits, which differ from run to run on this device"


def synchronise(device: torch.device | None) -> None:
    """Wait until the device has done what it was given; a CPU always has."""
    if device is not None and device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device is not None and device.type == "mps":
        torch.mps.synchronize()
