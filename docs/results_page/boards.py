"""What docs/results.md is made from: boards of the embedded worlds, with their records."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fsdil_bench import Record, find_records
from fsdil_bench.analysis.forgetting import Forgetting, forgetting
from fsdil_bench.analysis.grouping import distinct_runs
from fsdil_bench.analysis.paper.order import order_agreement
from fsdil_bench.analysis.statistics import (
    PairedDifference,
    RankAgreement,
    holm,
    paired_difference,
)
from fsdil_bench.records.metrics import mean_and_std

BOARDS = Path(__file__).parent.parent.parent / "leaderboards"

#: The embedded worlds, and the data set of the paper that each is made after.
TWINS = {"drawn": "domainnet", "shelf": "core50", "forged": "cddb-hard"}
#: Shots that all methods ran with, for tables of all methods.
SHOTS = (1, 4)
#: What CVLC has and each of these methods lacks.
PARTS = {
    "cvlc-lora": "coalescent projections instead of LoRA",
    "cvlc-prompt": "coalescent projections instead of deep prompts",
    "cvlc-no-lsr": "latent space reservation",
    "cvlc-all-specific": "blocks that domains share",
    "cvlc-single-template": "several templates, and synonyms",
    "cvlc-no-text": "text",
    "cvlc-frozen": "adapted towers",
    "fused-prototypes": "all training",
    "text-prototypes": "all but the text prototypes",
}


@dataclass(frozen=True)
class Board:
    """A board of the leaderboards with the records of its rows by label, the best AA* first.

    `rivals` are the rows that compete: they keep no old images, and are no development runs.
    """

    world: str
    shots: int
    rows: dict[str, list[Record]]
    rivals: tuple[str, ...]
    tied: int
    smallest_difference: float | None

    @property
    def name(self) -> str:
        """What it is called in sentences and headings."""
        return f"{self.world}, {shots_text(self.shots)}"

    @property
    def runs(self) -> int:
        """How many records it is made from."""
        return sum(map(len, self.rows.values()))

    @property
    def best(self) -> str:
        """The label of the row with the highest AA* that competes; empty without one."""
        return next((label for label in self.rows if label in self.rivals), "")

    def score(self, label: str, metric: str = "AA*") -> float | None:
        """The mean over seeds; None for rows that are not there."""
        values = [record.metrics[metric] for record in self.rows.get(label, ())]
        return mean_and_std(values)[0]

    def gaps(self, a: str, b: str, metric: str = "AA*") -> list[float]:
        """A minus B for every seed that both have; none where a row is not there."""
        ours, theirs = ({r.seed: r.metrics[metric] for r in self.rows.get(x, ())} for x in (a, b))
        both = [(ours[seed], theirs[seed]) for seed in sorted(ours.keys() & theirs.keys())]
        return [x - y for x, y in both if x is not None and y is not None]


@dataclass(frozen=True)
class World:
    """An embedded world with all its records and boards, the fewest shots first."""

    name: str
    records: list[Record]
    every_board: list[Board]

    @property
    def boards(self) -> list[Board]:
        """The boards with the shots of `SHOTS`."""
        return [board for board in self.every_board if board.shots in SHOTS]

    @property
    def fullest(self) -> Board:
        """The board with the most rows, then shots, for pictures that show one number of shots."""
        return max(self.boards, key=lambda board: (len(board.rows), board.shots))


def read_worlds(folder: Path = BOARDS) -> list[World]:
    """What the leaderboards below a folder hold of the embedded worlds."""
    values = json.loads((folder / "leaderboards.json").read_text(encoding="utf-8"))
    known = {r.run_id: r for r in distinct_runs(find_records(folder / "records", strict=True))}
    rows = [row for board in values["boards"] for row in board["rows"]]
    if not known.keys() >= {run for row in rows for run in row["run_ids"]}:
        raise SystemExit("leaderboards.json has runs without a record: `make boards` first")
    return [world for name in TWINS if (world := read_world(name, values["boards"], known))]


def read_world(
    name: str, boards: Iterable[Mapping[str, Any]], known: Mapping[str, Record]
) -> World | None:
    """A world as it is: no variant, and of several backbones or orders the one with most runs."""
    own = [each for each in boards if each["dataset"] == name and not each["variant"]]
    sizes: Counter[str] = Counter()
    for board in own:
        sizes[board["sheet"]] += sum(len(row["run_ids"]) for row in board["rows"])
    if not sizes:
        return None
    sheet = max(sorted(sizes), key=lambda each: sizes[each])
    own = sorted((b for b in own if b["sheet"] == sheet), key=lambda board: board["shots"])
    records = [known[i] for board in own for row in board["rows"] for i in row["run_ids"]]
    world = World(name, records, [make_board(board, known) for board in own])
    return world if world.boards else None


def make_board(board: Mapping[str, Any], known: Mapping[str, Record]) -> Board:
    """A board with its records."""
    rows = {row["label"]: row for row in board["rows"] if row["run_ids"]}
    return Board(
        board["dataset"],
        board["shots"],
        {label: [known[i] for i in row["run_ids"]] for label, row in rows.items()},
        tuple(label for label in rows if label in board["standing"]["AA*"]),
        sum(row["scores"]["AA*"]["place"] in ("best", "tied") for row in rows.values()),
        board["smallest_difference"]["AA*"],
    )


def shots_text(shots: int) -> str:
    """1 shot, 4 shots."""
    return f"{shots} shot" + ("" if shots == 1 else "s")


def losses(records: Iterable[Record]) -> list[Forgetting]:
    """The forgetting of each run."""
    return [found for record in records if (found := forgetting(record.matrix))]


def oracle_gains(board: Board) -> dict[str, list[float]]:
    """By label and seed the points of AA* that the true domain would add, for methods that guess
    it."""
    found = {}
    for label, records in board.rows.items():
        scores = [((r.oracle_metrics or {}).get("AA*"), r.metrics["AA*"]) for r in records]
        known = [(told, guessed) for told, guessed in scores if told is not None]
        if len(known) == len(records):
            found[label] = [told - (guessed or 0.0) for told, guessed in known]
    return found


def parts_of(board: Board) -> dict[str, tuple[PairedDifference, bool]]:
    """CVLC minus each method without a part of it, and whether that is significant."""
    there = [variant for variant in PARTS if variant in board.rows and "cvlc" in board.rows]
    found = [paired_difference(board.rows["cvlc"], board.rows[variant]) for variant in there]
    sure = holm([each.p for each in found])
    return {v: (each, one) for v, each, one in zip(there, found, sure, strict=True)}


def paper_agreement(board: Board) -> tuple[list[str], RankAgreement | None]:
    """The methods that the paper's table has too, and how far the two orders agree."""
    scores = {label: mean for label in board.rows if (mean := board.score(label)) is not None}
    return order_agreement(scores, TWINS[board.world], board.shots)


def all_labels(boards: Sequence[Board]) -> list[str]:
    """The rows of all boards, in the order of the first; then what later ones have besides."""
    return list(dict.fromkeys(label for board in boards for label in board.rows))
