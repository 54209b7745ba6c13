"""What `--backbone MODEL:WEIGHTS` means, checked without torch and before anything is loaded.

WEIGHTS is a tag that open_clip publishes, a file, or two of these as IMAGE+TEXT: the image tower
from the first and all else from the second. In the canonical name, the one in a run's record and
id, files are without their folders: hashes distinguish what is in them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fsdil_bench.errors import RequestError

from .architecture import Architecture, architecture, published_architecture
from .catalogue import catalogue
from .published import Published

SUFFIXES = (".bin", ".npz", ".pt", ".pth", ".safetensors")


@dataclass(frozen=True)
class Source:
    """Where weights come from: a published tag, or else a file."""

    tag: str = ""
    file: Path = Path()

    def __str__(self) -> str:
        return self.tag or self.file.name


@dataclass(frozen=True)
class Resolved:
    """A name that means something; `text` is None where both towers are in `image`."""

    architecture: Architecture
    image: Source
    text: Source | None = None

    @property
    def image_name(self) -> str:
        """The canonical name of the image side."""
        return f"{self.architecture.model}:{self.image}"

    def __str__(self) -> str:
        return self.image_name + (f"+{self.text}" if self.text else "")


def resolve(name: str) -> Resolved:
    """What `name` means; what cannot be is an error that shows what could."""
    model, _, weights = name.partition(":")
    if not (model and weights):
        raise RequestError(
            f"'{name}' does not say which weights", "Write <MODEL>:<tag> or <MODEL>:<file>."
        )
    model = model.replace("/", "-")  # as open_clip takes ViT-B/16
    image, *text = (_source(model, part) for part in _split(weights))
    found = _architecture(model, image)
    if text and text[0].tag:
        published_architecture(model, text[0].tag)
    return Resolved(found, image, *text)


def check(name: str) -> None:
    """Say what is wrong with `name`, or that its weights cannot be had."""
    plan = resolve(name)
    for source in (plan.image, plan.text):
        if source and source.tag:
            Published(plan.architecture.model, source.tag).check()


def _architecture(model: str, source: Source) -> Architecture:
    if source.tag:
        return published_architecture(model, source.tag)
    return architecture(model, source.file)


def _split(weights: str) -> list[str]:
    """One part or two; a plus may also belong to a file's name."""
    places = [place for place, letter in enumerate(weights) if letter == "+"]
    if not places or Path(weights).expanduser().is_file():
        return [weights]
    files = [place for place in places if Path(weights[:place]).expanduser().is_file()]
    cut = (files or places)[0]
    parts = [weights[:cut], weights[cut + 1 :]]
    if not all(parts):
        raise RequestError(
            f"'{weights}' names only one side", "Write IMAGE+TEXT, each of them a tag or a file."
        )
    return parts


def _source(model: str, part: str) -> Source:
    """A tag that the model has is one, even if a file is called the same."""
    tag = part.lower().replace("-", "_")
    path = Path(part).expanduser()
    if tag in catalogue().tags.get(model, {}):
        return Source(tag=tag)
    if not (path.exists() or path.suffix in SUFFIXES or len(path.parts) > 1):
        return Source(tag=tag)
    if not path.is_file():
        raise RequestError(f"there is no file of weights {path}", "Check the path.")
    return Source(file=path.absolute())  # it may be read after the working folder has changed
