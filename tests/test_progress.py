from __future__ import annotations

import io
import re
import time
from contextlib import suppress

from sweep_processes import wait_for

from fsdil_bench import progress as module
from fsdil_bench.progress import NotebookProgress, PlainProgress, Progress, shown


def test_plain_lines_join_phases_of_one_name():
    stream = io.StringIO()
    progress = PlainProgress(stream)
    for name, total in (("training", 3), ("training", 4), ("testing", 5), ("training", 1)):
        with progress.phase(name, total):
            progress.advance()
    progress.say("done")
    with progress.phase("saving"):
        pass
    progress.say("end")
    lines = [re.sub(r"[\d.]+ s$", "T", line) for line in stream.getvalue().splitlines()]
    assert lines == [
        "training (7): T", "testing (5): T", "training (1): T", "done", "saving: T", "end",
    ]  # fmt: skip


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


def test_a_long_phase_says_how_far_it_is_every_half_minute(monkeypatch):
    monkeypatch.setattr(PlainProgress, "LOOK", 600)  # it is told by advancing alone
    stream, clock = io.StringIO(), Clock()
    progress = PlainProgress(stream, clock)
    with progress.phase("frozen features", 4000):
        for _ in range(10):
            clock.now += 8
            progress.advance(100)
    with progress.phase("short", 1):
        clock.now += 1
        progress.advance()
    progress.say("end")
    assert stream.getvalue().splitlines() == [
        "frozen features: 400 of 4000, 32 s, 12.5 per s",
        "frozen features: 800 of 4000, 64 s, 12.5 per s",
        "frozen features (4000): 80.0 s",
        "short (1): 1.0 s",
        "end",
    ]


def test_a_phase_that_does_not_advance_is_not_silent_either(monkeypatch):
    monkeypatch.setattr(PlainProgress, "LOOK", 0.01)
    stream, clock = io.StringIO(), Clock()
    progress = PlainProgress(stream, clock)
    with progress.phase("options", 5):
        for n in (1, 2):
            clock.now += 30
            wait_for(lambda n=n: stream.getvalue().count("\n") == n)
    assert stream.getvalue() == "options: 0 of 5, 30 s\noptions: 0 of 5, 60 s\n"
    assert not progress._open
    clock.now += 1000
    time.sleep(0.1)  # nothing is under way: nothing may come
    assert stream.getvalue().count("\n") == 2


class Kernel:
    """Takes the place of IPython's display: one line, and how often it changed."""

    def __init__(self, monkeypatch):
        import IPython.display

        self.lines = []
        monkeypatch.setattr(IPython.display, "display", self.show)

    def show(self, bundle, *, raw, display_id):
        assert raw
        assert display_id
        self.lines.append(bundle["text/plain"])
        return self

    def update(self, bundle, *, raw):
        assert raw
        self.lines.append(bundle["text/plain"])


def test_a_notebook_has_one_line(monkeypatch, capsys):
    kernel, now = Kernel(monkeypatch), [0.0]
    line = NotebookProgress("ncm on toy", clock=lambda: now[0])
    with line.phase("domain 1: learning", 500):
        for _ in range(500):
            now[0] += 0.01
            line.advance()
    line.say("domain 1/2 d0                60.0")
    with line.phase("domain 2: testing"):
        now[0] += 1
        line.say("warning: <odd>")
        line.advance()
    line.close(done=True)
    assert kernel.lines[0] == "ncm on toy"
    assert kernel.lines[-1] == "ncm on toy: 6.0 s"
    assert "ncm on toy | domain 1: learning 30 of 500" in kernel.lines
    assert "ncm on toy | domain 1/2 d0 60.0 | domain 2: testing" in kernel.lines
    assert len(kernel.lines) < 25
    assert capsys.readouterr().out == "warning: <odd>\n"


def test_where_progress_is_shown(monkeypatch):
    given = Progress()
    with shown(given, "x") as line:
        assert line is given
    for asked, kind in ((None, Progress), (False, Progress), (True, PlainProgress)):
        with shown(asked, "x") as line:
            assert type(line) is kind
    kernel = Kernel(monkeypatch)
    monkeypatch.setattr(module, "_in_notebook", lambda: True)
    with shown(False, "x") as line:
        assert type(line) is Progress
    assert kernel.lines == []
    with shown(None, "x") as line:
        assert type(line) is NotebookProgress
    assert re.fullmatch(r"x: \d\.\d s", kernel.lines[-1])
    with suppress(KeyboardInterrupt), shown(None, "x"):
        raise KeyboardInterrupt
    assert kernel.lines[-1].startswith("x: stopped after ")
