import fsdil_bench
import pytest
from fsdil_bench.checks import method_checks

METHOD = "my-method"


@pytest.mark.parametrize("check", method_checks(METHOD))
def test_the_rules(check):
    """What `fsdil-bench check` runs; a failure says how to fix it."""
    check()


def test_a_short_run(tmp_path):
    """Two domains of the embedded world, with four images per class in the first."""
    short = {"order": ["real", "sketch"], "base_limit": 4}
    record = fsdil_bench.run(METHOD, "drawn-1shot", **short, out=tmp_path)
    assert len(record.matrix) == 2
    assert record.metrics["Last"] > 100 / 24, "better than guessing one of 24 classes"
