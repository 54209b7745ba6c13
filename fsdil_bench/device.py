"""Choosing where and how precisely to compute."""

from __future__ import annotations

import torch

from .errors import RequestError

PRECISIONS = ("fp32", "bf16")


def choose(device: str, precision: str) -> tuple[torch.device, str]:
    """The device and precision behind `auto` and explicit wishes.

    CUDA computes in bf16 by default, the CPU always in fp32: bf16 is slower there, and on some
    processors the instructions are missing.
    """
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        place = torch.device(device)
    except RuntimeError:
        raise RequestError(
            f"'{device}' is not a device", "Use auto, cpu, cuda or cuda:1."
        ) from None
    if place.type == "cuda" and not torch.cuda.is_available():
        raise RequestError("no CUDA device is available", "Use --device cpu.")
    if precision == "auto":
        precision = "bf16" if place.type == "cuda" else "fp32"
    if precision not in PRECISIONS:
        raise RequestError(f"'{precision}' is not a precision", f"Use {' or '.join(PRECISIONS)}.")
    if precision == "bf16" and place.type != "cuda":
        raise RequestError("bf16 is for CUDA devices only", "Use --precision fp32.")
    return place, precision
