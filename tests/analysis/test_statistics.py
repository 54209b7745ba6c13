from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import fresh_worlds
import numpy as np
import pytest
import scipy.stats
import simulated
from simulated import COUNTS, World

from fsdil_bench import find_records
from fsdil_bench.analysis.statistics import (
    Clusters,
    Estimate,
    Standing,
    average_ranks,
    correct,
    distinguishable,
    holm,
    interval,
    outcomes,
    paired_difference,
    standing,
    weights_of,
)
from fsdil_bench.analysis.statistics.against_best import judge
from fsdil_bench.analysis.statistics.uncertainty import estimate
from fsdil_bench.errors import RecordError, RequestError
from fsdil_bench.records import recompute
from fsdil_bench.records.checks import check_folder
from fsdil_bench.records.metrics import METRICS, scores
from fsdil_bench.records.record import Record

PUBLISHED = Path(__file__).parents[2] / "leaderboards" / "records" / "drawn-1shot"


@pytest.fixture
def draw(tmp_path):
    """Records of made-up methods, one list per shift of their levels."""

    def make(*shifts, seeds=3, number=0, **world):
        generator = np.random.default_rng(number)
        return World(**world).draw(generator, seeds, tmp_path, shifts or (0.0,))

    return make


@pytest.mark.parametrize("metric", METRICS)
def test_scores_are_weighted_sums_of_accuracies(metric):
    counts = [7, 3, 11, 5]
    matrix = np.random.default_rng(0).uniform(0, 100, (4, 4))
    weights = weights_of(metric, counts)
    assert (weights * matrix).sum() == pytest.approx(scores(matrix.tolist(), counts)[metric])


def test_a_single_domain_has_no_forgetting():
    assert weights_of("FA*", [5]) is None
    assert weights_of("AA*", [5]).tolist() == [[1.0]]
    with pytest.raises(RequestError, match="unknown score"):
        weights_of("F1", [5])


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("method", ["fused-prototypes", "zero-shot"])
def test_intervals_stand_around_the_recorded_scores(method, metric):
    records = find_records(PUBLISHED / method)
    found = interval(records, metric)
    mean = np.mean([record.metrics[metric] for record in records])
    assert 0 < found.low < mean < found.high < 100
    assert "seeds (3)" in found.covers
    assert interval(records[::-1], metric) == found


