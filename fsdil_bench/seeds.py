"""One run seed, many independent generators: each derived from the seed and a purpose.

Nothing shares a random stream with anything else, so adding a draw in one place changes no
other place, and a resumed run continues exactly where the killed one stopped.
"""

from __future__ import annotations

import hashlib
import random
from typing import TYPE_CHECKING

import numpy as np

from fsdil_bench.errors import RequestError

if TYPE_CHECKING:
    import torch

#: The largest seed that NumPy's global generator takes, which code of other projects uses.
LARGEST_SEED = 2**32 - 1


def check_seed(seed: object) -> int:
    """`seed`, if it is a whole number that every generator takes."""
    if isinstance(seed, int) and not isinstance(seed, bool) and 0 <= seed <= LARGEST_SEED:
        return seed
    raise RequestError(
        f"seed {seed!r:.60} does not fit", f"A seed is a whole number from 0 to {LARGEST_SEED}."
    )


def derive(seed: int, *purpose: object) -> int:
    """A 63-bit seed for `purpose` (any words and numbers) under the run's `seed`."""
    text = "/".join(str(word) for word in (seed, *purpose))
    # 63 bits, because torch takes signed 64-bit seeds.
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def numpy_generator(seed: int, *purpose: object) -> np.random.Generator:
    """A NumPy generator of its own for `purpose`."""
    return np.random.Generator(np.random.PCG64(derive(seed, *purpose)))


def torch_generator(seed: int, *purpose: object) -> torch.Generator:
    """A CPU torch generator of its own for `purpose`."""
    import torch

    return torch.Generator().manual_seed(derive(seed, *purpose))


def seed_everything(seed: int, *purpose: object) -> None:
    """Seed the global generators too, for code that draws from them."""
    import torch

    value = derive(seed, *purpose)
    random.seed(value)
    np.random.seed(value % 2**32)  # noqa: NPY002 - third-party code may use the global one
    torch.manual_seed(value)
