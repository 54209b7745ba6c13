"""Random and nasty texts for every option of every command: a result, or one clear message."""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stderr, redirect_stdout

import click
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fsdil_bench import cli
from fsdil_bench.errors import RequestError
from fsdil_bench.plugins.options import parse_assignments, resolve

NASTY = (
    "nan", "inf", "-inf", "1e400", "-1", "0", "9" * 40, "/dev/null",
    "a=b", "=", "lr=nan", "mode=[", "[" * 2000, "{}", "{0}", "%s", "%n", "\\", "\x1b[31m",
    "\udc80", "é", "中", " ", "\n", "-", "--", "-x", "--help", "x.zip", "x.png", "x" * 5000, ",",
    "0-", "-0", "1-2-3", "drawn-1shot", "toy-1shot@", "ncm", "[red]", "$HOME", "true", "none",
)  # fmt: skip
# No slash and no dot: a folder that exists, such as /, would be searched for runs. No zero byte: a
# command line cannot hold one.
LEFT_OUT = dict.fromkeys(map(ord, "./\0"))
TEXTS = st.sampled_from(NASTY) | st.text(max_size=20).map(lambda text: text.translate(LEFT_OUT))
QUICK = settings(
    derandomize=True,
    deadline=None,
    max_examples=12,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def commands(group=cli.cli, path=()):
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


COMMANDS = [each for each in commands() if each[0] not in {("sweep",), ("data", "get")}]
#: What makes a command refuse before it computes: no method has this name, no run is there.
START = {
    ("run",): ["-m", "nope", "-s", "drawn-1shot"],
    ("tune",): ["nope", "-s", "drawn-1shot"],
    ("check",): ["nope"],
}


def outcome(arguments):
    """Exit code and errors of a command line."""
    out, err = io.StringIO(), io.StringIO()
    before = sys.argv
    sys.argv = ["fsdil-bench", *arguments]
    try:
        with redirect_stdout(out), redirect_stderr(err):
            cli.main()
        code = 0
    except SystemExit as stop:
        code = stop.code or 0
    finally:
        sys.argv = before
    return code, err.getvalue()


@pytest.mark.parametrize(("path", "command"), COMMANDS, ids=[" ".join(c[0]) for c in COMMANDS])
@QUICK
@given(data=st.data())
def test_every_option_takes_it_or_says_why_not(path, command, data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = [each for each in command.params if isinstance(each, click.Option)]
    options = [each for each in options if "--debug" not in each.opts]
    chosen = data.draw(st.lists(st.sampled_from(options), max_size=3)) if options else []
    arguments = [*path, *START.get(path, [])]
    for option in chosen:
        arguments.append(option.opts[-1])
        if not option.is_flag:
            arguments.append(data.draw(TEXTS))
    if path not in START:
        arguments += data.draw(st.lists(TEXTS, max_size=2))
    code, err = outcome(arguments)
    assert "fault of fsdil-bench" not in err, (arguments, err)
    assert "Traceback" not in err, (arguments, err)
    if code:
        assert code in (1, 2), (arguments, err)
        assert "rror: " in err or "Usage: " in err, (arguments, err)


@settings(QUICK, max_examples=300)
@given(name=st.sampled_from(["mode", "text_mix", "templates", "nope"]), text=TEXTS)
def test_a_setting_is_taken_or_refused(name, text):
    from fsdil_bench.plugins.descriptors import load_factory
    from fsdil_bench.plugins.registry import load_registry

    kind = load_factory(load_registry().method("ncm").factory, "ncm").Config
    try:
        found = resolve(kind, parse_assignments([f"{name}={text}"]), owner="method ncm", see="x")
    except RequestError as error:
        assert error.remedy  # noqa: PT017 - either outcome is right
    else:
        assert 0 <= found.text_mix <= 1
        assert found.mode in ("running", "balanced", "domain-max")
