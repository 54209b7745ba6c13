from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture
def reference() -> Callable[[str], Mapping[str, np.ndarray]]:
    """Arrays that the authors' own functions gave, where FSDIL_TEST_ASSETS has them."""

    def load(name: str) -> Mapping[str, np.ndarray]:
        path = Path(os.environ.get("FSDIL_TEST_ASSETS", "")) / "fixtures" / f"{name}.npz"
        if not ("FSDIL_TEST_ASSETS" in os.environ and path.is_file()):
            pytest.skip(f"FSDIL_TEST_ASSETS names no folder with fixtures/{name}.npz")
        return dict(np.load(path))

    return load
