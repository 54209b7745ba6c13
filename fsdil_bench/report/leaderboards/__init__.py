"""Leaderboards from run records: the same files, byte for byte, for the same records.

grouping      which records may be compared, and which boards make one table of a paper
unfinished    runs that were begun and have no record
rows          one row per method, config and code version: scores, seeds, cost
standing      which rows cannot be told from the best
against       measured beside reported numbers
commands      what to type to get a result again
text          numbers and names as text
markdown, latex, tables, page    the formats
publish       writes them all
"""

from __future__ import annotations

from fsdil_bench.analysis.boards import Board, Sheet, group_into_boards

from .publish import copy_records, write_leaderboards

__all__ = ["Board", "Sheet", "copy_records", "group_into_boards", "write_leaderboards"]
