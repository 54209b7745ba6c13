"""Leaderboards from run records: the same files, byte for byte, for the same records.

columns                    what a board shows of a row; a new column is added there
markdown, latex, page      the formats for readers (`page` is index.html, `page_data` its content)
thumbnails                 pictures of test images beside the page
csv_json                   the formats for programs
orders                     mean and spread over orders of the domains, in all these formats
paper_lines                measured numbers beside those that the paper reports
commands                   what to type to get a result again
formatting                 numbers and names as text
write                      writes all files
publish                    the small file of published boards that the package carries

Rows, boards and sheets themselves are made by `fsdil_bench.analysis.boards`.
"""

from __future__ import annotations

from fsdil_bench.analysis.boards import Board, Sheet
from fsdil_bench.analysis.grouping import group_into_boards

from .write import copy_records, write_leaderboards

__all__ = ["Board", "Sheet", "copy_records", "group_into_boards", "write_leaderboards"]
