"""Whatever is written into a sweep is understood in full, or refused with a message."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sweep_processes import TOY

from fsdil_bench.errors import FsdilError, RequestError
from fsdil_bench.plugins.registry import load_registry
from fsdil_bench.report.leaderboards.formatting import seed_list as as_text
from fsdil_bench.sweeps.plan import make_plan
from fsdil_bench.sweeps.sweep_file import plugin_files, read_sweep
from fsdil_bench.sweeps.values import number_list, seconds

ANY = settings(max_examples=300, deadline=None, derandomize=True)


@ANY
@given(st.sets(st.integers(0, 10**9), min_size=1, max_size=50))
def test_a_list_of_numbers_survives_being_written(numbers):
    assert number_list("seeds", as_text(list(numbers))) == sorted(numbers)


PARTS = st.sampled_from(["0", "1", "7", "12", "-", ",", " ", "x", "1-3", "3-1", "_", "٣", "+", ""])


@ANY
@given(st.one_of(st.text(max_size=20), st.lists(PARTS, max_size=8).map("".join)))
@example("0,1,2x,3")
@example("1,x")
@example("0,5-2")
def test_a_text_is_a_list_of_numbers_in_full_or_refused(text):
    try:
        numbers = number_list("seeds", text)
    except RequestError:
        return
    expected = set()
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        expected |= set(range(int(first), int(last or first) + 1))
    assert set(numbers) == expected
    assert all(letter in "0123456789-, \t\r\n\v\f\x1c\x1d\x1e\x1f\x85\xa0" or letter.isspace()
               for letter in text)  # fmt: skip


@ANY
@given(st.one_of(st.text(max_size=12), st.floats(), st.integers()))
def test_a_duration_is_positive_and_finite_or_refused(limit):
    try:
        found = seconds(limit)
    except RequestError:
        return
    assert 0 < found < float("inf")


GOOD = """name = "some"
jobs = 2
time_limit = "1h"
planned = ["soon"]
seeds = "0-1"
[[grid]]
methods = ["ncm", "s*"]
scenarios = ["drawn"]
shots = [1, 4]
orders = 2
exclude = [{ method = "slda", shots = 4 }]
config = { mode = "balanced" }
[[grid]]
methods = "ncm"
scenarios = ["drawn-1shot"]
orders = [["real", "sketch"], ["sketch", "real"]]
base_limit = 3
[[include]]
method = "joint"
scenario = "drawn-8shot"
[method.ncm]
data = "somewhere"
[resources]
memory_gb = 2
[resources.ncm]
gpus = 0.5
"""
VALUES = st.sampled_from(
    ["0", "-1", "1.5", "nan", "-inf", "true", "''", "'x'", "'0-2'", "[]", "[[]]", "{}", "[{}]",
     "{ a = 1 }", "1999-12-31", "12:00:00", "0xffffffffffffffffffff", "'~x/y'", '"a\\u0000"',
     "['ncm']", "'drawn-1shot'", "[1, 'a']", "[['real']]", "'1h'", "9999999999"]
)  # fmt: skip


@pytest.fixture(scope="module")
def registry():
    return load_registry()


def changed(text, data):
    """A file with one to three changes."""
    lines = text.splitlines()
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(lines) - 1))
        key = lines[at].partition("=")[0].strip()
        change = data.draw(st.sampled_from(["value", "drop", "twice", "move", "letter"]))
        if change == "value" and "=" in lines[at]:
            lines[at] = f"{key} = {data.draw(VALUES)}"
        elif change == "drop" and len(lines) > 1:
            del lines[at]
        elif change == "twice":
            lines.insert(at, lines[at])
        elif change == "move":
            lines.insert(data.draw(st.integers(0, len(lines) - 1)), lines.pop(at))
        else:
            place = data.draw(st.integers(0, len(lines[at])))
            letter = data.draw(st.characters(codec="utf-8"))
            lines[at] = lines[at][:place] + letter + lines[at][place + 1 :]
    return "\n".join(lines).encode()


@settings(ANY, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_changed_file_is_read_or_refused(tmp_path, registry, data):
    path = tmp_path / "some.toml"
    path.write_bytes(changed(GOOD, data))
    try:
        plugin_files(path)
        sweep = read_sweep(path, registry)
    except FsdilError as error:
        message = error.message
    else:
        assert sweep.runs or sweep.planned
        return
    assert message.startswith(str(path))


TOYS = (
    GOOD.replace('"s*"', '"ncm*"')
    .replace("drawn", "toy")
    .replace('["real", "sketch"], ["sketch", "real"]', '["d1", "d0", "d2", "d3"]')
    .replace('data = "somewhere"', "batch_size = 5")
)


def test_the_file_to_be_changed_can_be_planned(tmp_path, toy_registry):
    path = tmp_path / "some.toml"
    path.write_text(TOYS)
    plan = make_plan(read_sweep(path, toy_registry), toy_registry)
    assert {str(cell.request.scenario) for cell in plan.cells} == {
        "toy-1shot",
        "toy-4shot",
        "toy-8shot",
    }
    assert not plan.blocked


@settings(ANY, max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_changed_file_is_planned_or_refused(tmp_path, toy_registry, data):
    path = tmp_path / "some.toml"
    path.write_bytes(changed(TOYS, data))
    try:
        plan = make_plan(read_sweep(path, toy_registry), toy_registry)
    except FsdilError as error:
        assert error.message and error.remedy  # noqa: PT017, PT018 - either outcome is right
    else:
        assert plan.cells or plan.blocked or plan.planned
        assert all(reason for _, reason in plan.blocked)
    assert [each.name for each in tmp_path.iterdir()] == ["some.toml"]


LISTS = st.one_of(
    st.lists(st.sampled_from(["1", "2", "4", "1-3", " 2 "]), min_size=1, max_size=3).map(",".join),
    st.lists(PARTS, max_size=4).map("".join),
    st.sampled_from(["nan", "1e400", "9" * 40, "0-99999999999", "[1]", "--", "\x1b[31m", "\udc80"]),
)
SETTINGS = st.tuples(
    st.sampled_from(["text_mix=", "ncm.text_mix=", "toy-means.text_mix=", "nope=", "=", ""]),
    st.sampled_from(["0.5", "1", "2", "nan", "1e400", "", "x", "=", "[" * 2000, "\udc80", "{}"]),
).map("".join)


def count(text):
    """How many numbers a correct list has."""
    numbers = set()
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        numbers |= set(range(int(first), int(last or first) + 1))
    return len(numbers)


@settings(ANY, max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seeds=st.none() | LISTS,
    shots=LISTS,
    orders=st.sampled_from([None, "1", "3", "7", "0", "x", "9" * 40]),
    setting=st.none() | SETTINGS,
)
@example("0-1", "1,2", "3", "ncm.text_mix=1")
@example("0,1,2x,3", "1", None, None)
@example("0", "1,x", None, None)
def test_a_command_line_is_planned_in_full_or_refused(
    call, tmp_path, seeds, shots, orders, setting
):
    given_ = {"--shots": shots, "--seeds": seeds, "--orders": orders, "--set": setting}
    words = [f"{option}={text}" for option, text in given_.items() if text is not None]
    dry = ["--plugin", TOY, "--dry-run", "--json", "--on=records"]
    code, out, err = call("sweep", "-m", "ncm", "-s", "toy", *dry, *words)
    assert not list(tmp_path.iterdir())
    if code == 0:
        plan = json.loads(out)
        expected = count(shots) * count(seeds or "0") * int(orders or 1)
        assert len(plan["cells"]) + len(plan["blocked"]) == expected
        return
    assert (code, out) == (2, ""), err
    assert "rror: " in err
    assert "fault of fsdil-bench" not in err
    assert "Traceback" not in err
