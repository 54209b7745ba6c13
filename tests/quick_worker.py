"""Stands in for the worker of a sweep in tests of launchers: behaves as its method says, at once.

Learns two "domains" by writing a file for each; resumes after those that are there.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

from fsdil_bench.sweeps.launchers.launcher import Task


def main() -> None:
    task = Task.from_json(Path(sys.argv[1]).read_text())
    method = task.request["method"]
    print("working on", task.key, "with", os.environ["OMP_NUM_THREADS"], "threads", flush=True)

    def finish(code, **outcome):
        task.outcome_file.write_text(json.dumps({"exit_code": code, **outcome}))
        sys.exit(code)

    def interrupted(*_):
        finish(130, status="interrupted", reason="interrupted")

    signal.signal(signal.SIGTERM, interrupted)
    task.folder.mkdir(parents=True, exist_ok=True)
    for t in range(2):
        place = task.folder / f"domain-{t}"
        if place.exists():
            print("domain", t, "is done", flush=True)
            continue
        place.mkdir()
        (place / "result.json").write_text(json.dumps({"domain": t}))
        if t == 0 and method == "hang":
            time.sleep(600)
        if t == 0 and method == "crash":
            os.kill(os.getpid(), signal.SIGKILL)
    if method == "fail":
        finish(2, status="failed", reason="no such data", retry=False)
    plugins = [Path(plugin).read_text() for plugin in task.request.get("plugins", ())]
    (task.folder / "record.json").write_text(json.dumps({"key": task.key, "plugins": plugins}))
    finish(0, status="complete")


if __name__ == "__main__":
    main()
