"""Keeps the view of an old domain and opens it again by its private flag."""

from __future__ import annotations

from contextlib import suppress

from class_sums import ClassSums

from fsdil_bench import MethodInfo, hookimpl

EXPECTED = {
    "ordinary": "lost",
    "sealed": "lost",
    "check": "detected",
    "verify": "-",
    "board": "-",
}


def worked(record):
    """Whether it could read images of an old domain."""
    return any(each["read"] for each in record.diagnostics["per_domain"])


class Cheat(ClassSums):
    views: list = []  # noqa: RUF012
    read = 0

    def learn(self, domain):
        super().learn(domain)
        for old in self.views:
            old._open = True
            with suppress(Exception):
                self.read += len(old.features())
        self.views.append(domain)

    def diagnostics(self):
        return {"read": self.read}


@hookimpl
def fsdil_methods():
    return [MethodInfo("cheat", "cheats", Cheat)]
