"""Trackers of a third party: one that keeps all it is told, and some that fail."""

from __future__ import annotations

import json
import sys

from fsdil_bench import RequestError, TrackerInfo, hookimpl

heard: list[tuple[str, object]] = []


class Lines:
    """Writes a line for every call."""

    def __init__(self, run):
        run.place.mkdir(parents=True, exist_ok=True)
        self.file = run.place / f"{run.unique_id}.jsonl"
        self.write("begun", title=run.title, key=run.key, device=run.environment["device"])

    def domain_finished(self, domain):
        self.write("domain", name=domain.name, row=domain.matrix[-1], resumed=domain.resumed)

    def run_finished(self, record):
        self.write("run", **record.metrics)

    def close(self, *, complete):
        self.write("close", complete=complete)

    def write(self, what, **values):
        with self.file.open("a") as file:
            file.write(json.dumps([what, values]) + "\n")


class FailsInDomain(Lines):
    def domain_finished(self, domain):
        raise OSError("the server is gone")


class FailsAtTheEnd(Lines):
    def run_finished(self, record):
        sys.exit(3)

    def close(self, *, complete):
        raise RequestError("too late for that")


class FailsAtOnce:
    def __init__(self, run):
        raise OSError("there is no server")


class Refuses:
    def __init__(self, run):
        raise RequestError("MY_SERVER is not set", "Set it.")


class Interrupted(Lines):
    """As if the user pressed Ctrl-C after the second domain."""

    def domain_finished(self, domain):
        super().domain_finished(domain)
        if domain.index == 1 and not domain.resumed:
            raise KeyboardInterrupt


@hookimpl
def fsdil_trackers():
    return [
        TrackerInfo("lines", "lines of JSON", Lines),
        TrackerInfo("fails-in-domain", "", FailsInDomain),
        TrackerInfo("fails-at-the-end", "", FailsAtTheEnd),
        TrackerInfo("fails-at-once", "", FailsAtOnce),
        TrackerInfo("refuses", "", Refuses),
        TrackerInfo("interrupted", "", Interrupted),
        TrackerInfo("lacks-a-library", "", Lines, modules=("no_such_library",)),
        TrackerInfo("mlflow", "takes the name of a built-in one", Lines),
    ]


@hookimpl
def fsdil_domain_finished(domain):
    heard.append(("domain", domain))


@hookimpl
def fsdil_run_finished(record):
    heard.append(("run", record))
