from __future__ import annotations

import io
import re

from fsdil_bench.progress import PlainProgress


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
