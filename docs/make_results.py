"""Write docs/results.md and its pictures from leaderboards/leaderboards.json and its records.

    python docs/make_results.py

The page answers a few questions for a reader with five minutes. Its tables and its sentences with
numbers follow from the records by rule; what is not there yet is left out.
`tests/test_results.py` fails when the page is not what this script writes.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from fsdil_bench import Record, find_records
from fsdil_bench.analysis.forgetting import Forgetting, forgetting
from fsdil_bench.analysis.grouping import distinct_runs
from fsdil_bench.analysis.paper.order import FEWEST, order_agreement
from fsdil_bench.analysis.statistics import (
    PairedDifference,
    RankAgreement,
    distinguishable,
    holm,
    paired_difference,
)
from fsdil_bench.records.metrics import mean_and_std
from fsdil_bench.report.leaderboards.formatting import ABSENT, escape_markdown

DOCS = Path(__file__).parent
BOARDS = DOCS.parent / "leaderboards"
PAGE = DOCS / "results.md"
PICTURES = DOCS / "pictures"
NOTE = "<!-- Made by docs/make_results.py from the records of leaderboards/: run it again. -->"

#: The embedded worlds, and the data set of the paper that each is made after.
TWINS = {"drawn": "domainnet", "shelf": "core50", "forged": "cddb-hard"}
PAPER_NAMES = {"domainnet": "DomainNet", "core50": "CORe50", "cddb-hard": "CDDB-Hard"}
SHOTS = (1, 4)
FLOOR, CEILING, START = "finetune", "joint", "zero-shot"
#: Whose forgetting is shown in full, besides the best of each board.
FORGETTERS = (START, FLOOR, "linear-probe", "lwf", "ewc", "cvlc", CEILING)
#: Shown in pictures whatever their place.
PICTURED = ("cvlc", FLOOR)
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
    """An embedded world: all its records, and its boards with the shots of `SHOTS`."""

    name: str
    records: list[Record]
    boards: list[Board]

    @property
    def fullest(self) -> Board:
        """The board with the most rows, for pictures that show one number of shots."""
        return max(self.boards, key=lambda board: (len(board.rows), -board.shots))


def main() -> None:
    """Write the page and its pictures, and remove pictures that the page does not show."""
    worlds = read_worlds()
    kept = {file.name for world in worlds for file in draw(world)}
    for file in PICTURES.glob("results-*"):
        if file.name not in kept:
            file.unlink()
    PAGE.write_text(page(worlds), encoding="utf-8")


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
    own = [board for board in own if board["sheet"] == sheet]
    records = [known[i] for board in own for row in board["rows"] for i in row["run_ids"]]
    made = [make_board(board, known) for board in own if board["shots"] in SHOTS]
    return World(name, records, made) if made else None


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


# --- The page ---


def page(worlds: Sequence[World]) -> str:
    """The whole page."""
    boards = [board for world in worlds for board in world.boards]
    parts = [
        "# Results on the embedded worlds",
        NOTE,
        *introduction(worlds),
        "## In short",
        "\n".join(map(in_short, boards)),
        *how_far(worlds),
        *what_forgetting_costs(worlds),
        *what_routing_costs(boards),
        *which_parts_pay(boards),
        *the_papers_order(boards),
        *what_boards_can_tell(boards),
        *all_methods(worlds),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def introduction(worlds: Sequence[World]) -> list[str]:
    """What the page is about and what it is made from."""
    number = sum(len(world.records) for world in worlds)
    each = listed([f"{len(world.records)} on `{world.name}`" for world in worlds])
    weights = sorted({(r.spec["backbone"], weights_of(r)) for w in worlds for r in w.records})
    backbones = listed([f"`{name}` (weights {short})" for name, short in weights])
    return [
        "What the records in the repository show, for a reader with five minutes. The"
        " [boards](../leaderboards/README.md) have all numbers and say how sure they are."
        " [Protocol and scores](protocol.md) explains the scores.",
        f"This page is made from {number} runs ({each}) with the backbone {backbones}. Methods and"
        " boards that have not been run are missing here.",
        "**The embedded worlds say nothing about DomainNet, CORe50 or CDDB-Hard.** Their pictures"
        " are drawn by code and their model is tiny ([The embedded world](embedded.md)). They show"
        " what a method does in a world that can be looked into, and whether its parts do what"
        " they should.",
        "Numbers are means over seeds, in percent or points, and ± is the standard deviation over"
        " seeds. Differences are taken seed by seed, because methods share the draw of the images."
        " A star marks methods that keep old images; they compete with nobody.",
    ]


def in_short(board: Board) -> str:
    """A board in a line."""
    facts = []
    if board.best:
        alike = f", and {board.tied - 1} cannot be distinguished from it" if board.tied > 1 else ""
        facts.append(f"{escape_markdown(board.best)} is best ({points(board, board.best)}){alike}")
    start = board.score(START)
    if start is not None:
        others = [label for label in board.rivals if label != START]
        above = sum((board.score(label) or 0) > start for label in others)
        facts.append(
            f"{above} of {len(others)} methods have a higher mean than zero-shot ({start:.1f})"
        )
    if CEILING in board.rows:
        facts.append(f"joint, the ceiling, has {points(board, CEILING)}")
    if "cvlc" in board.rivals:
        place = board.rivals.index("cvlc") + 1
        facts.append(f"cvlc is number {place} of {len(board.rivals)} ({points(board, 'cvlc')})")
    return f"- **{board.name}**: {'; '.join(facts)}."


def how_far(worlds: Sequence[World]) -> list[str]:
    """Pictures of AA* over shots and against cost."""
    parts = [
        "## How far methods get",
        "Zero-shot is where a method starts, and `joint`, which learns all domains again after each"
        " one, is what it could reach with the same few images. A method that learns something is"
        " above zero-shot, and one that loses nothing is near `joint`."
        " [All methods](#all-methods) are at the end of this page.",
    ]
    for world in worlds:
        parts.append(picture(f"AA* over shots on {world.name}", world, "shots"))
        parts.append(picture(f"AA* against cost on {world.fullest.name}", world, "cost"))
    return parts


def what_forgetting_costs(worlds: Sequence[World]) -> list[str]:
    """Old domains when they were learned and at the end, and FA* of the floor and the ceiling."""
    parts = [
        "## What forgetting costs",
        "*Learned* is the accuracy on a domain when it was just learned, and *end* that on the"
        " same domain at the end of the stream; both are means over all domains but the last."
        " *Lost* is the difference. Zero-shot loses nothing, because it learns nothing; so look at"
        " the accuracy at the end as well.",
    ]
    parts.append("\n".join(filter(None, (floor_and_ceiling(b) for w in worlds for b in w.boards))))
    for world in worlds:
        labels = {board.best for board in world.boards} | {*FORGETTERS}
        there = [each for each in all_labels(world.boards) if each in labels]
        heads = [f"{what}, {shots_text(board.shots)}" for board in world.boards
                 for what in ("learned", "end", "lost", "FA\\*")]  # fmt: skip
        rows = [
            [marked_somewhere(world.boards, label),
             *(cell for board in world.boards for cell in forgetting_cells(board, label))]
            for label in there
        ]  # fmt: skip
        parts += [f"### {world.name}: old domains", table([["method", *heads], *rows])]
        parts.append(picture(f"What old domains lose on {world.fullest.name}", world, "forgetting"))
    return parts


def floor_and_ceiling(board: Board) -> str:
    """What forgetting costs the method that does nothing against it."""
    gaps = board.gaps(CEILING, FLOOR, "FA*")
    if not gaps:
        return ""
    floor, ceiling = (points(board, label, "FA*") for label in (FLOOR, CEILING))
    return (
        f"- **{board.name}**: on old domains, FA\\* of finetune is {floor} and that of joint"
        f" {ceiling}: {with_spread(gaps, signs=True)} points in between."
    )


def forgetting_cells(board: Board, label: str) -> list[str]:
    """Learned, end, lost and FA* of a row."""
    found = losses(board.rows.get(label, ()))
    if not found:
        return [ABSENT] * 4
    return [
        f"{fmean(each.learned for each in found):.1f}",
        f"{fmean(each.end for each in found):.1f}",
        with_spread([each.lost for each in found], signs=True),
        points(board, label, "FA*"),
    ]


def what_routing_costs(boards: Sequence[Board]) -> list[str]:
    """How much better methods with a router would be if they were told the domain."""
    gains = {board.name: oracle_gains(board) for board in boards}
    shown = [board for board in boards if gains[board.name]]
    if not shown:
        return []
    rows = [
        [marked_somewhere(boards, label), *(routing_cell(board, label) for board in shown)]
        for label in all_labels(boards)
        if any(label in gains[board.name] for board in shown)
    ]
    lines = []
    for board in shown:
        means = {label: fmean(own) for label, own in gains[board.name].items()}
        order = sorted(means, key=lambda label: (means[label], label))
        ends = [f"{signed(means[x])} ({escape_markdown(x)})" for x in (order[0], order[-1])]
        if len(order) > 1:
            lines.append(f"- **{board.name}**: from {ends[0]} to {ends[1]} points.")
    return [
        "## What routing costs",
        "Some methods guess the domain of a test image and treat it accordingly. This table shows"
        " how many points of AA\\* they would gain if they were told the true domain, and in"
        " brackets how often they guess right at the end. A method whose domains differ little"
        " loses nothing by a wrong guess.",
        "\n".join(lines),
        table([["method", *(board.name for board in shown)], *rows]),
    ]


def routing_cell(board: Board, label: str) -> str:
    """What the true domain would add, and how often it is guessed."""
    gains = oracle_gains(board).get(label)
    if gains is None:
        return ABSENT
    right = fmean((record.routing or [0.0])[-1] for record in board.rows[label])
    return f"{with_spread(gains, signs=True)} ({right:.0f} %)"


def which_parts_pay(boards: Sequence[Board]) -> list[str]:
    """CVLC against itself without each of its parts."""
    found = {board.name: parts_of(board) for board in boards}
    shown = [board for board in boards if found[board.name]]
    if not shown:
        return []
    rows = [
        [f"`{variant}`", what, *(part_cell(found[board.name].get(variant)) for board in shown)]
        for variant, what in PARTS.items()
        if any(variant in found[board.name] for board in shown)
    ]
    return [
        "## Which parts of CVLC pay",
        "Each row is CVLC minus a method that lacks something, in points of AA\\* with the 95 %"
        " interval over seeds and test images ([Statistics](statistics.md#comparing-two-methods))."
        " Positive numbers mean that the part pays. **Bold** differences are significant, with"
        " Holm's correction for the rows of a column; the intervals are without it. ° marks a"
        " single seed.",
        "\n".join(parts_in_short(board, found[board.name]) for board in shown),
        table([["against", "what CVLC has besides", *(board.name for board in shown)], *rows], 2),
    ]


def parts_in_short(board: Board, parts: Mapping[str, tuple[PairedDifference, bool]]) -> str:
    """Which parts pay, which cost something, and of which nothing is known."""
    pay = [PARTS[v] for v, (found, sure) in parts.items() if sure and found.difference > 0]
    cost = [PARTS[v] for v, (found, sure) in parts.items() if sure and found.difference < 0]
    open_ = len(parts) - len(pay) - len(cost)
    facts = [f"{what}: {'; '.join(own)}" for what, own in (("pay", pay), ("cost", cost)) if own]
    facts += [f"no significant difference for {open_} of {len(parts)}"] if open_ else []
    return f"- **{board.name}**: {'. '.join(fact[0].upper() + fact[1:] for fact in facts)}."


def part_cell(found: tuple[PairedDifference, bool] | None) -> str:
    """A difference with its interval."""
    if found is None:
        return ABSENT
    paired, sure = found
    text = signed(paired.difference)
    low, high = signed(paired.interval.low), signed(paired.interval.high)
    one = " °" if len(paired.seeds) == 1 else ""
    return (f"**{text}**" if sure else text) + f" ({low} to {high}){one}"


def the_papers_order(boards: Sequence[Board]) -> list[str]:
    """Whether methods come in the order of the paper's results on the twin of each world."""
    found = [(board, names, agreement) for board in boards
             for names, agreement in [paper_agreement(board)] if agreement]  # fmt: skip
    if not found:
        return []
    rows = [
        [board.world, str(board.shots), PAPER_NAMES[TWINS[board.world]], str(agreement.number),
         decimals(agreement.tau), f"{decimals(-agreement.limit)} to {decimals(agreement.limit)}",
         f"{agreement.p:.2g}"]
        for board, _, agreement in found
    ]  # fmt: skip
    heads = ["world", "shots", "the paper's", "methods", "tau", "by chance (95 %)", "p"]
    verdicts: dict[str, list[str]] = {}
    for board, _, agreement in found:
        verdicts.setdefault(verdict(agreement), []).append(board.name)
    names = sorted({name for _, own, _ in found for name in own})
    return [
        "## Does the paper's order appear?",
        "Every embedded world is made after a data set of the paper. Kendall's tau compares the"
        " order of the methods by AA\\* here with their order in the paper's table for that data"
        " set: 1 is the same order, −1 the opposite one. *By chance* is where 95 % of all orders"
        " lie, and p says how many are as far from 0. The paper's DyTox has another backbone and"
        f" is left out, and so are boards with fewer than {FEWEST} methods in common. The same"
        " order here would not confirm the paper's numbers, and another one would not refute them.",
        "\n".join(f"- {what}: {'; '.join(own)}." for what, own in verdicts.items()),
        table([heads, *rows]),
        f"Compared are, where a board has them: {listed([f'`{name}`' for name in names])}.",
    ]


