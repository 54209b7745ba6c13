"""The paper's methods under the names that they have here, or why nobody can run them."""

from __future__ import annotations

from typing import NamedTuple

#: Our names for each of the paper's spellings; the first is the usual one.
#: A star in the paper marks methods that were made for other backbones and moved to CLIP.
NAMES: dict[str, tuple[str, ...]] = {
    "CVLC": ("cvlc",),
    "CVLC (LoRAs)": ("cvlc-lora",),
    "CVLC (Prompts)": ("cvlc-prompt",),
    "CVLC (w/o LSR)": ("cvlc-no-lsr",),
    "CVLC (All layers with task-specific DCPs)": ("cvlc-all-specific",),
    "CVLC (w/o syn. + Single template)": ("cvlc-single-template",),
    "DyTox": ("dytox",),
    "LwF*": ("lwf", "avalanche-lwf"),
    "EwC*": ("ewc", "avalanche-ewc"),
    "L2P*": ("l2p",),
    "DualPrompt*": ("dualprompt",),
    "S-Prompt": ("s-prompts",),
    "CODA-Prompt": ("coda-prompt",),
    "InfLORA*": ("inflora",),
    "CP-Prompt": ("cp-prompt",),
    "PGO-BEn": ("pgo-ben",),
    "ASP": ("asp",),
    "App": ("app",),
    "SEC": ("sec-prompt",),
    "ICON": ("icon",),
    "FSHIL": ("fshil",),
}


class OnlyByItsAuthors(NamedTuple):
    """Why a method can be run by its authors alone, and what comes nearest here.

    What is `nearest` is another method: it is never compared with numbers of the original.
    """

    why: str
    nearest: str


#: Methods of the paper that are no methods here.
ONLY_BY_AUTHORS = {
    "PGO-BEn": OnlyByItsAuthors(
        "no code is published, and what is known of it leaves its losses and its router open",
        "pgo-like",
    ),
    "FSHIL": OnlyByItsAuthors(
        "no code is published, and essential constants are unknown", "fshil-lite"
    ),
}

#: A row of differences, not a method: CVLC minus the best of the others.
LEAD = "CVLC - best other"


def our_name(spelling: str) -> str:
    """The usual name of a method of the paper; that of the row of differences is empty."""
    return "" if spelling == LEAD else NAMES[spelling][0]


def runnable_name(spelling: str) -> str:
    """What to pass to --method for a row of the paper; empty for what only its authors can run."""
    return "" if spelling in ONLY_BY_AUTHORS else our_name(spelling)


def usual_name(method: str) -> str:
    """The usual name for one of our names, or `method` itself."""
    return next((names[0] for names in NAMES.values() if method in names), method)
