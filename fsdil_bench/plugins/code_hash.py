"""A hash of the code of a plugin, the same under every version of Python.

It is a part of every run's id: when the code of a method, a scenario or a backbone changes, its
runs get new ids.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import inspect
import io
import sys
import tokenize
from collections.abc import Iterator
from functools import lru_cache
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

from .cell_code import collect, in_no_file
from .descriptors import Factory

#: Raised whenever code is hashed in a different way: the same code then has a different hash.
_CODE_HASH = "tokens 1"


def code_version(factory: Factory) -> str:
    """A hash of the source of a factory: its module and what that imports of its own package.

    Comments, docstrings and layout do not count, so correcting a text does not orphan results. The
    hash is the same under every version of Python. A class from a notebook has no module: then it
    is the class, and all that it uses (`cell_code`).
    """
    digest = hashlib.blake2b(_CODE_HASH.encode(), digest_size=8)
    if in_no_file(factory):
        cells = collect(factory, essence)
        digest.update("\0".join(["cells", *cells.lines]).encode())
        files = {beside for file in cells.files for beside in _files_beside(file)}
        files |= {path for each in cells.factories for path in source_files(each)}
    else:
        files = source_files(factory)
    for path in sorted(files):
        digest.update(b"\0" + essence(path.read_text(encoding="utf-8")).encode())
    return digest.hexdigest()


def code_behind(thing: object) -> str:
    """`code_version` of a function, a class or an object's class; empty without a source."""
    made: Any = thing if inspect.isfunction(thing) or inspect.isclass(thing) else type(thing)
    try:
        file = Path(inspect.getfile(made))
    except (TypeError, OSError):
        return ""
    known = f"{made.__module__}:{made.__qualname__}"
    try:
        return code_version(known if file in source_files(known) else made)
    except ValueError:  # a module without a spec, such as __main__
        return code_version(made)


def source_files(factory: Factory) -> set[Path]:
    """The files of a factory: its module and what that imports of its own package.

    A factory that is no text is in a plugin file: then it is that file, and what it imports of
    modules and packages beside it.
    """
    if not isinstance(factory, str):
        return _files_beside(Path(inspect.getfile(factory)))
    found: set[Path] = set()
    waiting = [factory.partition(":")[0]]
    own = _package(waiting[0])
    while waiting:
        module = waiting.pop()
        spec = _spec(module)  # None: a name imported from a module, not a module
        if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
            continue
        path = Path(spec.origin)
        if path not in found:
            found.add(path)
            names = _imports(path.read_text(encoding="utf-8"), module, path.name == "__init__.py")
            waiting += [name for name in names if f"{name}.".startswith(f"{own}.")]
    return found


def _files_beside(file: Path) -> set[Path]:
    """A file, and all files that it imports, directly or not, from its folder or below.

    They are found by their place, not by importing: the hash is the same before and after.
    """
    top = file.parent
    while (top / "__init__.py").is_file():
        top = top.parent
    found: set[Path] = set()
    waiting = [file]
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found.add(path)
        is_package = path.name == "__init__.py"
        place = (path.parent if is_package else path).relative_to(top).with_suffix("")
        names = _imports(path.read_text(encoding="utf-8"), ".".join(place.parts), is_package)
        for parts in (name.split(".") for name in names if name and not name.startswith(".")):
            # Importing a.b.c runs a/__init__.py and a/b/__init__.py, too.
            for module in (top.joinpath(*parts[:i]) for i in range(1, len(parts) + 1)):
                beside = (module.with_name(f"{module.name}.py"), module / "__init__.py")
                waiting += [each for each in beside if each.is_file()]
    return found


def _package(module: str) -> str:
    """The package whose files count as a module's own: the top-level one. In the harness it is the
    folder of the module, because `PROTOCOL` stands for the rest."""
    top = module.partition(".")[0]
    if top != __name__.partition(".")[0]:
        return top
    spec = _spec(module)
    is_folder = spec is not None and spec.submodule_search_locations is not None
    return module if is_folder else module.rpartition(".")[0]


def _spec(module: str) -> ModuleSpec | None:
    """Where a module is; unlike `find_spec` of importlib, this imports no package above it."""
    above = module.rpartition(".")[0]
    if not above:
        return importlib.util.find_spec(module)
    package = _spec(above)
    if package is None or package.submodule_search_locations is None:
        return None
    places = list(package.submodule_search_locations)
    found = (finder.find_spec(module, places) for finder in sys.meta_path)
    return next((spec for spec in found if spec is not None), None)


# Methods share files, and runs share methods: each text is scanned once in a process.
@lru_cache(maxsize=1024)
def _imports(source: str, module: str, is_package: bool) -> tuple[str, ...]:
    """Modules (or names in them) that a file imports."""
    package = module if is_package else module.rpartition(".")[0]
    names: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            start = package.rsplit(".", node.level - 1)[0] if node.level else ""
            origin = ".".join(part for part in (start, node.module) if part)
            names += [origin, *(f"{origin}.{alias.name}" for alias in node.names)]
    return tuple(names)


_UNSEEN = (tokenize.COMMENT, tokenize.NL, tokenize.ENCODING, tokenize.ENDMARKER)


@lru_cache(maxsize=1024)
def essence(source: str) -> str:
    """The tokens of a source line by line, without comments, docstrings and layout.

    A line of strings alone does nothing: it is a docstring, or might as well be one.
    """
    lines: list[str] = []
    line: list[str] = []
    only_strings = True
    for kind, text in _tokens(source):
        if kind in (tokenize.INDENT, tokenize.DEDENT):
            lines.append("<" if kind == tokenize.DEDENT else ">")
        elif kind == tokenize.NEWLINE:
            if line and not only_strings:
                lines.append(" ".join(line))
            line, only_strings = [], True
        else:
            line.append(text)
            only_strings = only_strings and kind == tokenize.STRING
    return "\n".join(lines)


def _tokens(source: str) -> Iterator[tuple[int, str]]:
    """Kind and text of every token that counts; an f-string is one token in every Python.

    From Python 3.12 on, its parts come as tokens of their own.
    """
    rows = io.StringIO(source).readlines()
    begins = getattr(tokenize, "FSTRING_START", None)
    ends = getattr(tokenize, "FSTRING_END", None)
    depth, start = 0, (0, 0)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == begins:
            start = start if depth else token.start
            depth += 1
        elif token.type == ends:
            depth -= 1
            if not depth:
                yield tokenize.STRING, _between(rows, start, token.end)
        elif not depth and token.type not in _UNSEEN:
            yield token.type, token.string


def _between(rows: list[str], start: tuple[int, int], end: tuple[int, int]) -> str:
    """The text between two places (line from 1, column from 0)."""
    if start[0] == end[0]:
        return rows[start[0] - 1][start[1] : end[1]]
    middle = rows[start[0] : end[0] - 1]
    return "".join([rows[start[0] - 1][start[1] :], *middle, rows[end[0] - 1][: end[1]]])