def verdict(agreement: RankAgreement) -> str:
    """What tau says, in words."""
    if not agreement.significant:
        return "The order cannot be distinguished from chance"
    return "The paper's order appears" if agreement.tau > 0 else "The order is turned round"


def what_boards_can_tell(boards: Sequence[Board]) -> list[str]:
    """How many pairs of methods differ, and what could have been seen."""
    rows = []
    for board in boards:
        share = distinguishable({label: board.rows[label] for label in board.rivals})
        rows.append(
            [board.world, str(board.shots), str(len(board.rivals)), str(board.runs),
             f"{100 * share:.0f} %" if share is not None else ABSENT, str(board.tied),
             decimals(board.smallest_difference)]
        )  # fmt: skip
    heads = ["world", "shots", "methods", "runs", "pairs that differ", "not distinguishable from"
             " the best, with it", "visible difference"]  # fmt: skip
    return [
        "## What the boards can tell",
        "*Pairs that differ* is the share of the pairs of competing methods whose AA\\* is known to"
        " differ, all pairs judged at once (95 %). The visible difference is what two typical"
        " methods must differ by to be distinguished with a chance of 80 %"
        " ([Statistics](statistics.md#many-methods)). A difference below it, here or in your own"
        " runs, is no finding.",
        table([heads, *rows]),
    ]


