import pytest

import fsdil_bench
from fsdil_bench.checks import method_checks

SHORT = {"order": ["real", "sketch"], "base_limit": 4}


@pytest.mark.parametrize("check", method_checks("hello"))
def test_the_rules(check):
    check()


def test_a_short_run_beats_guessing(tmp_path):
    record = fsdil_bench.run("hello", "drawn-1shot", **SHORT, out=tmp_path)
    assert len(record.matrix) == 2
    assert record.metrics["Last"] > 100 / 24


def test_text_that_counts_for_everything_is_zero_shot(tmp_path):
    hello = fsdil_bench.run("hello", "drawn-1shot", **SHORT, config={"prior": 1e9}, out=tmp_path)
    text = fsdil_bench.run("zero-shot", "drawn-1shot", **SHORT, out=tmp_path)
    assert hello.matrix == text.matrix


def test_the_prior_matters(tmp_path):
    runs = [
        fsdil_bench.run("hello", "drawn-1shot", **SHORT, config={"prior": prior}, out=tmp_path)
        for prior in (0.0, 4.0)
    ]
    assert runs[0].matrix != runs[1].matrix
