"""The numbers that the CVLC paper reports, and whether measured ones agree with them.

    from fsdil_bench.analysis import paper

    number = paper.reported("core50", 1, "cvlc", "AA*")
    verdict = paper.verdict(number, 95.6, 95.3, 95.9)

`results.csv` holds every number of the paper's result tables; data sets and methods go by the
names that they have here.
"""

from __future__ import annotations

from .agreement import Case, Verdict, verdict
from .results import CITATION, Reported, Table, reported, tables
from .setting import what_differs

__all__ = [
    "CITATION",
    "Case",
    "Reported",
    "Table",
    "Verdict",
    "reported",
    "tables",
    "verdict",
    "what_differs",
]
