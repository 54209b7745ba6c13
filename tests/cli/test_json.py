"""`--json` of every command that prints a table is for programs: one document of names, lists and
numbers on standard output, and no text that would have to be taken apart."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from fsdil_bench import cli

TESTS = Path(__file__).parent.parent
TOY, AIMED = TESTS / "toy_plugin.py", TESTS / "tuned_plugin.py"
PUBLISHED = TESTS.parent / "leaderboards/records/drawn-1shot"

#: Commands that print no table, and why.
WITHOUT = {
    "data get": "shows a licence and a transfer",
    "data path": "prints a path",
    "new-method": "writes files",
    "new-scenario": "writes files",
    "completion": "prints a script",
    "view": "serves a page",
}
_TOY = f"--plugin {TOY}"
_QUICK = f"-s toy-1shot {_TOY} -q"
#: At least one command line for each of all other commands, without `--json`. "runs" has a run of
#: `toy-means`, "two" the published runs of two methods.
LINES = (
    f"list methods {_TOY}",
    "list methods ncm",
    "list scenarios",
    "list scenarios folder",
    "list backbones",
    "list launchers",
    "list launchers slurm",
    "list trackers",
    f"list plugins {_TOY}",
    f"run -m toy-means --seeds 0-1 {_QUICK}",
    f"run -m prints {_QUICK}",
    f"tune aimed -s toy-2shot --plugin {AIMED} -q {_TOY} --values 0.1,1",
    f"cost toy-means toy-1shot {_TOY} --on a100 -q",
    f"check toy-means -s toy-2shot --only contract {_TOY}",
    "check --list",
    f"sweep -m toy-means {_QUICK}",
    f"sweep -m toy-means,ncm -s toy-1shot,core50-1shot {_TOY} --dry-run --on records",
    "data list",
    "data verify core50 --data nowhere",
    "cache info",
    "cache clear",
    "show runs",
    "show runs --plot matrix",
    "compare ncm slda two",
    "compare ncm slda two --plot figure.png",
    "rank two",
    "leaderboard runs",
    "paper",
    "paper two --dataset core50",
    f"verify runs {_TOY} -q",
    "verify --no-run runs",
    "submit runs --unsealed --out packed.zip",
)
PRINTS = """
from fsdil_bench import Method, MethodInfo, hookimpl


class Prints(Method):
    inputs = frozenset({"features"})

    def learn(self, domain):
        print("text of the plugin")

    def predict(self, batch):
        return batch.features.argmax(1) % 2

    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        pass


@hookimpl
def fsdil_methods():
    return [MethodInfo("prints", "prints while it learns", Prints)]
"""


def leaves(command: click.Command, path: str = "") -> Iterator[tuple[str, click.Command]]:
    """All commands by the words that call them."""
    if isinstance(command, click.Group):
        for name, each in command.commands.items():
            yield from leaves(each, f"{path} {name}".strip())
    else:
        yield path, command


def strings(values: object) -> Iterator[str]:
    """All texts of a document but the names of papers."""
    if isinstance(values, dict):
        for key, each in values.items():
            yield str(key)
            yield from strings(None if key == "paper" else each)
    elif isinstance(values, list):
        for each in values:
            yield from strings(each)
    elif isinstance(values, str):
        yield values


def joined(text: str) -> bool:
    """Whether a text is a list of names, or a number with its deviation."""
    return "±" in text or bool(re.fullmatch(r"[\w@./:+-]+([,;] ?[\w@./:+-]+)+", text))


@pytest.fixture(scope="module")
def runs(toy_registry, tmp_path_factory):
    import fsdil_bench

    out = tmp_path_factory.mktemp("world") / "runs"
    fsdil_bench.run("toy-means", "toy-1shot", out=out, registry=toy_registry)
    return out


def test_every_command_with_a_table_has_it():
    commands = dict(leaves(cli.cli))
    run_here = {name for name in commands for line in LINES if f"{line} ".startswith(f"{name} ")}
    assert run_here == set(commands) - set(WITHOUT)
    for name, command in commands.items():
        options = {flag for parameter in command.params for flag in parameter.opts}
        assert ("--json" in options) == (name not in WITHOUT), name


@pytest.mark.parametrize("line", LINES)
def test_it_prints_one_document(line, call, runs, tmp_path):
    shutil.copytree(runs, tmp_path / "runs")
    for method in ("ncm", "slda"):
        shutil.copytree(PUBLISHED / method, tmp_path / "two" / method)
    (tmp_path / "prints.py").write_text(PRINTS)
    more = ["--plugin", "prints.py"] if " prints " in line else []
    code, out, err = call(*line.split(), *more, "--json")
    assert code == int(line.startswith("data verify")), err
    values = json.loads(out)
    assert isinstance(values, dict | list)
    assert values or line == "cache clear"
    commands = [path for path in strings(values) if path.startswith("fsdil-bench ")]
    assert [text for text in strings(values) if joined(text) and text not in commands] == []
    assert "Traceback" not in err
    if more:
        assert "text of the plugin" in err


@pytest.mark.parametrize("text", ["a, b", "d0,d1,d2", "0-2; 5", "81.65 ± 0.27", "@x, @y"])
def test_joined_text_is_recognized(text):
    assert joined(text)


@pytest.mark.parametrize("text", ["a sentence, with a comma", "drawn-1shot", "", "torch 2.4"])
def test_other_text_is_not(text):
    assert not joined(text)


def test_no_number_is_no_json(call, tmp_path):
    """JSON knows neither NaN nor infinity."""
    from fsdil_bench.cli.common import _plain

    values = {"a": float("nan"), 1: (float("inf"), 2.5), "c": {"y", "x"}, "d": tmp_path}
    assert json.loads(json.dumps(_plain(values), allow_nan=False)) == {
        "a": None, "1": [None, 2.5], "c": ["x", "y"], "d": str(tmp_path),
    }  # fmt: skip
