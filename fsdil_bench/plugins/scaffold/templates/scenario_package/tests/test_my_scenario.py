import fsdil_bench
import numpy as np

SCENARIO = "my-scenario-1shot"


def test_every_run_sees_the_same_pictures():
    one, other = (fsdil_bench.load_stream(SCENARIO) for _ in range(2))
    assert one.digest() == other.digest()
    for mine, theirs in zip(one.domains, other.domains, strict=True):
        sample = mine.test.ids[0]
        assert np.array_equal(mine.test.load(sample), theirs.test.load(sample))


def test_a_short_run(tmp_path):
    record = fsdil_bench.run("ncm", SCENARIO, base_limit=4, out=tmp_path)
    assert [domain["name"] for domain in record.scenario["domains"]] == ["day", "dusk", "night"]
    assert record.metrics["Last"] > 100 / 4, "better than guessing one of 4 classes"
