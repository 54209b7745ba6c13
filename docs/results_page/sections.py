"""The sections of docs/results.md. Sentences with numbers follow from the records by rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from fsdil_bench.analysis.paper.order import FEWEST
from fsdil_bench.analysis.statistics import PairedDifference, RankAgreement, distinguishable
from fsdil_bench.report.leaderboards.formatting import ABSENT, escape_markdown

from .boards import (
    PARTS,
    SHOTS,
    TWINS,
    Board,
    World,
    all_labels,
    losses,
    oracle_gains,
    paper_agreement,
    parts_of,
    shots_text,
)
from .pictures import picture
from .wording import (
    decimals,
    listed,
    marked_somewhere,
    points,
    signed,
    table,
    weights_of,
    with_spread,
    without_empty_columns,
)

NOTE = "<!-- Made by docs/make_results.py from the records of leaderboards/: run it again. -->"
PAPER_NAMES = {"domainnet": "DomainNet", "core50": "CORe50", "cddb-hard": "CDDB-Hard"}
FLOOR, CEILING, START = "finetune", "joint", "zero-shot"
#: Whose forgetting is shown in full, besides the best of each board.
FORGETTERS = (START, FLOOR, "linear-probe", "lwf", "ewc", "cvlc", CEILING)


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
        *which_parts_pay(worlds),
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
    few = [board for world in worlds for board in world.every_board if board.shots not in SHOTS]
    return [
        "What the records in the repository show, for a reader with five minutes. The"
        " [boards](../leaderboards/README.md) have all numbers and say how sure they are."
        " [Protocol and scores](protocol.md) explains the scores.",
        f"This page is made from {number} runs ({each}) with the backbone {backbones}. Methods and"
        " boards that have not been run are missing here." + fewer_methods(few),
        "**The embedded worlds say nothing about DomainNet, CORe50 or CDDB-Hard.** Their pictures"
        " are drawn by code and their model is tiny ([The embedded world](embedded.md)). They show"
        " what a method does in a world that can be looked into, and whether its parts do what"
        " they should.",
        "Numbers are means over seeds, in percent or points, and ± is the standard deviation over"
        " seeds. Differences are taken seed by seed, because methods share the draw of the images."
        " A star marks methods that keep old images; they compete with nobody.",
    ]


def fewer_methods(boards: Sequence[Board]) -> str:
    """What the boards with other shots than `SHOTS` have, and where they are shown."""
    if not boards:
        return ""
    worlds = listed([f"`{name}`" for name in dict.fromkeys(board.world for board in boards)])
    shots = listed([str(number) for number in sorted({board.shots for board in boards})])
    return (
        f" On {worlds} fewer methods ran with {shots} shots: CVLC with its variants, cheap"
        " ones, and the ten best others of a world. They are in the tables of CVLC's parts and"
        " in the pictures over shots."
    )


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


def which_parts_pay(worlds: Sequence[World]) -> list[str]:
    """CVLC against itself without each of its parts, with any number of shots."""
    found = {world.name: [(b, own) for b in world.every_board if (own := parts_of(b))]
             for world in worlds}  # fmt: skip
    found = {name: boards for name, boards in found.items() if boards}
    if not found:
        return []
    parts = [
        "## Which parts of CVLC pay",
        "Each row is CVLC minus a method that lacks something, in points of AA\\* with the 95 %"
        " interval over seeds and test images ([Statistics](statistics.md#comparing-two-methods))."
        " Positive numbers mean that the part pays. **Bold** differences are significant, with"
        " Holm's correction for the rows of a column; the intervals are without it. ° marks a"
        " single seed.",
        "\n".join(parts_in_short(*each) for boards in found.values() for each in boards),
    ]
    for name, boards in found.items():
        rows = [
            [f"`{variant}`", what, *(part_cell(own.get(variant)) for _, own in boards)]
            for variant, what in PARTS.items()
            if any(variant in own for _, own in boards)
        ]
        heads = [shots_text(board.shots) for board, _ in boards]
        parts.append(f"### {name}: parts of CVLC")
        parts.append(table([["against", "what CVLC has besides", *heads], *rows], 2))
    return parts


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