def all_methods(worlds: Sequence[World]) -> list[str]:
    """Every method of every world."""
    parts = [
        "## All methods",
        "AA\\*, its distance from zero-shot and from `joint`, and what old domains lost.",
    ]
    for world in worlds:
        heads = [f"{what}, {shots_text(board.shots)}" for board in world.boards
                 for what in ("AA\\*", "− zero-shot", "− joint", "lost")]  # fmt: skip
        rows = [
            [marked_somewhere(world.boards, label),
             *(cell for board in world.boards for cell in distance_cells(board, label))]
            for label in all_labels(world.boards)
        ]  # fmt: skip
        columns = [["method", *heads], *rows]
        parts += [f"### {world.name}: all methods", table(without_empty_columns(columns))]
    return parts


def distance_cells(board: Board, label: str) -> list[str]:
    """AA*, the distances to the two references, and what old domains lost."""
    if label not in board.rows:
        return [ABSENT] * 4
    lost = losses(board.rows[label])
    return [
        with_spread([record.metrics["AA*"] for record in board.rows[label]]),
        *(
            with_spread(board.gaps(label, other), signs=True) if label != other else ABSENT
            for other in (START, CEILING)
        ),
        signed(fmean(each.lost for each in lost)) if lost else ABSENT,
    ]


