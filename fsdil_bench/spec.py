"""What a run is, and the id that follows from it.

The id is a hash of everything that can change the result: the method with its whole config, the
scenario with its samples, seed, backbone weights, precision, and the code of method and scenario.
Where the result is written, how the data folder is called and which device is used are not in it.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import inspect
import json
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from .descriptors import Factory

#: Raised whenever the harness itself (draws, loop, evaluation) changes results.
PROTOCOL = 1


@dataclass(frozen=True)
class RunSpec:
    """A run, resolved: all defaults and presets filled in."""

    method: str
    config: dict[str, Any]
    scenario: str
    seed: int
    backbone: str
    precision: str
    order: tuple[str, ...] = ()
    base_limit: int | None = None
    scenario_options: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return plain


def run_id(spec: RunSpec, *, stream: str, weights: str, code: dict[str, str]) -> str:
    """The id of a run from its spec, the digest of its samples, its weights and its code."""
    known = {
        "protocol": PROTOCOL,
        "spec": spec.to_dict(),
        "stream": stream,
        "weights": weights,
        "code": code,
    }
    text = json.dumps(known, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def code_version(factory: Factory) -> str:
    """A hash of the source behind a factory: its module and what that imports of its own package.

    Comments, docstrings and layout do not count, so mending a text does not orphan results.
    """
    digest = hashlib.blake2b(digest_size=8)
    for path in sorted(_sources(factory)):
        digest.update(_essence(path.read_text(encoding="utf-8")).encode())
    return digest.hexdigest()


def _sources(factory: Factory) -> set[Path]:
    if not isinstance(factory, str):
        return {Path(inspect.getfile(factory))}
    found: set[Path] = set()
    waiting = [factory.partition(":")[0]]
    while waiting:
        module = waiting.pop()
        try:
            spec = importlib.util.find_spec(module)
        except ModuleNotFoundError:  # a name imported from a module, not a module
            continue
        if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
            continue
        path = Path(spec.origin)
        if path not in found:
            found.add(path)
            source = path.read_text(encoding="utf-8")
            waiting += _own_imports(source, module, path.name == "__init__.py")
    return found


# Methods share files, and runs methods: each text is looked through once in a process.
@lru_cache(maxsize=1024)
def _own_imports(source: str, module: str, is_package: bool) -> tuple[str, ...]:
    """Modules (or names in them) of the same top-level package that a file imports."""
    top = module.partition(".")[0]
    package = module if is_package else module.rpartition(".")[0]
    names: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            start = package.rsplit(".", node.level - 1)[0] if node.level else ""
            origin = ".".join(part for part in (start, node.module) if part)
            names += [origin, *(f"{origin}.{alias.name}" for alias in node.names)]
    return tuple(name for name in names if name.partition(".")[0] == top)


@lru_cache(maxsize=1024)
def _essence(source: str) -> str:
    tree = ast.parse(source)
    for node in ast.walk(tree):
        documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        if isinstance(node, documented) and node.body and _is_docstring(node.body[0]):
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree)


def _is_docstring(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
