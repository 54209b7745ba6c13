"""Embedding calibration: learned shifts and exponents between the encoders and the classifier.

CVLC, the calibration of vision and text embeddings. With the raw embeddings z and e of an encoder,
the domain's shift b_t, the base domain's b_0 and one text shift b_x for all domains

    vision   z <- n(z);  z <- n( z + c1 n(b_t) + c2 n(b_0) );        z <- pn(z; alpha_v)
    text     e <- n(e);  e <- e + c5 n(b_x) + c6 n(b_t) + c7 n(b_0);  e <- pn(e; alpha_x)

The terms of b_0 only exist after the base domain, and b_0 gets no gradient from them. Text is not
normalised between shift and PowerNorm; nothing is normalised after PowerNorm.

Every domain has its own scalars. Names here, symbols of the paper and where they are used:

    synonym_share   lambda_tx      synonyms against templates              text_prototypes
    current_share   1 - lambda_v   this domain against the base domain     visual_prototypes
    visual_share    1 - lambda_c   image prototypes against text           visual_prototypes
    vision_own      c1             b_t in image embeddings                 here
    vision_base     c2             b_0 in image embeddings                 here
    vision_power    alpha_v (c3)   exponent of image embeddings            here
    text_common     c5             b_x in text embeddings                  here
    text_own        c6             b_t in text embeddings                  here
    text_base       c7             b_0 in text embeddings                  here
    text_power      alpha_x (c8)   exponent of text embeddings             here

The paper calls the shares convex, but nothing keeps them within [0, 1]: like the authors' they are
plain real numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import torch
from torch import nn

from .power_norm import pn, unit

INITIAL: Mapping[str, float] = MappingProxyType(
    {
        "synonym_share": 0.5,
        "current_share": 0.5,
        "visual_share": 0.5,
        "vision_own": 0.5,
        "vision_base": 0.5,
        "text_common": 0.5,
        "text_own": 0.5,
        "text_base": 0.5,
        "vision_power": 0.8,
        "text_power": 0.8,
    }
)
POWERS = ("vision_power", "text_power")


class Calibration(nn.Module):
    """The scalars and the shift of one domain; `initial` overrides some of INITIAL by name."""

    synonym_share: nn.Parameter
    current_share: nn.Parameter
    visual_share: nn.Parameter
    vision_own: nn.Parameter
    vision_base: nn.Parameter
    text_common: nn.Parameter
    text_own: nn.Parameter
    text_base: nn.Parameter
    vision_power: nn.Parameter
    text_power: nn.Parameter
    shift: nn.Parameter

    def __init__(
        self,
        size: int,
        initial: Mapping[str, float] | None = None,
        *,
        shift_init_std: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        unknown = set(initial or {}) - set(INITIAL)
        if unknown:
            raise ValueError(f"no scalar of the calibration is called {', '.join(sorted(unknown))}")
        for name, value in {**INITIAL, **(initial or {})}.items():
            self.register_parameter(name, nn.Parameter(torch.tensor(float(value))))
        self.shift = new_shift(size, shift_init_std, generator)

    def weights(self) -> list[nn.Parameter]:
        """The eight scalars that are not exponents."""
        return [getattr(self, name) for name in INITIAL if name not in POWERS]

    def powers(self) -> list[nn.Parameter]:
        """The two exponents, which learn more slowly."""
        return [getattr(self, name) for name in POWERS]


def new_shift(
    size: int, std: float = 0.0, generator: torch.Generator | None = None
) -> nn.Parameter:
    """A shift vector to start from.

    Only its direction n(b) is used, which a zero vector does not have: there the derivative of n is
    1e12 I, the first step of Adam makes every coordinate the same size, and that first huge
    gradient keeps Adam from turning the vector later. The authors start from zero (std 0); any
    small std makes a shift that can learn.
    """
    noise = torch.randn(size, generator=generator) if std else torch.zeros(size)
    return nn.Parameter(std * noise)


def copy_calibration(previous: Calibration) -> Calibration:
    """A trainable copy for the next domain, also where `previous` has been frozen."""
    copy = Calibration(len(previous.shift)).to(previous.shift)
    copy.load_state_dict(previous.state_dict())
    return copy


def embed_vision(
    z: torch.Tensor, calibration: Calibration, base_shift: torch.Tensor | None = None
) -> torch.Tensor:
    """Calibrated image embeddings; `base_shift` is b_0, and None in the base domain."""
    z = unit(z) + calibration.vision_own * unit(calibration.shift)
    if base_shift is not None:
        z = z + calibration.vision_base * unit(base_shift.detach())
    return pn(unit(z), calibration.vision_power)


def embed_text(
    e: torch.Tensor,
    calibration: Calibration,
    text_shift: torch.Tensor,
    base_shift: torch.Tensor | None = None,
) -> torch.Tensor:
    """Calibrated text embeddings; `base_shift` is b_0, and None in the base domain."""
    e = unit(e) + calibration.text_common * unit(text_shift)
    e = e + calibration.text_own * unit(calibration.shift)
    if base_shift is not None:
        e = e + calibration.text_base * unit(base_shift.detach())
    return pn(e, calibration.text_power)


def embed_frozen(z: torch.Tensor, power: torch.Tensor | float | None = None) -> torch.Tensor:
    """Embeddings of the frozen encoder for statistics: no shift, PowerNorm if `power` is given."""
    return unit(z) if power is None else pn(unit(z), power)