@pytest.mark.parametrize("domains", [1, 3, 8, 11])
def test_contributions_are_sums_over_steps(made, tmp_path, domains):
    make, images = made.make_record, 7
    records = [make(tmp_path, seed=s, domains=domains, images=images) for s in range(2)]
    weights = np.random.default_rng(0).normal(size=(domains, domains))
    found = outcomes.contributions(records, weights)
    for row, right in zip(found, map(correct, records), strict=True):
        for n, value in enumerate(row):
            earned = [weights[t, n // images] for t in range(domains) if right[t, n]]
            assert value == pytest.approx(100 * sum(earned))


def test_one_seed_covers_images_only_as_the_bootstrap_does(draw):
    """Resample the images of each domain, the same for all steps, and score again."""
    (records,) = draw(seeds=1)
    right = correct(records[0])
    blocks = np.split(np.arange(sum(COUNTS)), np.cumsum(COUNTS)[:-1])
    generator = np.random.default_rng(1)
    values = {metric: [] for metric in METRICS}
    for _ in range(1500):
        chosen = [generator.choice(block, len(block)) for block in blocks]
        matrix = [[100 * row[images].mean() for images in chosen] for row in right]
        for metric, value in scores(matrix, COUNTS).items():
            values[metric].append(value)
    for metric in METRICS:
        found = interval(records, metric)
        assert found.covers == "test images only: one seed"
        assert (found.high - found.low) / 2 == pytest.approx(
            1.96 * np.std(values[metric]), rel=0.12
        )


def test_the_two_parts_of_the_variance():
    """Additive effects of seeds and images, and nothing else, are separated exactly."""
    seeds, images = np.array([1.0, 4.0, -2.0]), np.array([3.0, 5.0, 10.0, 8.0, 9.0])
    found = estimate(seeds[:, None] + images[None], Clusters.of([2, 3]))
    assert found.mean == pytest.approx(2 * seeds.mean() + 4.0 + 9.0)
    assert found.seed_variance == pytest.approx((2 * seeds).var(ddof=1) / 3)
    assert found.image_variance == pytest.approx(
        images[:2].var(ddof=1) / 2 + images[2:].var(ddof=1) / 3
    )


def test_what_varies_from_seed_to_seed_is_not_counted_twice():
    """Noise that has nothing to do with the image belongs to the seeds' part alone."""
    values = np.random.default_rng(0).normal(size=(5, 4000))
    found = estimate(values, Clusters.of([1000, 3000]))
    assert found.image_variance < 0.2 * (1 / 1000 + 1 / 3000) / 5


def test_only_seeds_vary_then_it_is_the_t_test():
    values = np.array([1.0, 2.5, 0.5, 3.0])
    found = estimate(np.repeat(values[:, None], 6, axis=1), Clusters.of([6]))
    expected = scipy.stats.ttest_1samp(values, 0)
    low, high = expected.confidence_interval(0.95)
    assert found.p_value() == pytest.approx(expected.pvalue)
    assert found.interval().low == pytest.approx(low)
    assert found.interval().high == pytest.approx(high)


def test_only_images_vary_then_it_is_normal():
    found = Estimate(mean=1.0, seed_variance=0.0, image_variance=0.25, seeds=3)
    assert found.interval().high == pytest.approx(1 + 1.959964 * 0.5)
    assert found.p_value() == pytest.approx(0.0455003)


@pytest.mark.parametrize("mean", [0.1, 1.5, 2.6, 40.0, 1e9])
@pytest.mark.parametrize("seeds", [2, 3, 10])
def test_intervals_and_tests_agree(mean, seeds):
    found = Estimate(mean, seed_variance=0.8, image_variance=0.4, seeds=seeds)
    p = found.p_value()
    assert 0 <= p <= 1
    assert (p < 0.05) == (found.interval().low > 0)
    if p > 1e-9:  # one minus less than that cannot be told from one
        assert found.interval(1 - p).low == pytest.approx(0, abs=1e-4)


@pytest.mark.parametrize("seeds", range(2, 40))
def test_p_values_fall_with_the_distance(seeds):
    distances = np.logspace(-2, 12, 15)
    values = [Estimate(d, 0.8, 0.4, seeds).p_value() for d in distances]
    assert values[0] > 0.9
    assert values == sorted(values, reverse=True)


def test_more_seeds_and_images_that_agree_narrow_the_interval(draw):
    widths = []
    for seeds in (3, 10):
        found = interval(draw(seeds=seeds, seed=0.02, number=5)[0])
        widths.append(found.high - found.low)
    assert widths[1] < widths[0]


def test_intervals_stay_within_percentages(tmp_path):
    right = np.ones((3, sum(COUNTS)), dtype=bool)
    right[:, 0] = False
    found = interval([simulated.record(right, 0, "nearly", tmp_path)])
    assert found.low < 99.7 < found.high < 100


def test_comparison_is_a_minus_b(draw):
    better, worse = draw(0.3, 0.0)
    found, turned = paired_difference(better, worse), paired_difference(worse, better)
    gap = np.mean([a.metrics["AA*"] - b.metrics["AA*"] for a, b in zip(better, worse, strict=True)])
    assert found.difference == pytest.approx(gap)
    assert turned.difference == pytest.approx(-gap)
    assert (found.interval.low, found.p) == pytest.approx((-turned.interval.high, turned.p))
    assert found.effect == pytest.approx(1 - turned.effect)
    assert found.effect > 0.5
    assert found.summary.startswith("method0 is better than method1 by")
    assert turned.summary.startswith("method0 is better than method1 by")
    assert found.caveat == ""
    assert found.significant


def test_effect_counts_disagreements(tmp_path):
    """After one step all images count: three that only A gets right, one that only B does."""
    a, b = np.ones((2, 3, sum(COUNTS)), dtype=bool)
    b[:, :3] = False
    a[:, 3] = False
    pair = ([simulated.record(each, 0, "m", tmp_path)] for each in (a, b))
    assert paired_difference(*pair).effect == pytest.approx(0.75)


def test_pairing_finds_what_separate_intervals_hide(draw):
    """In a single draw, p is below 0.01 half of the time, so one draw would show nothing."""
    hidden = found = 0
    for number in range(20):
        better, worse = draw(0.2, 0.0, alike=0.97, number=number)
        hidden += interval(better).low < interval(worse).high
        found += paired_difference(better, worse).p < 0.05
    # In the long run 93 % and 85 % (se of 20 draws: 6 and 8 points).
    assert hidden >= 16
    assert found >= 14


def test_a_method_and_itself(draw):
    (records,) = draw()
    found = paired_difference(records, records)
    assert (found.difference, found.p, found.effect) == (0.0, 1.0, None)
    assert not found.significant
    assert "no significant difference" in found.summary


def test_seeds_are_paired(draw):
    a, b = draw(0.0, 0.0, seeds=5)
    assert paired_difference(a[:3], b).seeds == (0, 1, 2)
    assert paired_difference(a[::-1], b) == paired_difference(a, b)
    apart = paired_difference(a[:2], b[2:])  # no seed in common: still an answer
    assert len(apart.seeds) == 2


def test_few_seeds_say_what_they_leave_open(draw):
    a, b = draw(0.5, 0.0, seeds=2)
    alone = paired_difference(a[:1], b[:1])
    assert "test images only" in alone.interval.covers
    assert "not known" in alone.caveat
    assert "Two seeds" in paired_difference(a, b).caveat


def changed(record, *, spec=None, scenario=None, method=None):
    return dataclasses.replace(
        record,
        spec=record.spec | (spec or {}),
        scenario=record.scenario | (scenario or {}),
        method=record.method | (method or {}),
    )


def test_what_does_not_compare_is_refused(draw):
    (a,), (b,) = draw(0.0, 0.0, seeds=1)
    domains = [dict(domain) for domain in b.scenario["domains"]]
    domains[1]["test_sha256"] = "others"
    with pytest.raises(RequestError, match="differ in test images"):
        paired_difference([a], [changed(b, scenario={"domains": domains})])
    with pytest.raises(RequestError, match="differ in domains"):
        paired_difference([a], [changed(b, spec={"order": ["d2", "d1", "d0"]})])
    trained = [domain | {"train_sha256": "others"} for domain in b.scenario["domains"]]
    with pytest.raises(RequestError, match="learned from different images under seed 0"):
        paired_difference([a], [changed(b, scenario={"domains": trained})])
    with pytest.raises(RequestError, match="differ in weights of the backbone"):
        paired_difference([a], [changed(b, method={"weights": "others"})])
    with pytest.raises(RequestError, match="two different runs of method0 have seed 0"):
        paired_difference([a, dataclasses.replace(a, run_id="other")], [b])
    with pytest.raises(RequestError, match="no records"):
        paired_difference([a], [])


def test_records_without_predictions(draw, tmp_path):
    a, b = draw(0.0, 0.0)
    bare = [dataclasses.replace(record, folder=tmp_path / "nowhere") for record in b]
    assert interval(bare) is None
    assert standing({"a": a, "b": bare}) == Standing({"a": "best"}, None)
    with pytest.raises(RecordError, match="have no predictions"):
        paired_difference(a, bare)


@pytest.fixture
def nothing_read(monkeypatch):
    """Another test may have read the same predictions."""
    monkeypatch.setattr(recompute, "_kept", {})
    monkeypatch.setattr(outcomes, "_clusters", {})


def damaged(record):
    file = record.folder / "predictions.npz"
    file.write_bytes(file.read_bytes() + b" ")
    return record


def test_damaged_predictions_are_not_passed_over(toy_run, nothing_read):
    record = damaged(toy_run())
    recompute._kept.clear()
    with pytest.raises(RecordError, match="does not match"):
        interval([record])


def test_a_damaged_copy_of_a_record_that_was_read_is_refused(toy_run, tmp_path, nothing_read):
    """What was read keeps its numbers, which are those of its hash; the copy is not loaded."""
    record = toy_run()
    before = interval([record])
    shutil.copytree(record.folder, tmp_path / "copy")
    copy = damaged(dataclasses.replace(record, folder=tmp_path / "copy"))
    with pytest.raises(RecordError, match="does not match"):
        Record.load(copy.folder)
    damaged(record)
    assert interval([record]) == before
    with pytest.raises(RecordError, match="does not match"):
        Record.load(record.folder)


def test_checking_a_copy_with_other_predictions_does_not_change_the_original(
    toy_run, tmp_path, nothing_read
):
    """Outcomes are kept by the hash of the file they come from, not by the hash that is claimed."""
    record, other = toy_run(), toy_run(seed=1)
    before = interval([record])
    assert interval([other]) != before
    copy = tmp_path / "copy"
    shutil.copytree(record.folder, copy)
    shutil.copy(other.folder / "predictions.npz", copy)
    assert "is another file" in check_folder(copy).problems[0]
    assert interval([record]) == before


def test_rows_against_the_best(draw):
    best, near, far = draw(0.5, 0.49, 0.0, alike=0.9)
    found = standing({"best": best, "near": near, "far": far})
    assert found.verdicts == {"best": "best", "near": "best", "far": "worse"}
    assert 1 < found.smallest_difference < 15
    assert standing({"only": best}) == Standing({"only": "best"}, None)
    assert standing({}) == Standing({}, None)


def test_the_order_of_rows_and_runs_does_not_matter(draw):
    rows = dict(zip("abcd", draw(0.5, 0.45, 0.3, 0.0), strict=True))
    turned = {label: rows[label][::-1] for label in "dbca"}
    assert standing(turned) == standing(rows)


def test_two_rows_are_judged_as_in_a_paired_comparison(draw):
    """With two rows, the largest of all differences is the only one."""
    for shift in (0.0, 0.1, 0.2, 0.3, 0.5):
        a, b = draw(shift, 0.0, seeds=10, alike=0.8)
        p = paired_difference(a, b).p
        if not 0.02 < p < 0.1:  # the two rules differ a little
            assert ("worse" in standing({"a": a, "b": b}).verdicts.values()) == (p < 0.05)


def test_a_row_whose_spread_hides_everything_is_undecided():
    """Of six rows one depends on the seed so much that no difference could be seen."""
    world = World(seed=0.002)
    values = world.earned(np.random.default_rng(0), 3, (0.6, 0.6, 0.6, 0.6, 0.6, 0.6))
    values[5] += np.array([-30.0, 0.0, 30.0])[:, None]
    verdicts, smallest = judge(values, world.clusters)
    assert verdicts == ["best"] * 5 + ["undecided"]
    assert smallest < 40


def test_rows_that_lack_seeds_are_judged_too(draw):
    best, near, far = draw(0.5, 0.49, -0.2, seeds=5, alike=0.9, seed=0.01)
    found = standing({"best": best, "near": near[:3], "far": far[:1]})
    assert found.verdicts == {"best": "best", "near": "best", "far": "worse"}


def test_equal_rows_are_never_worse(draw):
    (records,) = draw()
    again = [dataclasses.replace(record, run_id=f"{record.run_id}b") for record in records]
    assert set(standing({"a": records, "b": again}).verdicts.values()) == {"best"}


def test_pairs_that_differ_are_counted(draw):
    high, nearly, low = draw(0.6, 0.59, 0.0, alike=0.9)
    assert distinguishable({"a": high, "b": low}) == 1
    assert distinguishable({"a": high, "b": nearly}) == 0
    # Two of the three pairs: the low one differs from both others.
    assert distinguishable({"a": high, "b": nearly, "c": low}) == pytest.approx(2 / 3)
    assert distinguishable({"a": high}) is None
    assert distinguishable({}) is None


def test_of_two_rows_the_pair_differs_where_one_is_worse(draw):
    for shift in (0.0, 0.1, 0.2, 0.3, 0.5):
        a, b = draw(shift, 0.0, seeds=10, alike=0.8)
        rows = {"a": a, "b": b}
        assert distinguishable(rows) == ("worse" in standing(rows).verdicts.values())


def test_runs_with_one_seed_are_judged_by_images(draw):
    best, far = draw(0.6, 0.0, seeds=1)
    assert standing({"best": best, "far": far}).verdicts == {"best": "best", "far": "worse"}


# Groups of images


def test_without_groups_every_image_is_its_own():
    values = np.random.default_rng(0).normal(size=(3, 12))
    alone = Clusters.of([5, 7], np.array([3, 0, 7, 1, 9, 2, 20, 4, 30, 5, 6, 8]))
    found, due = estimate(values[:1], alone), estimate(values[:1], Clusters.of([5, 7]))
    assert found.image_variance == pytest.approx(due.image_variance)
    assert found.image_freedom == pytest.approx(due.image_freedom)


def test_copies_count_once():
    """Twenty copies of each image say what the images say."""
    values = np.random.default_rng(0).normal(size=(3, 30))
    once = estimate(values, Clusters.of([10, 20]))
    copied = np.repeat(values, 20, axis=1)
    many = estimate(copied, Clusters.of([200, 400], np.repeat(np.arange(30), 20)))
    for name in ("mean", "seed_variance", "image_variance", "image_freedom"):
        assert getattr(many, name) == pytest.approx(getattr(once, name))
    apart = estimate(copied[:1], Clusters.of([200, 400]))
    assert apart.image_variance < estimate(values[:1], Clusters.of([10, 20])).image_variance / 5


def test_groups_need_not_be_side_by_side():
    values = np.random.default_rng(0).normal(size=(2, 60))
    groups = np.repeat(np.arange(20), 3)
    mixed = np.concatenate([np.random.default_rng(1).permutation(30), np.arange(30, 60)])
    found = estimate(values[:, mixed], Clusters.of([30, 30], groups[mixed]))
    assert found.image_variance == pytest.approx(
        estimate(values, Clusters.of([30, 30], groups)).image_variance
    )


def test_rounding_at_a_bound_does_no_harm():
    found = Estimate(100.0, seed_variance=1e-30, image_variance=1e-30, seeds=3)
    assert found.score_interval(0.95, 50.0).low < 100


def test_a_few_large_groups_have_few_degrees_of_freedom():
    large = np.concatenate([np.zeros(50, dtype=int), np.arange(1, 51)])
    assert Clusters.of([100], large).freedom[0] < 1.1
    assert Clusters.of([100], np.arange(100) // 10).freedom[0] == pytest.approx(9)


def test_records_with_groups(tmp_path):
    world = World(counts=(100, 80, 60), copies=20)
    a, b = world.draw(np.random.default_rng(0), 3, tmp_path, (0.5, 0.0))
    assert a[0].groups().max() == 11
    found = paired_difference(a, b)
    assert "240 test images come in 12 groups" in found.caveat
    assert "only 3" in found.caveat
    alone = [
        dataclasses.replace(r, arrays=r.arrays | {}, predictions_sha256="alone") for r in a[:1]
    ]
    del alone[0].arrays["groups"]
    grouped, single = interval(a[:1]), interval(alone)
    assert grouped.high - grouped.low > 1.5 * (single.high - single.low)
    notes = average_ranks({"one": {"a": a, "b": b}}).notes
    assert any(note.startswith("one: The 240 test images") for note in notes)


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("groups", [None, np.repeat(np.arange(30), 10)])
def test_intervals_stay_within_bounds(share, groups):
    values = np.full((3, 300), 100 * share)
    clusters = Clusters.of([300], groups)
    found = estimate(values, clusters).score_interval(0.95, clusters.groups.sum())
    assert 0 <= found.low <= 100 * share <= found.high <= 100
    assert found.high > found.low  # all right is not certainty


def test_holm():
    """Holm (1979): steps down from the smallest, stops at the first that is kept."""
    assert holm([0.01, 0.04, 0.03, 0.005], 0.05) == [True, False, False, True]
    assert holm([0.04, 0.04], 0.05) == [False, False]
    assert holm([0.02, 0.05], 0.05) == [True, True]
    assert holm([]) == []


# AUC of four variants of C4.5 on 14 data sets: Demšar, JMLR 7 (2006), who gives the average ranks
# 3.143, 2.000, 2.893, 1.964 and Nemenyi's critical difference 1.25. In the last row but one the
# third is better than the fourth by less than the digits shown, as his ranks have it.
DEMSAR = """
0.763 0.768 0.771 0.798   0.599 0.591 0.590 0.569   0.954 0.971 0.968 0.967
0.628 0.661 0.654 0.657   0.882 0.888 0.886 0.898   0.936 0.931 0.916 0.931
0.661 0.668 0.609 0.685   0.583 0.583 0.563 0.625   0.775 0.838 0.866 0.875
1.000 1.000 1.000 1.000   0.940 0.962 0.965 0.962   0.619 0.666 0.614 0.669
0.972 0.981 0.9751 0.975  0.957 0.978 0.946 0.970
"""
VARIANTS = ("C4.5", "C4.5+m", "C4.5+cf", "C4.5+m+cf")


def test_average_ranks_of_a_published_example(draw):
    table = np.array(DEMSAR.split(), dtype=float).reshape(14, 4)
    template = draw(seeds=1)[0][0]
    boards = {
        f"data set {i}": {
            name: [dataclasses.replace(template, metrics={"AA*": value})]
            for name, value in zip(VARIANTS, row.tolist(), strict=True)
        }
        for i, row in enumerate(table)
    }
    boards["data set 3"]["elsewhere missing"] = [template]
    found = average_ranks(boards)
    ranks = {"C4.5+m+cf": 1.964, "C4.5+m": 2.0, "C4.5+cf": 2.893, "C4.5": 3.143}
    assert list(found.ranks) == list(ranks)
    assert list(found.ranks.values()) == pytest.approx(list(ranks.values()), abs=5e-4)
    assert found.critical_difference == pytest.approx(1.25, abs=5e-3)
    assert found.groups == (tuple(ranks),)
    assert found.left_out == ("elsewhere missing",)
    assert found.p == pytest.approx(scipy.stats.friedmanchisquare(*table.T).pvalue)


def test_groups_end_at_the_critical_difference(draw):
    template = draw(seeds=1)[0][0]

    def board(*values):
        names = "abcdef"
        return {
            name: [dataclasses.replace(template, metrics={"AA*": value})]
            for name, value in zip(names, values, strict=True)
        }

    same = {str(i): board(6.0, 5.0, 4.0, 3.0, 2.0, 1.0) for i in range(8)}
    found = average_ranks(same)
    assert 2 < found.critical_difference < 3
    assert found.groups == (("a", "b", "c"), ("b", "c", "d"), ("c", "d", "e"), ("d", "e", "f"))
    one = average_ranks({"0": same["0"]})
    assert (one.critical_difference, one.groups, one.p) == (None, (), None)
    with pytest.raises(RequestError, match="fewer than two methods"):
        average_ranks({"0": board(*range(6)), "1": {"g": [template]}})


# Simulations: how often is it right? The targets are a coverage of 92 to 97 %, and at most 7 %
# false positives and false boards. A limit is looser than its target by about twice the standard
# error (se) of what so many tries find at the target. The draws are fixed: a test fails when the
# code changes, not by chance.


@pytest.mark.parametrize("effect", ["none", "double"])
def test_calibration_in_short(effect):
    """What the slow tests show for all cases, roughly and for three seeds."""
    # 250 tries: se 1.4 at 95 %, 1.6 at 7 %. Without a seed effect the coverage is about 97.5 %.
    world = World(seed=simulated.SEED_EFFECTS[effect])
    covered, false_alarms = simulated.calibration(world, 3, 250)
    assert 92 <= covered <= 99
    assert 2 <= false_alarms <= 8


def test_groups_in_short():
    """Near copies that count as independent images make intervals far too short."""
    # 200 tries: se 1.9 at 92 %, 1.8 at 7 %.
    world = simulated.frames(15, 0.0015)
    plain = simulated.plain_interval, simulated.plain_test
    covered, false_alarms = simulated.calibration(world, 3, 200)
    assert covered >= 91
    assert false_alarms <= 9
    covered, false_alarms = simulated.calibration(world, 3, 200, *plain)
    assert covered < 88
    assert false_alarms > 10


def test_ceilings_in_short():
    # 300 tries: se 1.6 at 92 %.
    world = simulated.near(95, simulated.SEED_EFFECTS["fivefold"])
    assert simulated.coverage(world, 5, 300) >= 89
    assert simulated.coverage(world, 5, 300, simulated.plain_interval) < 90


def test_equal_methods_in_short():
    """Of fifteen equal methods, few boards call any worse."""
    # 100 boards: se 2.6 at 7 %.
    assert simulated.false_boards(World(seed=0.0015), 3, 15, 100) <= 10
    assert simulated.power(World(seed=0.0015), 3, 5, 20, 15.0)[0] > 95


@pytest.mark.slow
@pytest.mark.parametrize("effect", simulated.SEED_EFFECTS)
@pytest.mark.parametrize("seeds", [2, 3, 5, 10])
def test_calibration(seeds, effect):
    """Intervals are a little too long without a seed effect: they cover up to 98 %, which is above
    the target."""
    # 2,000 tries: se 0.6 at 92 %, 0.6 at 7 %, 0.3 at 98 %.
    world = World(seed=simulated.SEED_EFFECTS[effect])
    covered, false_alarms = simulated.calibration(world, seeds, 2000)
    assert 91 <= covered <= 99
    assert 2 <= false_alarms <= 8


@pytest.mark.slow
@pytest.mark.parametrize("effect", ["none", "double"])
@pytest.mark.parametrize("groups", [10, 30, 100])
@pytest.mark.parametrize("seeds", [2, 3, 5, 10])
def test_calibration_with_groups(seeds, groups, effect):
    # 400 tries: se 1.4 at 92 %, 1.3 at 7 %.
    world = simulated.frames(groups, simulated.SEED_EFFECTS[effect])
    covered, false_alarms = simulated.calibration(world, seeds, 400)
    assert covered >= 89
    assert false_alarms <= 10


@pytest.mark.slow
@pytest.mark.parametrize("score", simulated.SCORES)
@pytest.mark.parametrize("effect", ["double", "fivefold"])
@pytest.mark.parametrize("seeds", [3, 5, 10])
def test_coverage_with_skewed_seeds(seeds, effect, score):
    # 1,500 tries: se 0.7 at 92 %.
    world = simulated.near(score, simulated.SEED_EFFECTS[effect])
    assert simulated.coverage(world, seeds, 1500) >= 90.5


@pytest.mark.slow
@pytest.mark.parametrize("effect", ["none", "half", "double"])
@pytest.mark.parametrize("methods", [5, 15, 30])
@pytest.mark.parametrize("seeds", [2, 3, 5])
def test_equal_methods_are_seldom_called_worse(seeds, methods, effect):
    # 300 boards: se 1.5 at 7 %.
    world = World(seed=simulated.SEED_EFFECTS[effect])
    assert simulated.false_boards(world, seeds, methods, 300) <= 10


@pytest.mark.parametrize("name", fresh_worlds.WORLDS)
def test_fresh_worlds_have_the_scores_they_expect(name):
    """Otherwise what they say about coverage would mean nothing."""
    world = fresh_worlds.WORLDS[name](simulated.SEED_EFFECTS["double"])
    generator = np.random.default_rng(0)
    means = [
        world.clusters.means(world.earned(generator, 3, (0.0, 0.0))).sum(-1).mean()
        for _ in range(100)
    ]
    assert abs(np.mean(means) - world.expected()) < 3.5 * np.std(means) / 10


@pytest.mark.slow
@pytest.mark.parametrize("name", fresh_worlds.WORLDS)
@pytest.mark.parametrize("effect", ["half", "double"])
@pytest.mark.parametrize("seeds", [3, 5])
def test_worlds_on_which_no_constant_was_chosen(seeds, effect, name):
    # 400 tries: se 1.4 at 92 %, 1.3 at 7 %; 200 boards: se 1.8 at 7 %.
    world = fresh_worlds.WORLDS[name](simulated.SEED_EFFECTS[effect])
    covered, false_alarms = simulated.calibration(world, seeds, 400)
    assert covered >= 89
    assert false_alarms <= 10
    assert simulated.false_boards(world, seeds, 15, 200) <= 11


@pytest.mark.slow
def test_the_smallest_difference_is_seen_as_often_as_promised():
    # 150 boards: se 3.3 at 80 % if the five rows of a board are judged together. The smallest
    # difference itself is estimated from one board with three seeds, which is the larger error.
    world = World(seed=0.0015)
    values = world.earned(np.random.default_rng(0), 3, (0.0,) * 6)
    smallest = judge(values, world.clusters)[1]
    seen, _ = simulated.power(world, 3, 6, 150, smallest)
    assert 65 <= seen <= 95
