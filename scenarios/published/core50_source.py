"""Where CORe50 comes from, and whether it is all there."""

from __future__ import annotations

import re
from pathlib import Path

from fsdil_bench import DataError, DataSource, Download, Outline, ScenarioRequest

from ..names import class_texts
from .core50 import FOLDER, GAP, OBJECTS, SESSIONS, TEST_FRACTION, TEST_SESSIONS
from .findings import Findings
from .image_folders import find_images

#: Frames of each session; 164,866 in all.
FRAMES = {
    1: 14989, 2: 14986, 3: 14992, 4: 14995, 5: 14966, 6: 14989,
    7: 14994, 8: 14984, 9: 14994, 10: 14986, 11: 14991,
}  # fmt: skip

SOURCE = DataSource(
    homepage="https://vlomonaco.github.io/core50/",
    license="CC BY 4.0",
    verify="fsdil_scenarios.published.core50_source:verify",
    layout=(
        f"{FOLDER}/s<1..11>/o<1..50>/C_<session>_<object>_<frame>.png",
        "for instance core50_128x128/s1/o1/C_01_01_000.png",
    ),
    downloads=(
        Download(
            "http://bias.csr.unibo.it/maltoni/download/core50/core50_128x128.zip",
            "core50_128x128.zip",
            unpack=".",
            size=5_892_103_007,
            md5="745f3373fed08d69343f1058ee559e13",
        ),
    ),
    size="5.9 GB",
    outline="fsdil_scenarios.published.core50_source:outline",
)


def outline(request: ScenarioRequest) -> Outline:
    """How many frames CORe50 has in every session."""
    names, synonyms = class_texts("core50", OBJECTS, request.names, request.synonyms)
    left_out = 2 * GAP * len(OBJECTS) if request.variant == "blocks" else 0
    images = {}
    for place, session in enumerate(SESSIONS, 1):
        test = round(TEST_FRACTION * FRAMES[session])
        images[f"s{place}"] = (FRAMES[session] - test - left_out, test)
    unseen = TEST_SESSIONS if request.variant == "sessions" else ()
    return Outline(names, images, synonyms, "core50", {f"session {n}": FRAMES[n] for n in unseen})


def verify(root: Path) -> list[str]:
    """What is wrong with CORe50 at `root`, one line each."""
    try:
        place = find_images(root, [f"s{n}" for n in SESSIONS], "core50", [FOLDER])
    except DataError as error:
        return [error.message]
    findings = Findings(place)
    findings.only(".", {f"s{n}" for n in (*SESSIONS, *TEST_SESSIONS)})
    for session, published in FRAMES.items():
        if not (place / f"s{session}").is_dir():
            findings.add("missing folders", f"s{session}: no such folder")
            continue
        findings.only(f"s{session}", set(OBJECTS))
        findings.compare(f"s{session}", _frames(findings, session), published)
    return findings.lines()


def _frames(findings: Findings, session: int) -> int:
    count = 0
    for number, name in enumerate(OBJECTS, 1):
        frames = findings.images(f"s{session}/{name}")
        pattern = re.compile(rf"C_{session:02}_{number:02}_\d+\.png")
        wrong = [frame for frame in frames if not pattern.fullmatch(frame)]
        if wrong:
            findings.add(
                "other names",
                f"s{session}/{name}: {len(wrong)} images are not called "
                f"C_{session:02}_{number:02}_<frame>.png, for instance {wrong[0]}",
            )
        count += len(frames)
    return count
