"""New plugins, written by `fsdil-bench new-method` and `new-scenario`.

The templates are plugins that work, called my-method and my-scenario. To write a plugin is to copy
one and to replace its name. Only `cli` imports this folder. It imports `errors` and `system`.
"""

from __future__ import annotations

import importlib.util
import keyword
import re
from collections.abc import Container
from pathlib import Path

from fsdil_bench.errors import RequestError
from fsdil_bench.system.atomic_files import drafted

_TEMPLATES = Path(__file__).parent / "templates"


def write_plugin(
    kind: str, name: str, folder: Path, taken: Container[str], *, package: bool
) -> list[Path]:
    """Write a new plugin (`kind` is "method" or "scenario") into `folder`.

    One file, or a folder `name` that can be installed. Returns what was written; a name that is
    `taken` or cannot be used, and a file that exists, are errors, and then nothing is written.
    """
    module = name.replace("-", "_")
    _check_name(kind, name, module, taken)
    source = _TEMPLATES / (f"{kind}_package" if package else kind)
    target = folder / name if package else folder
    words = {
        f"my-{kind}": name,
        f"my_{kind}": module,
        f"My{kind.title()}": "".join(word.title() for word in name.split("-")),
    }
    texts = {
        target / _filled(path.relative_to(source).as_posix(), words): _filled(
            path.read_text(encoding="utf-8"), words
        )
        for path in sorted(source.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }
    for path in [*([target] if package else []), *texts]:
        if path.exists():
            raise RequestError(
                f"'{path}' exists and is not overwritten",
                "Choose another name, or another folder with --out.",
            )
    _check_module(module)
    target.parent.mkdir(parents=True, exist_ok=True)
    if not package:
        target.mkdir(exist_ok=True)
    with drafted(target if package else next(iter(texts))) as draft:
        for path, text in texts.items():
            place = draft / path.relative_to(target) if package else draft
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8")
    return list(texts)


def _filled(text: str, words: dict[str, str]) -> str:
    for word, replacement in words.items():
        text = text.replace(word, replacement)
    return text


def _check_name(kind: str, name: str, module: str, taken: Container[str]) -> None:
    if len(name) > 64 or not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise RequestError(
            f"'{name}' cannot be the name of a {kind}",
            "Use lower-case letters, digits and single dashes, at most 64 characters; the first "
            "character is a letter.",
        )
    if keyword.iskeyword(module):
        raise RequestError(f"'{name}' is a keyword of Python", "Choose another name.")
    if name in taken:
        raise RequestError(
            f"there is a {kind} '{name}' already",
            f"Choose another name; `fsdil-bench list {kind}s` shows those that are taken.",
        )


def _check_module(module: str) -> None:
    """A file of that name would hide the module from a Python that runs in its folder."""
    if importlib.util.find_spec(module) is not None:
        raise RequestError(f"'{module}' is the name of an installed module", "Choose another name.")
