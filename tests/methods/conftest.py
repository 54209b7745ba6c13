from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from small_clip import ClipWorld
from tiny_world import World
from tower_world import TowerWorld


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


@pytest.fixture
def clip_world(tmp_path: Path) -> ClipWorld:
    return ClipWorld(tmp_path)


@pytest.fixture
def tower_world(tmp_path: Path) -> TowerWorld:
    return TowerWorld(tmp_path)
