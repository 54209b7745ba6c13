"""Boards over many records: how long they take against reading the records, and the page's size."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from fsdil_bench.records.record import find_records
from fsdil_bench.report.leaderboards import write_leaderboards

from .made_records import make_records

RECORDS = 2000


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        runs, out = Path(name) / "runs", Path(name) / "boards"
        make_records(runs, RECORDS, domains=6, images=480)
        began = time.perf_counter()
        records = find_records(runs)
        read = time.perf_counter() - began
        began = time.perf_counter()
        files = write_leaderboards(records, out)
        written = time.perf_counter() - began
        page = (out / "index.html").stat().st_size
        print(f"reading {len(records)} records: {read:.1f} s")
        print(f"writing {len(files)} files:  {written:.1f} s")
        print(f"writing takes {written / read:.1f} times as long as reading")
        print(f"the page has {page / 2**20:.2f} MB, {page / len(records):.0f} bytes per record")
