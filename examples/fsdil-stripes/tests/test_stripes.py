import numpy as np

import fsdil_bench


def picture(noise):
    options = {"noise": noise}
    stream = fsdil_bench.load_stream("stripes-1shot", scenario_options=options)
    samples = stream.domains[0].test
    return samples.load(samples.ids[0]), samples.keys[0]


def test_pictures_depend_on_id_and_noise_alone():
    one, other, noisy = picture(0.0), picture(0.0), picture(0.5)
    assert np.array_equal(one[0], other[0])
    assert one[1] == other[1]
    assert not np.array_equal(one[0], noisy[0])
    assert one[1] != noisy[1], "or the caches would take one for the other"


def test_horizontal_stripes_are_horizontal():
    rows, _ = picture(0.0)
    assert rows.shape == (64, 64, 3)
    assert (rows == rows[:, :1]).all()
    assert len(np.unique(rows[:, 0], axis=0)) == 2


def test_a_short_run_beats_guessing(tmp_path):
    record = fsdil_bench.run("slda", "stripes-4shot", base_limit=4, out=tmp_path)
    assert len(record.matrix) == 4
    assert record.metrics["Last"] > 100 / 6
