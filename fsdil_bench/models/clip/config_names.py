"""What `--backbone CONFIG.json:WEIGHTS` means, checked without torch and before anything is loaded.

WEIGHTS is a file, or two of them as IMAGE+TEXT. The file CONFIG.json alone says what model they
are for: nothing that lies beside them counts. In the canonical name no file has its folder.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fsdil_bench.errors import RequestError

from .config_file import read_config
from .known_texts import holds_known_texts
from .names import Resolved, Source, _split

_END = ".json:"


@dataclass(frozen=True, kw_only=True)
class Configured(Resolved):
    """A name that means something; with `table`, the text side is a table of embeddings."""

    config: Path
    table: bool


def resolve(name: str) -> Configured:
    """What `name` means; what cannot be is an error that says so."""
    before, _, weights = name.partition(_END)
    config = Path(before + _END[:-1]).expanduser().absolute()
    image, *text = (_file(part) for part in _split(weights))
    if holds_known_texts(image):
        raise RequestError(
            f"{image} holds text embeddings, no image tower",
            "Name the weights of the image tower before it: CONFIG.json:IMAGE+TEXT.",
        )
    table = bool(text) and holds_known_texts(text[0])
    found = read_config(config, text_tower=not table)
    # Absolute paths: they may be read after the working folder has changed.
    sources = [Source(file=file.absolute()) for file in (image, *text)]
    return Configured(found, *sources, config=config, table=table)


def check(name: str) -> None:
    """Say what is wrong with `name`."""
    resolve(name)


def _file(part: str) -> Path:
    path = Path(part).expanduser()
    if not path.is_file():
        raise RequestError(
            f"there is no file of weights {path}",
            "Check the path. With a config of their own, weights are files and never a tag.",
        )
    return path
