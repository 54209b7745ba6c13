"""What the README tells a newcomer to type does what it says."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

from fsdil_bench import cli

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README, re.DOTALL)
PYTHON = [text for language, text in BLOCKS if language == "python"]
COMMANDS = [
    line
    for language, text in BLOCKS
    if language == "console"
    for line in text.splitlines()
    if line.startswith("fsdil-bench")
]


def test_exactly_two_set_up_commands_of_one_line():
    made = [text.strip() for language, text in BLOCKS if text.startswith("make")]
    assert made == ["make demo", "make test"]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(r"^demo:", makefile, re.MULTILINE)
    assert re.search(r"^test:", makefile, re.MULTILINE)


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_name_what_exists(command):
    """Every option and every name in the README's commands is known to the command line."""
    from fsdil_bench.plugins import load_registry
    from fsdil_bench.scenario import ScenarioId

    words = shlex.split(command)[1:]
    group, path = cli.cli, []
    while words and words[0] in getattr(group, "commands", {}):
        path.append(words.pop(0))
        group = group.commands[path[-1]]
    known = {option for parameter in group.params for option in parameter.opts}
    assert {word for word in words if word.startswith("--")} <= known
    registry = load_registry()
    if "--method" in words and "--plugin" not in words:
        registry.method(words[words.index("--method") + 1])
    if "--scenario" in words:
        registry.scenario(ScenarioId.parse(words[words.index("--scenario") + 1]).dataset)


@pytest.mark.parametrize(
    ("part", "method"), [("class NearestMean", "nearest-mean"), ("avalanche_method(mas)", "mas")]
)
def test_the_methods_of_the_readme_run(tmp_path, monkeypatch, capsys, part, method):
    if "avalanche" in part:
        pytest.importorskip("avalanche")
    source = next(text for text in PYTHON if part in text)
    (tmp_path / "plugin.py").write_text(source)
    monkeypatch.chdir(tmp_path)
    toy = str(ROOT / "tests" / "toy_plugin.py")
    arguments = f"run --plugin plugin.py --method {method} --scenario toy-1shot -q --base-limit 2"
    monkeypatch.setattr(sys, "argv", ["fsdil-bench", *arguments.split(), "--plugin", toy])
    cli.main()
    assert f"record: runs/toy-1shot/{method}" in capsys.readouterr().out


def test_the_python_lines_run(tmp_path, monkeypatch, capsys, drawn_cache):
    source = next(text for text in PYTHON if "fsdil_bench.run" in text)
    monkeypatch.chdir(tmp_path)
    exec(compile(source, "README.md", "exec"), {})
    assert "AA*" in capsys.readouterr().out


def test_the_avalanche_lines_run():
    pytest.importorskip("avalanche")
    source = next(text for text in PYTHON if "avalanche_bridge" in text)
    names: dict = {}
    exec(compile(source, "README.md", "exec"), names)
    assert len(names["scenario"].train_stream) == 6
