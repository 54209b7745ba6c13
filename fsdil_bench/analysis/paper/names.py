"""The paper's methods under the names that they have here, registered already or not."""

from __future__ import annotations

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

#: A row of differences, not a method: CVLC minus the best of the others.
LEAD = "CVLC - best other"


def our_name(spelling: str) -> str:
    """The usual name of a method of the paper; that of the row of differences is empty."""
    return "" if spelling == LEAD else NAMES[spelling][0]


def usual_name(method: str) -> str:
    """The usual name for one of our names, or `method` itself."""
    return next((names[0] for names in NAMES.values() if method in names), method)
