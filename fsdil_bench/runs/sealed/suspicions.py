"""What the processes of a sealed run did that a method has no need of, kept in the run's folder.

A file, because a run that is killed and resumed must not forget it.
"""

from __future__ import annotations

from pathlib import Path

_FILE = "suspicions.txt"
_MOST = 50


def suspect(run: Path, sentence: str) -> None:
    """Keep a sentence."""
    if sentence not in suspicions(run):
        with (run / _FILE).open("a", encoding="utf-8") as file:
            file.write(" ".join(sentence.split()) + "\n")


def suspicions(run: Path) -> list[str]:
    """All that was kept, in the order in which it happened."""
    try:
        return (run / _FILE).read_text(encoding="utf-8").splitlines()[:_MOST]
    except FileNotFoundError:
        return []
