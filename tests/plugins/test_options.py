from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pytest

from fsdil_bench.errors import RequestError
from fsdil_bench.plugins.options import as_dict, option, options_of, parse_assignments, resolve


@dataclass(frozen=True)
class Config:
    steps: int = option(100, "how many", minimum=0)
    rate: float = option(0.1, "how fast", minimum=0, maximum=1)
    flag: bool = option(False, "whether")
    mode: Literal["a", "b"] = option("a", "which")
    words: tuple[str, ...] = option(("x",), "what")
    limit: int | None = option(None, "at most")


def made(**values):
    return resolve(Config, values, owner="method m", see="list m")


def test_text_becomes_the_declared_type():
    config = made(steps="5", rate="1e-2", flag="yes", mode="b", words="p, q", limit="7")
    assert config == Config(5, 0.01, True, "b", ("p", "q"), 7)


def test_lists_may_be_json_because_sentences_have_commas():
    assert made(words='["a photo, of {}", "{}"]').words == ("a photo, of {}", "{}")


def test_none_and_later_layers_win():
    config = resolve(Config, {"limit": 3, "steps": 1}, {"limit": "none"}, owner="m", see="s")
    assert config.limit is None
    assert config.steps == 1


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("steps", "1.5"),
        ("steps", "many"),
        ("steps", True),
        ("steps", "-1"),
        ("rate", "2"),
        ("rate", "fast"),
        ("flag", "perhaps"),
        ("flag", 3),
        ("mode", "c"),
        ("words", 5),
        ("limit", "few"),
    ],
)
def test_wrong_values_name_the_option(key, value):
    with pytest.raises(RequestError, match=f"method m: {key}"):
        made(**{key: value})


def test_unknown_key_lists_the_valid_ones_and_the_nearest():
    with pytest.raises(RequestError) as raised:
        made(step=3)
    assert "'step'" in raised.value.message
    assert "Did you mean 'steps'" in raised.value.remedy
    assert "rate" in raised.value.remedy


def test_assignments():
    assert parse_assignments(["a=1", "b = x=y"]) == {"a": "1", "b": "x=y"}
    with pytest.raises(RequestError, match="key=value"):
        parse_assignments(["a"])


def test_knobs_describe_themselves():
    described = {k.name: k for k in options_of(Config)}
    assert described["rate"].help == "how fast"
    assert described["mode"].type == "one of a, b"
    assert described["limit"].type == "a whole number or none"


def test_as_dict_is_plain_json():
    assert as_dict(Config())["words"] == ["x"]
