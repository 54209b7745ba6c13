"""Whatever is written into a sweep is understood in full, or refused with a message."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from fsdil_bench.errors import FsdilError, RequestError
from fsdil_bench.plugins.registry import load_registry
from fsdil_bench.report.leaderboards.formatting import seed_list as as_text
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


@settings(ANY, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_changed_file_is_read_or_refused(tmp_path, registry, data):
    lines = GOOD.splitlines()
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
    path = tmp_path / "some.toml"
    path.write_bytes("\n".join(lines).encode())
    try:
        plugin_files(path)
        sweep = read_sweep(path, registry)
    except FsdilError as error:
        message = error.message
    else:
        assert sweep.runs or sweep.planned
        return
    assert message.startswith(str(path))
