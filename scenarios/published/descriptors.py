"""What the descriptors of published data sets have in common: backbone, options, source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fsdil_bench import ScenarioInfo, ScenarioRequest, Stream, drop_copies, option

#: The default backbone of the scenarios on published images: the paper's.
BACKBONE = "ViT-B-16-quickgelu:openai"

#: What the option `drop_duplicates` does.
DROPPING = "leave out training images that also occur as test images, in any domain"

_FOLDER = "fsdil_scenarios.published"


@dataclass(frozen=True)
class Options:
    """What can be set with `--scenario-set`."""

    drop_duplicates: bool = option(False, DROPPING)


def published_scenario(
    name: str, summary: str, domains: tuple[str, ...], classes: int, file: str, **more: Any
) -> ScenarioInfo:
    """The descriptor of a data set that `file.py` builds and `file_source.py` downloads and checks.

    `more` sets or replaces any field of the descriptor.
    """
    fields: dict[str, Any] = {
        "factory": f"{_FOLDER}.{file}:build",
        "default_backbone": BACKBONE,
        "needs_data": True,
        "options": f"{_FOLDER}.descriptors:Options",
        "source": f"{_FOLDER}.{file}_source:SOURCE",
    }
    return ScenarioInfo(name, summary, domains=domains, classes=classes, **(fields | more))


def as_asked(stream: Stream, request: ScenarioRequest) -> Stream:
    """The stream, without copies of test images if the user asks for that."""
    options = request.options
    return drop_copies(stream) if options is not None and options.drop_duplicates else stream
