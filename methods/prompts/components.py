"""Components of prompts that are weighted and summed: three parts, which start orthogonal.

See `coda_prompt.py`, where they come from; `sec_prompt.py` has two pools of them.
"""

from __future__ import annotations

import torch

from fsdil_bench import RequestError

PARTS = ("keys", "attentions", "components")


def orthogonal(old: torch.Tensor, count: int, generator: torch.Generator) -> torch.Tensor:
    """`count` random unit vectors, orthogonal to each other and to the rows of `old` (m, ...)."""
    rows = old.flatten(1).double().cpu()
    size = rows.shape[1]
    if len(rows) + count > size:
        raise RequestError(
            f"{len(rows) + count} components cannot be orthogonal in {size} dimensions",
            "Add fewer components per domain.",
        )
    new = torch.randn(count, size, generator=generator, dtype=torch.float64)
    # QR goes from left to right: the last columns are the new vectors, less all before them.
    basis = torch.linalg.qr(torch.cat([rows, new]).T).Q[:, len(rows) :]
    return basis.T.to(old.dtype).reshape(count, *old.shape[1:])


def off_orthogonal(rows: torch.Tensor) -> torch.Tensor:
    """o(M) of matrices M (..., m, d): mean squared difference of M M' and the identity."""
    identity = torch.eye(rows.shape[-2], device=rows.device)
    return (rows @ rows.mT - identity).square().mean((-2, -1))
