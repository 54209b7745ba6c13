"""The Slurm launcher on a real Slurm of one node, which `one_node_slurm.sh` starts for the test.

Run it with `make test-slurm`; it needs Debian's packages slurm-wlm and munge, and submitit.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from sweep_processes import contents, start, sweep_command, wait_for

pytestmark = pytest.mark.slurm
CLUSTER = Path(__file__).with_name("one_node_slurm.sh")
DAEMONS = ("munged", "slurmctld", "slurmd")
SWEEP = """
[[grid]]
methods = ["ncm"]
scenarios = ["drawn"]
shots = [1]
seeds = [0, 1, 2]
order = ["real", "sketch"]
base_limit = 10
"""


@pytest.fixture
def cluster(monkeypatch):
    """The folder of a Slurm that runs for the time of a test."""
    pytest.importorskip("submitit", reason="needs the extra 'slurm'")
    path = os.environ["PATH"] + ":/usr/sbin"
    missing = [name for name in DAEMONS if shutil.which(name, path=path) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} not found: install slurm-wlm and munge")
    with tempfile.TemporaryDirectory(prefix="slurm-", dir="/tmp") as folder:  # sockets: short paths
        try:
            subprocess.run([CLUSTER, "start", folder], check=True, timeout=60)
            monkeypatch.setenv("SLURM_CONF", f"{folder}/slurm.conf")
            yield Path(folder)
        finally:
            subprocess.run([CLUSTER, "stop", folder], check=False, timeout=60)
            time.sleep(2)  # its programs write into the folder until they have ended


def running():
    """The ids of the jobs that Slurm runs now."""
    asked = ["squeue", "--noheader", "--states=RUNNING", "--format=%i", "--array"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split()


def listening(port):
    """The addresses on which a port of this machine is open, as Linux writes them."""
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    lines += Path("/proc/net/tcp6").read_text().splitlines()[1:]
    fields = [line.split() for line in lines]
    return {f[1].split(":")[0] for f in fields if f[3] == "0A" and f[1].endswith(f":{port:04X}")}


def test_a_cancelled_job_is_tried_again(cluster, tmp_path, drawn_cache):
    """Three runs of a fast method; the first job that runs is cancelled behind the sweep's back."""
    assert [listening(port) for port in (16817, 16818)] == [{"0100007F"}] * 2
    (tmp_path / "sweep.toml").write_text(SWEEP)
    command = sweep_command(
        *(tmp_path / "sweep.toml", "--out", tmp_path / "runs", "--launcher", "slurm"),
        *("--launcher-set", "poll=1", "--launcher-set", "time=10"),
    )
    process = start(command)
    try:
        first, *_ = wait_for(running)
        subprocess.run(["scancel", first], check=True)
        said = "".join(process.communicate(timeout=400))
    finally:
        process.kill()
    assert process.returncode == 0, said
    assert len(contents(tmp_path / "runs")) == 3
    assert "to be tried again" in said
    assert "attempt 2: done" in said
    ended = re.findall(r"JobState=(\w+)", (cluster / "jobs.txt").read_text())
    assert sorted(ended) == ["CANCELLED", "COMPLETED", "COMPLETED", "COMPLETED"]
