"""The pictures of docs/results.md, one of each kind for a world."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from fsdil_bench.report.leaderboards.formatting import escape_markdown

from .boards import World

PICTURES = Path(__file__).parent.parent / "pictures"
#: Shown in pictures whatever their place.
PICTURED = ("cvlc", "finetune")


def picture(text: str, world: World, kind: str) -> str:
    """A picture of a world."""
    return f"![{escape_markdown(text)}](pictures/{picture_file(world, kind).name})"


def picture_file(world: World, kind: str) -> Path:
    """Where a picture is."""
    return PICTURES / f"results-{world.name}-{kind}.svg"


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
