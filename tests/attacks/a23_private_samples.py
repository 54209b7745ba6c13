"""Loads test images by their ids, through the samples behind its view."""

from __future__ import annotations

from cheats import Weak

from fsdil_bench import MethodInfo, hookimpl

EXPECTED = {
    "ordinary": "lost",
    "sealed": "lost",
    "check": "-",
    "verify": "-",
    "board": "-",
}


def worked(record):
    """Whether it could load pictures."""
    return any(each["found"] for each in record.diagnostics["per_domain"])


class Cheat(Weak):
    found: tuple = ()

    def learn(self, domain):
        samples = object.__getattribute__(domain, "_samples")
        try:
            tests = [each.replace("train", "test") for each in samples.ids]
            self.found = tuple(samples.load(each) for each in tests)
        except Exception:
            self.found = ()
        super().learn(domain)

    def diagnostics(self):
        return {"found": len(self.found)}


@hookimpl
def fsdil_methods():
    return [MethodInfo("cheat", "cheats", Cheat)]
