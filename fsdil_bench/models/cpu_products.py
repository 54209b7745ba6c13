"""Matrix products on AMD processors: by oneDNN, about twice as fast there as Intel's MKL.

torch multiplies float32 matrices with MKL, and MKL uses the wide vectors (AVX-512) of Intel's own
processors only. oneDNN, which torch has as well, uses everybody's. torch asks it only where reduced
precision is *allowed*, though; on a processor that has no faster products of less precision,
oneDNN then computes in full float32. Whether this one does is not believed but tried.

Attention has to change with it. torch's fused kernel multiplies small pieces one by one, and every
call of oneDNN has its price: two whole products with a softmax between them are faster then.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import torch

_CPUINFO = Path("/proc/cpuinfo")
#: Products that are tried: rows, what is summed over, columns. Small, ragged, and as in towers.
_TRIED = ((64, 64, 64), (7, 130, 33), (416, 192, 768), (197, 768, 512))
#: Error over the sum of the absolute terms. float32 has 1e-7, TF32 1e-4, bfloat16 1e-3.
_TOLERANCE = 3e-6


@contextlib.contextmanager
def fast_products() -> Iterator[None]:
    """Let oneDNN multiply float32 matrices where this is as precise, and known to be faster."""
    if not onednn_is_better():
        yield
        return
    flash = torch.backends.cuda.flash_sdp_enabled()
    torch.backends.cuda.enable_flash_sdp(False)
    try:
        with _allowed():
            yield
    finally:
        torch.backends.cuda.enable_flash_sdp(flash)


def onednn_is_better() -> bool:
    """Whether runs on this machine let oneDNN multiply. Not beside a GPU, for whose attention the
    switch would be the same one."""
    return not torch.cuda.is_available() and _onednn_is_better()


@cache
def _onednn_is_better() -> bool:
    return (
        hasattr(getattr(torch.backends.mkldnn, "matmul", None), "fp32_precision")
        and torch.backends.mkldnn.is_available()
        and torch.backends.mkl.is_available()
        and torch.backends.cpu.get_cpu_capability() == "AVX512"
        and _maker_is_amd()
        and products_are_precise()
    )


def products_are_precise() -> bool:
    """Whether products that may have less precision have it in full nevertheless."""
    generator = torch.Generator().manual_seed(0)
    with _allowed():
        for rows, terms, columns in _TRIED:
            a = torch.randn(rows, terms, generator=generator)
            b = torch.randn(terms, columns, generator=generator)
            error = (a @ b - a.double() @ b.double()).abs()
            if (error / (a.abs() @ b.abs())).max() > _TOLERANCE:
                return False
    return True


@contextlib.contextmanager
def _allowed() -> Iterator[None]:
    matmul = torch.backends.mkldnn.matmul  # type: ignore[attr-defined]
    before = matmul.fp32_precision
    matmul.fp32_precision = "bf16"
    try:
        yield
    finally:
        matmul.fp32_precision = before


def _maker_is_amd() -> bool:
    with contextlib.suppress(OSError):
        return "AuthenticAMD" in _CPUINFO.read_text(encoding="ascii", errors="replace")
    return False
