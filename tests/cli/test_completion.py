"""The shell completes names quickly and without running anything, and files where files belong."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig

import click
import pytest
from click.shell_completion import ShellComplete

from fsdil_bench import cli
from fsdil_bench.cli.completion import VARIABLE


def completed(line: str) -> list[tuple[str, str]]:
    """Types and values of what may follow; the last word is the one that is typed."""
    *words, last = line.split(" ")
    shell = ShellComplete(cli.cli, {}, "fsdil-bench", VARIABLE)
    return [(item.type, item.value) for item in shell.get_completions(words, last)]


def values(line: str) -> list[str]:
    assert {kind for kind, _ in completed(line)} <= {"plain"}
    return [value for _, value in completed(line)]


@pytest.mark.parametrize(
    ("line", "some"),
    [
        ("run --method nc", ["ncm", "ncm-text"]),
        ("run -m ncm -s drawn-", ["drawn-1shot", "drawn-4shot"]),
        ("run -m ncm -s drawn-1shot", ["drawn-1shot", "drawn-1shot@validation"]),
        ("run -m ncm -b tin", ["tiny-clip"]),
        ("run -m ncm -b ViT", ["ViT-B-16-quickgelu:openai"]),
        ("list methods ranp", ["ranpac"]),
        ("list scenarios dr", ["drawn"]),
        ("list launchers ", ["local", "slurm", "ray"]),
        ("check nc", ["ncm"]),
        ("check ncm -s dra", ["drawn-2shot"]),
        ("cost sl", ["slda"]),
        ("cost slda core50-1", ["core50-1shot"]),
        ("tune l2p s-pr", ["s-prompts"]),
        ("tune l2p -s sh", ["shelf-1shot"]),
        ("sweep -m ncm,sld", ["ncm,slda"]),
        ("sweep -s dr", ["drawn", "drawn-1shot"]),
        ("sweep --launcher sl", ["slurm"]),
        ("compare sl", ["slda"]),
        ("compare slda nc", ["ncm"]),
        ("compare a b --scenario dr", ["drawn-1shot"]),
        ("data get cor", ["core50"]),
        ("data verify dom", ["domainnet"]),
        ("data path ", ["core50", "pacs"]),
        ("paper --metric L", ["Last"]),
        ("show x --plot cu", ["curves"]),
        ("cache clear fe", ["features"]),
        ("completion ", ["bash", "zsh", "fish"]),
        ("lead", ["leaderboard"]),
        ("run --sea", []),
        ("run --see", ["--seed", "--seeds"]),
    ],
)
def test_names(line, some):
    found = values(line)
    assert set(some) <= set(found)
    start = line.rpartition(" ")[2]
    assert all(value.startswith(start) for value in found)


def test_data_sets_are_those_that_have_images_to_get():
    assert "drawn" not in values("data get ")


def test_nothing_is_offered_for_an_unknown_beginning():
    assert values("run --method zzz") == []


@pytest.mark.parametrize(
    "line",
    [
        "run --plugin my_m", "run --data x", "run --out r", "show ru", "leaderboard ru",
        "verify ru", "submit ru", "rank ru", "paper ru", "sweep sw", "sweep --out r",
        "compare a b ru", "compare ./r", "run --config my", "new-method x --out f",
    ],
)  # fmt: skip
def test_files(line):
    assert completed(line) == [("file", line.rpartition(" ")[2])]


def leaves(command):
    if isinstance(command, click.Group):
        for each in command.commands.values():
            yield from leaves(each)
    else:
        yield command


def test_every_path_completes_as_a_path():
    for command in leaves(cli.cli):
        for parameter in command.params:
            if parameter.name in {"plugins", "out", "runs", "data", "folder", "names", "synonyms"}:
                [item] = parameter.shell_complete(click.Context(command), "x")
                assert item.type in {"file", "dir"}, (command.name, parameter.name)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_asks_for_what_the_program_hears(call, shell):
    code, out, err = call("completion", shell)
    assert (code, err) == (0, "")
    assert "fsdil-bench" in out
    assert f"{VARIABLE}={shell}_complete" in out
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=out, text=True, check=True)


@pytest.mark.skipif(shutil.which("fish") is None, reason="needs fish (Debian: fish)")
def test_fish_completes_lists_and_shows_whole_sentences(call, tmp_path):
    """Values and help may have commas, at which click's own script cuts them off."""
    script = tmp_path / "fsdil-bench.fish"
    script.write_text(call("completion", "fish")[1])
    path = os.pathsep.join([sysconfig.get_path("scripts"), os.environ["PATH"]])

    def completed_in_fish(line):
        asked = f"source {script}; complete --do-complete '{line}'"
        done = subprocess.run(
            ["fish", "--no-config", "-c", asked],
            capture_output=True, text=True, env=os.environ | {"PATH": path},
        )  # fmt: skip
        return dict(each.split("\t") for each in done.stdout.splitlines())

    assert "ncm,slda" in completed_in_fish("fsdil-bench sweep -m ncm,sl")
    assert completed_in_fish("fsdil-bench run -m nc")["ncm-text"].startswith("nearest class mean, ")


def test_an_unknown_shell_is_refused(call):
    code, _, err = call("completion", "tcsh")
    assert code == 2
    assert "'bash', 'zsh', 'fish'" in err


def test_the_program_answers_and_imports_nothing_heavy(tmp_path):
    """As the script of bash calls it, with a plugin file that must not be executed for it."""
    (tmp_path / "mine.py").write_text("raise SystemExit('executed')")
    code = (
        "import sys; sys.argv = ['fsdil-bench']\n"
        "from fsdil_bench.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'torch', 'avalanche', 'open_clip', 'pandas', 'rich'} & set(sys.modules)\n"
        "print('heavy:', sorted(heavy))"
    )
    environment = {
        VARIABLE: "bash_complete", "COMP_CWORD": "5",
        "COMP_WORDS": "fsdil-bench\nrun\n--plugin\nmine.py\n-m\nnc",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, cwd=tmp_path
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == ["plain,ncm", "plain,ncm-text", "heavy: []"]
