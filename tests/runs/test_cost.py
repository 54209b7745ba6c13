"""What a run costs: the clock waits for the device, and the peak of memory is the run's own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from fsdil_bench.runs import cost
from fsdil_bench.runs.cost import Meter, peak_memory_bytes, reset_peak_memory

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


@pytest.fixture
def queue(monkeypatch):
    """A device that works for as long as it was told when somebody waits for it."""
    clock, pending = [0.0], [0.0]

    def wait(device=None):
        clock[0] += pending[0]
        pending[0] = 0.0

    monkeypatch.setattr(cost.time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(torch.cuda, "synchronize", wait)
    monkeypatch.setattr(torch.mps, "synchronize", wait)
    return pending


@pytest.mark.parametrize("device", [CUDA, torch.device("mps")])
def test_a_phase_is_over_when_the_device_is_done(queue, device):
    meter = Meter(device)
    with meter.phase("learn"):
        queue[0] = 3.0
        with meter.phase("features"):
            queue[0] += 2.0
        queue[0] += 1.0
    with meter.phase("predict"):
        queue[0] = 5.0
    assert meter.take()["seconds"] == {"features": 2.0, "learn": 4.0, "predict": 5.0}


def test_waiting_for_images_does_not_wait_for_the_device(queue):
    meter = Meter(CUDA)
    with meter.phase("learn"):
        queue[0] = 3.0
        with meter.phase("images"):
            assert queue[0] == 3.0
        assert queue[0] == 3.0
    assert meter.take()["seconds"] == {"images": 0.0, "learn": 3.0}


def test_the_cpu_waits_for_nothing(queue):
    queue[0] = 3.0
    with Meter(CPU).phase("learn"), Meter().phase("learn"):
        pass
    assert queue[0] == 3.0


def test_the_peak_of_a_gpu_begins_anew(monkeypatch):
    reset = []
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", reset.append)
    reset_peak_memory(CUDA)
    reset_peak_memory(CPU)
    assert reset == [CUDA]


needs_linux = pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="only Linux resets the peak of a process"
)


@needs_linux
def test_a_peak_is_forgotten():
    """In a process of its own: others hold memory that comes and goes."""
    script = (
        "import numpy as np, torch\n"
        "from fsdil_bench.runs.cost import peak_memory_bytes, reset_peak_memory\n"
        "cpu = torch.device('cpu')\n"
        "block = np.ones(256 << 20, np.uint8)\n"
        "high = peak_memory_bytes(cpu)\n"
        "del block\n"
        "print(high - peak_memory_bytes(cpu))\n"
        "reset_peak_memory(cpu)\n"
        "print(high - peak_memory_bytes(cpu))\n"
    )
    kept, forgotten = subprocess.check_output([sys.executable, "-c", script], text=True).split()
    assert int(kept) < 128 << 20
    assert int(forgotten) > 128 << 20


def test_every_run_begins_with_a_peak_of_its_own(toy_run, monkeypatch):
    forgotten = []
    monkeypatch.setattr("fsdil_bench.runs.cost.reset_peak_memory", forgotten.append)
    toy_run()
    toy_run(seed=1)
    assert forgotten == [CPU, CPU]


def test_where_the_system_has_no_such_file(monkeypatch):
    def missing(*_, **__):
        raise FileNotFoundError

    monkeypatch.setattr(Path, "read_text", missing)
    monkeypatch.setattr(Path, "write_text", missing)
    reset_peak_memory(CPU)
    assert peak_memory_bytes(CPU) > 1 << 20
