"""What `new-method` and `new-scenario` write runs at once, and nothing is ever overwritten."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from packages import TOY, as_if_installed

import fsdil_bench
from fsdil_bench.plugins.registry import load_registry

ROOT = Path(__file__).parent.parent
CHECKS = ["--isolated", "--line-length", "100", "--target-version", "py311"]
TOY_BACKBONE = ["--plugin", str(TOY), "--backbone", "toy-clip", "-q"]


def next_commands(out):
    return [line.strip() for line in out.split("next:\n")[1].splitlines()]


@pytest.mark.parametrize(
    ("kind", "file", "run"),
    [
        ("method", "bright_idea.py", "--method bright-idea --scenario drawn-1shot"),
        ("scenario", "bright_idea.py", "--method ncm --scenario bright-idea-1shot"),
    ],
)
def test_a_file_that_runs_at_once(call, tmp_path, kind, file, run):
    code, out, err = call(f"new-{kind}", "bright-idea")
    assert code == 0, err
    assert out.startswith(f"wrote {file}\n")
    assert [path.name for path in tmp_path.iterdir()] == [file]
    command, *others = next_commands(out)
    assert command == f"fsdil-bench run --plugin {file} {run}"
    # On the toy world, where it takes a moment.
    arguments = [word.replace("drawn-1shot", "toy-1shot") for word in shlex.split(command)[1:]]
    code, out, err = call(*arguments, "--base-limit", "2", *TOY_BACKBONE)
    assert code == 0, err
    assert "record: runs/" in out
    assert load_registry([file]).warnings() == []
    assert others == ([f"fsdil-bench check --plugin {file} bright-idea"] * (kind == "method"))
    for other in others:
        code, out, err = call(*shlex.split(other)[1:], "--scenario", "toy-2shot", *TOY_BACKBONE)
        assert code == 0, out + err


def test_the_options_of_the_method_work(call):
    call("new-method", "bright-idea", "--out", "sub")
    run = ["run", "--plugin", "sub/bright_idea.py", "-m", "bright-idea", "-s", "toy-1shot"]
    assert call(*run, "--set", "old=0.5", *TOY_BACKBONE)[0] == 0
    code, _, err = call(*run, "--set", "old=2", *TOY_BACKBONE)
    assert code == 2
    assert "out of range" in err


def test_an_edited_scenario_does_not_take_old_pictures_from_the_cache(call, tmp_path):
    call("new-scenario", "bright-idea")
    file = tmp_path / "bright_idea.py"

    def keys():
        stream = fsdil_bench.load_stream("bright-idea-1shot", registry=load_registry([file]))
        return set(stream.domains[0].test.keys)

    before = keys()
    file.write_text(file.read_text().replace('"day": (1.0,', '"day": (0.9,'))
    assert not before & keys()


@pytest.mark.parametrize("kind", ["method", "scenario"])
def test_a_package_that_can_be_installed(call, tmp_path, monkeypatch, kind):
    name = f"packed-{kind}"
    code, out, err = call(f"new-{kind}", name, "--package", "--out", "a place")
    assert code == 0, err
    folder = tmp_path / "a place" / name
    commands = next_commands(out)
    assert commands[0] == f"python -m pip install --editable 'a place/{name}[test]'"
    assert commands[1].startswith("fsdil-bench run ")
    assert commands[2] == f"python -m pytest 'a place/{name}'"
    assert {"README.md", "pyproject.toml", "src", "tests"} == {p.name for p in folder.iterdir()}
    texts = [path.read_text() for path in folder.rglob("*") if path.is_file()]
    assert not [text for text in texts if "my-" in text or "my_" in text]

    registry = as_if_installed(monkeypatch, folder)
    assert registry.warnings() == []
    method, scenario = (name, "toy-1shot") if kind == "method" else ("ncm", f"{name}-1shot")
    record = fsdil_bench.run(
        method, scenario, backbone="toy-clip", base_limit=2, registry=registry, out=tmp_path
    )
    assert record.metrics["Last"] > 0


def test_listing_the_packages_imports_neither_torch_nor_numpy(call, tmp_path):
    for kind in ("method", "scenario"):
        call(f"new-{kind}", f"light-{kind}", "--package")
    code = (
        "import sys, light_method, light_scenario;"
        "print(light_method.fsdil_methods()[0].name, light_scenario.fsdil_scenarios()[0].name);"
        "print('torch' in sys.modules)"
    )
    path = [str(tmp_path / f"light-{kind}" / "src") for kind in ("method", "scenario")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([*path, str(ROOT)])}
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert shown.stdout.split() == ["light-method", "light-scenario", "False"]


def test_what_is_written_is_clean(call, tmp_path):
    ruff = Path(sys.executable).with_name("ruff")
    if not ruff.exists():
        pytest.skip("ruff is not installed")
    for kind in ("method", "scenario"):
        for name in (f"a-{kind}", f"a-longer-{kind}"):
            for extra in ((), ("--package",)):
                code, _, err = call(f"new-{kind}", name, *extra)
                assert code == 0, err
    rules = "E,F,I,B,UP,SIM,RUF,PT,C4,RET,N,PTH,NPY"
    for command in (["check", "--select", rules, "--ignore", "N812"], ["format", "--check"]):
        result = subprocess.run(
            [ruff, *command, *CHECKS, str(tmp_path)], capture_output=True, text=True
        )
        assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(
    ("kind", "name", "message"),
    [
        ("method", "Bright", "lower-case letters"),
        ("method", "1st", "first character is a letter"),
        ("method", "a--b", "single dashes"),
        ("method", "a/b", "cannot be the name"),
        ("method", "a_b", "cannot be the name"),
        ("method", "lambda", "keyword of Python"),
        ("method", "ncm", "a method 'ncm' already"),
        ("method", "random", "installed module"),
        ("scenario", "drawn", "a scenario 'drawn' already"),
    ],
)
@pytest.mark.parametrize("package", [(), ("--package",)])
def test_bad_names_write_nothing(call, tmp_path, kind, name, message, package):
    code, _, err = call(f"new-{kind}", name, *package)
    assert code == 2
    assert message in err
    assert not list(tmp_path.iterdir())


def test_nothing_is_overwritten(call, tmp_path):
    (tmp_path / "mine.py").write_text("precious")
    (tmp_path / "mine").mkdir()
    for extra in ((), ("--package",)):
        code, _, err = call("new-method", "mine", *extra)
        assert code == 2
        assert "is not overwritten" in err
    assert (tmp_path / "mine.py").read_text() == "precious"
    assert not list((tmp_path / "mine").iterdir())
