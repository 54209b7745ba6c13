"""Write the tables of docs/real-images.md from the boards in leaderboards/real-images.

    python docs/make_real_images.py

What stands outside the two marks of the page is written by hand. `tests/test_real_images_page.py`
fails when the tables are not what this script writes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from results_page.boards import shots_text
from results_page.wording import signed, table

from fsdil_bench import Record, find_records
from fsdil_bench.analysis.grouping import distinct_runs
from fsdil_bench.analysis.statistics import holm, paired_difference
from fsdil_bench.report.leaderboards.formatting import ABSENT, escape_markdown

DOCS = Path(__file__).parent
BOARDS = DOCS.parent / "leaderboards" / "real-images"
PAGE = DOCS / "real-images.md"
BEGIN = "<!-- Made by docs/make_real_images.py from leaderboards/real-images: run it again. -->"
END = "<!-- From here on by hand. -->"

SETS = {"pacs": "PACS", "folder": "Emoji"}
#: A board as leaderboards.json has it.
Board = Mapping[str, Any]
METRICS = ("AA*", "FA*", "Avg", "Last")


def main() -> None:
    """Put the tables into the page."""
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    PAGE.write_text(f"{before}{BEGIN}\n\n{tables()}\n\n{END}{after}", encoding="utf-8")


def tables(folder: Path = BOARDS) -> str:
    """CVLC against the others, then a heading and a table for every board, few images first."""
    values = json.loads((folder / "leaderboards.json").read_text(encoding="utf-8"))
    known = {r.run_id: r for r in distinct_runs(find_records(folder / "records", strict=True))}
    boards = [board for board in values["boards"] if any(row["run_ids"] for row in board["rows"])]
    boards.sort(key=lambda b: (list(SETS).index(b["dataset"]), b["shots"], tests(b, known)))
    whole = {board["dataset"]: tests(board, known) for board in boards}  # the last has the most
    few = [board for board in boards if tests(board, known) < whole[board["dataset"]]]
    parts = list(against_cvlc(few, known))
    parts += (part for board in few for part in section(board, known, "few images, "))
    parts += (part for board in boards if board not in few for part in section(board, known))
    return "\n\n".join(parts)


def against_cvlc(boards: Sequence[Board], known: Mapping[str, Record]) -> Iterable[str]:
    """CVLC minus every other method in AA*, on each of the boards that has it."""
    found = {
        f"{SETS[board['dataset']]}, {shots_text(board['shots'])}": differences(board, known)
        for board in boards
    }
    shown = {name: own for name, own in found.items() if own}
    if not shown:
        return
    one_seed = all(len(row["seeds"]) < 2 for board in boards for row in board["rows"])
    over = " images. There is one seed, so the intervals do not cover other draws of the shots."
    yield "### CVLC against the others, few images"
    yield (
        "CVLC minus the method of a row, in points of AA\\*, with the 95 % interval over test"
        + (over if one_seed else " images and seeds.")
        + " **Bold** differences are significant, with Holm's correction for the rows of a column."
    )
    methods = dict.fromkeys(name for own in shown.values() for name in own)
    rows = [[name, *(own.get(name, ABSENT) for own in shown.values())] for name in methods]
    yield table([["CVLC minus", *shown], *rows])


def differences(board: Board, known: Mapping[str, Record]) -> dict[str, str]:
    """By name of a row, what CVLC has more than it; empty without CVLC."""
    runs = {
        name_of(row): [known[run] for run in row["run_ids"]]
        for row in board["rows"] if row["run_ids"]
    }  # fmt: skip
    cvlc = runs.pop("cvlc", None)
    if not cvlc:
        return {}
    found = {name: paired_difference(cvlc, other) for name, other in runs.items()}
    sure = holm([each.p for each in found.values()])
    return {
        escape_markdown(name): f"{'**' * one}{signed(each.difference)}{'**' * one}"
        f" ({signed(each.interval.low)} to {signed(each.interval.high)})"
        for (name, each), one in zip(found.items(), sure, strict=True)
    }


def section(board: Board, known: Mapping[str, Record], which: str = "") -> Iterable[str]:
    """What a board is about, and its rows."""
    rows = [row for row in board["rows"] if row["run_ids"]]
    domains = ", ".join(
        f"{domain['name']} ({domain['train']:,} and {domain['test']:,})"
        for domain in a_record(board, known).scenario["domains"]
    )
    shots, images = shots_text(board["shots"]), tests(board, known)
    yield f"### {SETS[board['dataset']]}, {which}{images:,} test images, {shots}"
    seeds = sorted({seed for row in rows for seed in row["seeds"]})
    yield (f"Images to train and to test on: {domains}. {len(seeds)} seed{'s' * (len(seeds) > 1)}.")
    heads = ["method", "AA\\*", "95 %", "FA\\*", "Avg", "Last", "routed right", "AA\\* if told",
             "s to learn", "ms an image"]  # fmt: skip
    yield table([heads, *(cells(row) for row in rows)])


def cells(row: Mapping[str, Any]) -> list[str]:
    """A row of a board in short."""
    best, scores = row["scores"]["AA*"], row["scores"]
    marks = {"best": "**{}**", "tied": "{} ≈", "undecided": "{} ?"}
    mark = marks.get(best["place"], "{}")
    return [
        escape_markdown(name_of(row)),
        mark.format(with_spread(best)),
        f"{best['low']:.1f} to {best['high']:.1f}",
        *(with_spread(scores[metric]) for metric in METRICS[1:]),
        ABSENT if row["routing"] is None else f"{row['routing']:.0f} %",
        ABSENT if row["oracle"] is None else f"{row['oracle']:.1f}",
        f"{row['cost']['learn_seconds']:.0f}",
        f"{1000 * row['cost']['predict_per_image']:.1f}",
    ]


def name_of(row: Mapping[str, Any]) -> str:
    """The method; rows of zero-shot say their sentences, and CVLC's say the authors' mode."""
    if row["method"] != "zero-shot" or row["label"] == row["method"]:
        authors = row["config"].get("mode") == "authors"
        return f"{row['method']}, authors' mode" if authors else str(row["method"])
    sentences = row["config"]["templates"]
    which = f"“{sentences[0]}”" if len(sentences) == 1 else f"{len(sentences)} templates"
    return f"{row['method']}, {which}"


def with_spread(score: Mapping[str, Any]) -> str:
    """The mean over seeds, with the standard deviation if there are several."""
    if score["mean"] is None:
        return ABSENT
    spread = f" ± {score['std']:.1f}" if score["std"] is not None else ""
    return f"{score['mean']:.1f}{spread}"


def tests(board: Board, known: Mapping[str, Record]) -> int:
    """How many test images all domains have."""
    return sum(domain["test"] for domain in a_record(board, known).scenario["domains"])


def a_record(board: Board, known: Mapping[str, Record]) -> Record:
    """Any record of a board: all have the same images."""
    return next(known[run] for row in board["rows"] for run in row["run_ids"])


if __name__ == "__main__":
    main()