# --- What the sections are made from ---


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


# --- Text ---


def table(rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """A Markdown table; the first row has the headings, the first `left` columns have words."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    rule = "|:--" * left + "|--:" * (len(rows[0]) - left) + "|"
    return "\n".join([lines[0], rule, *lines[1:]])


def without_empty_columns(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """The table without columns that have nothing but dashes."""
    kept = [i for i in range(len(rows[0])) if any(row[i] != ABSENT for row in rows[1:])]
    return [[row[i] for i in kept] for row in rows]


def picture(text: str, world: World, kind: str) -> str:
    """A picture of a world."""
    return f"![{escape_markdown(text)}](pictures/{picture_file(world, kind).name})"


def picture_file(world: World, kind: str) -> Path:
    """Where a picture is."""
    return PICTURES / f"results-{world.name}-{kind}.svg"


def marked(board: Board, label: str) -> str:
    """A label as Markdown, with a star where old images are kept."""
    keeps = not all(record.exemplar_free for record in board.rows[label])
    return escape_markdown(label) + (" \\*" if keeps else "")


def marked_somewhere(boards: Sequence[Board], label: str) -> str:
    """A label that one of the boards has."""
    return marked(next(board for board in boards if label in board.rows), label)


def points(board: Board, label: str, metric: str = "AA*") -> str:
    """A score of a row in short."""
    return decimals(board.score(label, metric), 1)


def with_spread(values: Sequence[float | None], *, signs: bool = False) -> str:
    """The mean over seeds with its standard deviation, if there is one."""
    mean, std = mean_and_std(values)
    if mean is None:
        return ABSENT
    return (signed(mean) if signs else f"{mean:.1f}") + (f" ± {std:.1f}" if std is not None else "")


def signed(value: float) -> str:
    """A difference with a sign, unless it rounds to nothing."""
    text = f"{value:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text.replace("-", "−")


def decimals(value: float | None, digits: int = 2) -> str:
    """A number, with a proper minus."""
    return ABSENT if value is None else f"{value:.{digits}f}".replace("-", "−")


def shots_text(shots: int) -> str:
    """1 shot, 4 shots."""
    return f"{shots} shot" + ("" if shots == 1 else "s")


def weights_of(record: Record) -> str:
    """The first letters of the hash of a backbone's weights."""
    return re.sub(r"\W", "", str(record.method["weights"]))[:8]


def listed(words: Sequence[str]) -> str:
    """a, b and c."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


# --- Pictures ---


def draw(world: World) -> list[Path]:
    """Draw all pictures of a world."""
    from fsdil_bench.report.plots.cost import plot_tradeoff
    from fsdil_bench.report.plots.forgetting import plot_forgetting
    from fsdil_bench.report.plots.method_lines import chosen
    from fsdil_bench.report.plots.shots import plot_shots

    board = world.fullest
    means = {label: board.score(label) or 0.0 for label in board.rows}
    shown = chosen(board.rows, means, also=PICTURED)
    best = [record for label in shown for record in board.rows[label]]
    drawings: dict[str, Callable[[Path], Path]] = {
        "shots": lambda file: plot_shots(world.records, file, also=PICTURED),
        "cost": lambda file: plot_tradeoff(best, file),
        "forgetting": lambda file: plot_forgetting(best, file),
    }
    return [paint(picture_file(world, kind)) for kind, paint in drawings.items()]


if __name__ == "__main__":
    main()
