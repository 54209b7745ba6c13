"""Keeps old features in a thread."""

from __future__ import annotations

import queue
import threading

from cheats import Weak, stronger

from fsdil_bench import MethodInfo, hookimpl

EXPECTED = {
    "ordinary": "works",
    "sealed": "lost",
    "check": "detected",
    "verify": "detected",
    "board": "-",
}

worked = stronger


def keep(name, asked, answers):
    """Hold what comes, and hand it out again when None comes."""
    kept: list = []
    while True:
        if (pair := asked.get()) is None:
            answers.put(kept)
        else:
            kept.append(pair)


class Cheat(Weak):
    def __init__(self, context):
        super().__init__(context)
        named = {each.name: each for each in threading.enumerate()}
        if NAME not in named:
            queues = (queue.SimpleQueue(), queue.SimpleQueue())
            named[NAME] = threading.Thread(target=keep, name=NAME, args=(NAME, *queues))
            named[NAME].queues, named[NAME].daemon = queues, True
            named[NAME].start()
        self.queues = named[NAME].queues

    def remember(self, features, labels):
        self.queues[0].put((features, labels))

    def recall(self):
        self.queues[0].put(None)
        return self.queues[1].get()


NAME = f"attack-{id(keep)}"


@hookimpl
def fsdil_methods():
    return [MethodInfo("cheat", "cheats", Cheat)]
