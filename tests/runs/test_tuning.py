"""Choosing options: the best on the validation part, honestly recorded."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from fsdil_bench.errors import FsdilError, RequestError
from fsdil_bench.plugins.registry import load_registry
from fsdil_bench.runs.request import RunRequest
from fsdil_bench.runs.tuning import FACTORS, Choice, keep_choices, load_choices, tune

TESTS = Path(__file__).parent.parent
PLUGINS = [TESTS / "toy_plugin.py", TESTS / "tuned_plugin.py"]
COMMAND = [part for path in PLUGINS for part in ("--plugin", path)]


@pytest.fixture
def choose(tmp_path):
    registry = load_registry(PLUGINS)

    def call(method="aimed", scenario="toy-2shot", **given):
        request = RunRequest.of(method=method, scenario=scenario)
        return tune(request, registry, out=tmp_path / "runs", **given)

    return call


def choice(values, scores, default=1.0):
    return Choice("m", "lr", "s-1shot@validation", (0,), 100, default, tuple(values), tuple(scores))


def test_the_best_of_five_times_the_default(choose):
    chosen = choose()
    assert chosen.values == tuple(pytest.approx(0.01 * factor) for factor in FACTORS)
    assert chosen.chosen == pytest.approx(0.03)
    assert chosen.scores[2] > 80
    assert [round(s) for s in chosen.scores if s < 80] == [33] * 4
    assert chosen.scenario == "toy-2shot@validation"
    assert not chosen.at_edge


def test_nothing_but_base_images_is_looked_at(choose, tmp_path):
    choose(values=["0.1", "0.2"])
    records = list((tmp_path / "runs").rglob("record.json"))
    assert len(records) == 2
    for record in records:
        domains = json.loads(record.read_text())["scenario"]["domains"]
        assert [domain["name"] for domain in domains] == ["d0", "d0-shots"]


def test_seeds_are_averaged_and_nothing_is_run_twice(choose, tmp_path):
    values, again = [], []
    choose(seeds=(0, 1), values=[0.1, 0.03], tell=lambda *each: values.append(each))
    files = {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").rglob("record.json")}
    assert len(files) == 4
    choose(seeds=(0, 1), values=[0.1, 0.03], tell=lambda *each: again.append(each))
    assert {path: path.stat().st_mtime_ns for path in files} == files
    assert again == values
    assert [value for value, _ in values] == [0.1, 0.03]


def test_other_kinds_of_options(choose):
    assert choose(option="kind", values=["bad", "good"]).chosen == "good"
    assert choose(option="width").values == (1, 4, 12, 40, 120)
    assert choose(option="depth").values == (1, 3, 10, 30)


def test_a_variant_has_a_default_of_its_own(choose):
    chosen = choose(method="aimed-lower")
    assert chosen.default == 0.001
    assert chosen.chosen == pytest.approx(0.03)


def test_the_default_is_what_a_plain_run_on_the_data_set_has(choose):
    chosen = choose(method="preset")
    assert chosen.default == 0.1
    assert chosen.values == tuple(pytest.approx(0.1 * factor) for factor in FACTORS)
    assert choose(method="preset-lower", values=[0.03]).default == 0.001
    assert choose(method="preset-lower", option="width", values=[1]).default == 9


def test_of_equal_values_the_nearest_to_the_default():
    assert choice([0.1, 0.5, 3.0, 10.0], [50, 50, 50, 49]).chosen == 0.5
    assert choice([0.1, 1.0, 3.0], [50, 50, 50]).chosen == 1.0
    assert choice(["a", "b"], [50, 50], default="b").chosen == "b"
    assert choice(["a", "b"], [50, 51], default="c").chosen == "b"


def test_equal_is_what_differs_by_less_than_the_standard_error():
    """Of 100 images, 80 per cent are known to 4 per cent."""
    assert choice([0.1, 1.0, 2.0], [80, 76.1, 79]).error == pytest.approx(4)
    assert choice([0.1, 1.0, 2.0], [80, 76.1, 79]).chosen == 1.0
    assert choice([0.1, 1.0, 2.0], [80, 75.9, 79]).chosen == 2.0
    assert choice([0.1, 1.0, 2.0], [80, 75.9, 75]).chosen == 0.1


def test_the_edge():
    assert choice([3.0, 0.1, 1.0], [1, 2, 0]).at_edge
    assert not choice([3.0, 0.1, 1.0], [1, 2, 3]).at_edge
    assert not choice(["a", "b"], [1, 2]).at_edge


@pytest.mark.parametrize(
    ("limits", "scores", "at_edge"),
    [
        ((0.1, 3.0), [9, 0, 0], False),
        ((0.1, 3.0), [0, 0, 9], False),
        ((None, 3.0), [9, 0, 0], True),
        ((0.1, None), [0, 0, 9], True),
        ((0, 10), [0, 0, 9], True),
        ((0, 10), [0, 9, 0], False),
    ],
)
def test_there_is_no_edge_at_a_limit_of_the_option(limits, scores, at_edge):
    assert replace(choice([0.1, 1.0, 3.0], scores), limits=limits).at_edge is at_edge


def test_candidates_stay_within_the_limits(choose):
    chosen = choose(option="share")
    assert chosen.values == (0.15, 0.5, 1.0)
    assert (chosen.limits, chosen.chosen, chosen.at_edge) == ((0, 1), 1.0, False)
    assert "limits" not in chosen.to_dict()


@pytest.mark.parametrize("values", ["0.5,1", "0,0.5"])
def test_the_command_asks_for_no_more_than_there_is(call, values):
    code, out, err = call(
        "tune", "aimed", "-s", "toy-2shot", *COMMAND, "--option", "share", "--values", values
    )
    assert code == 0, err
    assert "at the edge" not in out


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"option": "rate"}, "option of method aimed: 'rate'"),
        ({"option": "kind"}, "'bad', no positive number"),
        ({"option": "off"}, "0.0, no positive number"),
        ({"values": ["fast"]}, "lr"),
        ({"values": ["-1"]}, "lr"),
        ({"scenario": "toy-2shot@x"}, "has a variant already"),
    ],
)
def test_bad_requests(choose, given, said):
    with pytest.raises(RequestError, match=said):
        choose(**given)


def test_choices_are_kept_once_each(tmp_path):
    path = tmp_path / "new" / "choices.json"
    keep_choices([choice([1.0, 2.0], [50, 60.123])], path)
    keep_choices([choice([1.0, 4.0], [50, 70])], path)
    (kept,) = load_choices(path)
    assert kept["chosen"] == 4.0
    assert kept["scores"] == [50, 70]
    first = path.read_bytes()
    keep_choices([choice([1.0, 4.0], [50, 70])], path)
    assert path.read_bytes() == first


@pytest.mark.parametrize("text", ["{", "[1]", '[{"method": "m"}]'])
def test_a_file_of_something_else_is_named_before_any_run(call, tmp_path, text):
    path = tmp_path / "choices.json"
    path.write_text(text)
    code, _, err = call("tune", "aimed", "-s", "toy-2shot", *COMMAND, "--write", path)
    assert code == 2
    assert "choices.json is not a file of choices" in err
    assert not (tmp_path / "runs").exists()
    assert path.read_text() == text


def test_a_file_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FsdilError, match="cannot be written"):
        keep_choices([choice([1.0], [50])], tmp_path / "file" / "choices.json")


def test_the_command(call, tmp_path):
    code, out, err = call("tune", "aimed", "-s", "toy-2shot", *COMMAND, "--write", "choices.json")
    assert code == 0, err
    assert "aimed: lr = 0.03 has AA*" in err
    assert "0.01 " in out
    assert "default" in out
    line = next(line for line in out.splitlines() if "chosen" in line)
    assert line.split()[0] == "0.03"
    (kept,) = load_choices(tmp_path / "choices.json")
    assert kept["method"] == "aimed"
    assert kept["chosen"] == pytest.approx(0.03)
    code, out, _ = call("tune", "aimed", "-s", "toy-2shot", *COMMAND, "-q", "--json")
    assert json.loads(out) == [kept]


def test_the_command_takes_the_options_of_a_run(call, tmp_path):
    (tmp_path / "options.toml").write_text('kind = "good"')
    code, _, err = call(
        "tune", "aimed", "-s", "toy-2shot", *COMMAND, "--values", "0.1", "--config", "options.toml",
        "--order", "d1,d0", "--workers", "0", "--transform", "clip",
    )  # fmt: skip
    assert code == 0, err
    (path,) = (tmp_path / "runs").rglob("record.json")
    record = json.loads(path.read_text())
    assert record["spec"]["config"]["kind"] == "good"
    assert [domain["name"] for domain in record["scenario"]["domains"]] == ["d1", "d1-shots"]


def test_the_command_says_that_more_could_be_tried(call):
    code, out, _ = call("tune", "aimed", "-s", "toy-2shot", *COMMAND, "--values", "0.03,0.1")
    assert code == 0
    assert "0.03 is at the edge" in out


def test_the_command_without_values(call):
    code, _, err = call("tune", "aimed", "-s", "toy-2shot", *COMMAND, "--values", ",")
    assert code == 2
    assert "has no value" in err
