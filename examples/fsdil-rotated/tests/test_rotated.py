import numpy as np
from fsdil_rotated.data import Shapes

import fsdil_bench


def test_a_domain_is_the_same_shapes_rotated():
    stream = fsdil_bench.load_stream("rotated-1shot")
    assert [domain.name for domain in stream.domains] == ["upright", "30 degrees", "60 degrees"]
    upright, turned = (domain.test for domain in stream.domains[:2])
    pictures = {np.asarray(image).tobytes() for image, _ in Shapes("test", 10)}
    assert {upright.load(each).tobytes() for each in upright.ids} == pictures
    assert not {turned.load(each).tobytes() for each in turned.ids} & pictures


def test_a_short_run_beats_guessing(tmp_path):
    record = fsdil_bench.run("slda", "rotated-4shot", base_limit=8, out=tmp_path)
    assert len(record.matrix) == 3
    assert record.metrics["Last"] > 100 / 4
