"""A board that is served while records are added, for tests."""

from __future__ import annotations

import http.client
import json
import threading
import time
from contextlib import contextmanager

from fsdil_bench.plugins.registry import load_registry
from fsdil_bench.view import live_board
from fsdil_bench.view.live_board import LiveBoard
from fsdil_bench.view.server import BoardServer


class Served:
    """A server in a thread of this process, and requests to it."""

    def __init__(self, folder, said):
        self.said = said
        self.board = LiveBoard([folder], load_registry(), said.append)
        self.server = BoardServer(self.board, port=0)
        self.url = self.server.url
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}).start()

    def ask(self, path="/", method="GET", **headers):
        """Status, headers and text of an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.server_port, timeout=60)
        try:
            connection.request(method, path, headers=headers)
            answer = connection.getresponse()
            return answer.status, dict(answer.headers), answer.read().decode()
        finally:
            connection.close()

    def state(self):
        return json.loads(self.ask("/state")[2])

    def wait(self, condition, seconds=120):
        """The first state that is as it should be."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            state = self.state()
            if condition(state):
                return state
            time.sleep(0.05)
        raise AssertionError(f"it stays at {state}")

    def wait_for_runs(self, count):
        return self.wait(lambda state: state["runs"] == count and not state["making"])

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


@contextmanager
def served(folder, patch):
    """The runs below `folder`, looked at without pauses."""
    patch.setattr(live_board, "_LOOK", 0.0)
    patch.setattr(live_board, "_PAUSE", 0.0)
    running = Served(folder, [])
    try:
        yield running
    finally:
        running.stop()
