from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))  # pytest's importlib mode does not

from tiny_world import World


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Models this small only lose time to more threads."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)
