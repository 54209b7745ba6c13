"""Real sweeps in processes of their own, and ways to kill them, for tests."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

TOY = Path(__file__).parent / "toy_plugin.py"


def sweep_command(*arguments):
    return [sys.executable, "-m", "fsdil_bench", "sweep", *map(str, arguments)]


def toy_sweep(out, *arguments):
    return sweep_command("--plugin", TOY, "--out", out, "--threads", 1, *arguments)


def start(command, **environment):
    """A process group of its own, so that whatever the test leaves can be killed."""
    return subprocess.Popen(
        command,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_for(condition, seconds=240):
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "this takes too long"
        time.sleep(0.05)
    return found


def children(pid):
    """The processes that `pid` has started and that are still there, by Linux' /proc."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if int(parent) == pid and state != "Z":
            found.append(int(stat.parent.name))
    return found


def workers(pid):
    """The runs of a sweep: copies of its fork servers, or processes of its own."""
    found = []
    for child in children(pid):
        server = b"fork_server" in Path(f"/proc/{child}/cmdline").read_bytes()
        found += children(child) if server else [child]
    return found


def kill(pid, number=signal.SIGKILL):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def sweep(command):
    """Run a sweep to its end: its exit code and what it says."""
    process = start(command)
    out, err = process.communicate()
    return process.returncode, out + err


def sweep_with_kills(command, out: Path, cells, kills, *, schedulers=0, pause=1.0, seed=0):
    """Run a sweep to its end while killing its workers, and now and then the sweep itself.

    Kills keep pace with the records, so that all of them fall before the last one however fast the
    machine is, at random moments up to `pause` seconds later. Gives the last exit code, how many
    workers and schedulers were killed, and what the sweep said.
    """
    rng = random.Random(seed)
    killed, deaths = 0, 0
    process = start(command)
    deadline = time.monotonic() + 3600
    while process.poll() is None and (killed < kills or deaths < schedulers):
        assert time.monotonic() < deadline
        done = len(list(out.rglob("record.json")))
        if killed * cells >= kills * (done + 1):
            time.sleep(0.02)
            continue
        time.sleep(rng.uniform(0, pause))
        if deaths < schedulers and killed >= (deaths + 1) * kills // (schedulers + 1):
            process.kill()
            process.communicate()
            deaths += 1
            process = start(command)
        elif running := workers(process.pid):
            killed += kill(rng.choice(running))
    said = "".join(process.communicate())
    return process.returncode, killed, deaths, said


def contents(out: Path):
    """Everything that a sweep's records say, apart from cost and provenance; with predictions."""
    import numpy as np

    found = {}
    for path in sorted(out.rglob("record.json")):
        record = json.loads(path.read_text())
        for name in [name for name in record if name in ("cost", "provenance", "content_sha256")]:
            del record[name]
        with np.load(path.parent / "predictions.npz", allow_pickle=False) as arrays:
            predictions = {name: arrays[name].tolist() for name in arrays.files}
        found[path.parent.relative_to(out).as_posix()] = (record, predictions)
    return found
