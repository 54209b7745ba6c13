"""Loads a stream with more shots and learns from these, in a thread of its own."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from cheats import Weak, embedded, stronger, toy_stream

from fsdil_bench import MethodInfo, hookimpl

EXPECTED = {
    "ordinary": "prevented",
    "sealed": "prevented",
    "check": "detected",
    "verify": "-",
    "board": "-",
}

worked = stronger


class Cheat(Weak):
    def learn(self, domain):
        with ThreadPoolExecutor(1) as pool:
            stream = pool.submit(toy_stream, 12).result()
        for each in stream.domains[: domain.index + 1]:
            features, labels = embedded(self.context.backbone, each.train)
            self.sums.index_add_(0, labels, features)


@hookimpl
def fsdil_methods():
    return [MethodInfo("cheat", "cheats", Cheat)]
