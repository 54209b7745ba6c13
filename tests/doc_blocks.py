"""The code blocks of the documentation, and ways to run them as a reader would."""

from __future__ import annotations

import contextlib
import io
import linecache
import os
import re
import runpy
import shlex
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fsdil_bench import cli
from fsdil_bench.data.scenario import ScenarioId
from fsdil_bench.plugins.options import parse_assignments, resolve
from fsdil_bench.plugins.registry import KINDS, Registry, load_registry
from fsdil_bench.runs.job import load_method_class
from fsdil_bench.runs.runner import run

ROOT = Path(__file__).parent.parent
PROGRAM = "fsdil-bench "
TOY = ROOT / "tests" / "toy_plugin.py"
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for pattern in ("*.md", "docs/**/*.md", "examples/*.md", "examples/*/*.md")
    for path in ROOT.glob(pattern)
)


@dataclass(frozen=True)
class Block:
    """A fenced block: ```language title="..." """

    page: str
    line: int
    language: str
    title: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks(page: str) -> list[Block]:
    """All fenced blocks of a page, also those inside lists."""
    found, opened = [], None
    lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, 1):
        fence = re.match(r"\s*(`{3,}|~{3,})\s*(.*)$", line)
        if fence and opened is None:
            opened, info = number, fence[2]
        elif fence and not fence[2] and opened is not None:
            language, _, rest = info.partition(" ")
            title = re.search(r'title="([^"]*)"', rest)
            text = textwrap.dedent("\n".join(lines[opened : number - 1])) + "\n"
            found.append(Block(page, opened, language, title[1] if title else "", text))
            opened = None
    assert opened is None, f"{page}:{opened}: the block has no end"
    return found


def commands(block: Block) -> list[str]:
    """The commands of a console block, one per line, without comments."""
    lines = block.text.replace("\\\n", " ").splitlines()
    stripped = [re.sub(r"\s+#.*$", "", line).strip() for line in lines]
    return [" ".join(line.split()) for line in stripped if line]


def expanded(command: str) -> list[str]:
    """The words of a command as a shell hands them over: ~, $NAME and * are filled in."""
    words: list[str] = []
    for word in shlex.split(command):
        word = os.path.expandvars(word)
        if word.startswith("~"):
            word = str(Path(word).expanduser())
        matches = sorted(map(str, Path().glob(word))) if "*" in word else []
        words += matches or [word]
    return words


def call(words: list[str]) -> tuple[int, str]:
    """Exit code and output of a command, run within this process; torch is imported only once."""
    output = io.StringIO()
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(output),
    ):
        try:
            if words[0] == "fsdil-bench":
                patch.setattr(sys, "argv", words)
                cli.main()
            elif words[:2] == ["python", "-m"]:
                patch.setattr(sys, "argv", words[2:])
                runpy.run_module(words[2], run_name="__main__", alter_sys=True)
            elif words[:2] == ["python", "-c"]:
                exec(compile(words[2], "-c", "exec"), {})
            else:
                raise AssertionError(f"no way to run {shlex.join(words)}")
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(bool(end.code))
            return code, output.getvalue()
    return 0, output.getvalue()


def run_python(block: Block, names: dict[str, Any]) -> str:
    """Run a Python block in the names of its page: what it prints.

    Tests that it defines are called; a plugin must load without a problem and offer something, and
    the methods in it must run.
    """
    if "@hookimpl" in block.text:
        file = Path(block.title or f"plugin_of_line_{block.line}.py")
        file.write_text(block.text, encoding="utf-8")
        registry = load_registry([file, TOY])
        [plugin] = [p for p in registry.plugins if p.source == str(file)]
        offering = any(f"def {hook}(" in block.text for _, hook in KINDS.values())
        assert bool(plugin.offers) == offering, block
        assert not plugin.problems, f"{block}: {plugin.problems}"
        # Adapters are for towers of blocks, which the toy backbone has not.
        backbone = "tiny-clip" if "fsdil_bench.adapters" in block.text else ""
        for name, info in registry.methods.items():
            if registry.sources[f"method {name}"] == plugin.name:
                assert not isinstance(info.factory, str)
                options = {"base_limit": 2, "backbone": backbone}
                run(name, "toy-1shot", **options, registry=registry, out="toy-runs")
        return ""
    output = io.StringIO()
    lines = block.text.splitlines(keepends=True)
    linecache.cache[str(block)] = (len(block.text), None, lines, str(block))  # as notebooks do
    with contextlib.redirect_stdout(output):
        exec(compile(block.text, str(block), "exec"), names)
        if block.title.startswith("test_"):
            for test in [value for name, value in names.items() if name.startswith("test_")]:
                for arguments in _parameters(test):
                    test(*arguments)
    return output.getvalue()


def _parameters(test: Any) -> Iterator[tuple[Any, ...]]:
    marks = getattr(test, "pytestmark", [])
    if not marks:
        yield ()
    for mark in marks:
        yield from ((value,) for value in mark.args[1])


def check_parses(words: list[str], registry: Registry) -> None:
    """The command, its options and every name in it exist, though it is not run."""
    group: Any = cli.cli
    rest = words[1:]
    while rest and rest[0] in getattr(group, "commands", {}):
        group = group.commands[rest.pop(0)]
    given = group.make_context(group.name, rest).params
    if given.get("scenario"):
        scenario = ScenarioId.parse(given["scenario"])
        assert scenario.variant in {"", *registry.scenario(scenario.dataset).variants}
    if given.get("backbone"):
        registry.backbone(given["backbone"])
    if given.get("method") and not given.get("plugins"):
        method = load_method_class(registry.method(given["method"]))
        settings = parse_assignments(given.get("settings", ()))
        resolve(method.Config, settings, owner=given["method"], see="")
