"""Forecasts of methods whose work is known, against what can be computed by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import accumulate
from pathlib import Path

import pytest
from packages import TOY

from fsdil_bench.data.published.outline import Outline
from fsdil_bench.errors import RequestError
from fsdil_bench.forecast.account import Account
from fsdil_bench.forecast.forecaster import Forecaster
from fsdil_bench.forecast.hardware import GPUS, gpu_speed
from fsdil_bench.forecast.tally import Work
from fsdil_bench.plugins.descriptors import ScenarioInfo
from fsdil_bench.plugins.registry import load_registry
from fsdil_bench.runs.lookup import Lookup
from fsdil_bench.runs.request import RunRequest

PLUGIN = Path(__file__).parent / "counting_plugin.py"
#: Training and test images of a data set that nobody has.
SIZES = {"a": (700, 90), "b": (400, 60), "c": (80, 50), "d": (60, 40), "e": (50, 30)}
CLASSES = ("cat", "small dog", "horse")


@pytest.fixture(scope="module")
def registry():
    found = load_registry([PLUGIN])
    outline = Outline(CLASSES, SIZES)
    info = ScenarioInfo(
        "sizes", "a stream that has only sizes", lambda request: outline.stream("sizes"),
        domains=tuple(SIZES), classes=len(CLASSES),
    )  # fmt: skip
    found.scenarios["sizes"] = info
    return found


@pytest.fixture(scope="module")
def cost(registry):
    forecaster = Forecaster(registry, "a100")

    def find(method="counting", scenario="sizes-2shot", **options):
        return forecaster.forecast(RunRequest.of(method=method, scenario=scenario, **options))

    return find


def seen_so_far(sizes):
    """Test images after each domain."""
    return [*accumulate(test for _, test in sizes.values())]


TESTED = seen_so_far(SIZES)


@pytest.mark.parametrize("shots", [2, 8])
@pytest.mark.parametrize("passes", [1, 3])
def test_passes_are_those_of_the_formula(cost, shots, passes):
    run = cost(scenario=f"sizes-{shots}shot", config={"passes": passes}).cost
    train = passes * (700 + 4 * shots * len(CLASSES))
    test = sum((t + 1) * images for t, images in enumerate(TESTED))
    work = run.work
    assert work.image_forward == pytest.approx(train + test)
    assert work.augmented_views == pytest.approx(train)
    assert work.plain_views == pytest.approx(sum(TESTED))
    assert (work.image_frozen, work.image_backward, work.text_forward) == (0, 0, 0)
    assert run.flops(work) == pytest.approx((train + test) * run.cost.image.forward)


def test_a_method_that_needs_a_wide_tower_is_rehearsed_on_one(cost):
    """What it costs does not depend on the tower of the rehearsal."""
    needs, usual = cost(config={"width": 100}).cost.work, cost().cost.work
    assert needs.image_forward == pytest.approx(usual.image_forward)
    assert needs.augmented_views == pytest.approx(usual.augmented_views)
    with pytest.raises(RequestError, match="wide"):
        cost(config={"width": 10_000})


def test_gradients_of_prompts_and_of_weights(cost):
    train = 3 * (700 + 4 * 2 * len(CLASSES))
    plain, prompts, weights = (
        cost(config={"gradients": kind}).cost for kind in ("none", "prompts", "weights")
    )
    assert plain.work.image_backward == 0
    assert prompts.work.image_backward == pytest.approx(train)
    assert prompts.work.image_weights == 0
    assert weights.work.image_weights == weights.work.image_backward == pytest.approx(train)
    assert prompts.kept[0] == pytest.approx(16)  # a batch waits for its backward pass
    assert weights.kept[2] == pytest.approx(16)
    image = weights.cost.image
    assert weights.flops(weights.work) - plain.flops(plain.work) == pytest.approx(
        train * (image.backward + image.weight_backward)
    )
    speed = gpu_speed("a100", "fp32")
    assert weights.memory(speed) - plain.memory(speed) > 16 * image.kept_training


def test_prompts_are_tokens_like_others(cost):
    few, many = (cost(config={"prompts": count}).cost for count in (0, 17))
    train = 3 * (700 + 4 * 2 * len(CLASSES))
    tokens = many.cost.image.tokens
    assert many.work.image_forward - few.work.image_forward == pytest.approx(train * 17 / tokens)


def test_a_bound_among_the_options_is_kept(cost):
    """A line through sizes below the bound would run far above it."""
    run = cost(config={"passes": 2, "most": 300}).cost
    test = sum((t + 1) * images for t, images in enumerate(TESTED))
    train = 300 + 4 * 2 * 2 * len(CLASSES)
    assert run.work.image_forward - test == pytest.approx(train)


def test_features_and_texts(cost, registry):
    tokenizer = Lookup(registry).backbone(registry.backbone("tiny-clip"), "tiny-clip").tokenizer
    run = cost("reading").cost
    train, tests = 700 + 4 * 2 * len(CLASSES), sum(test for _, test in SIZES.values())
    assert sum(run.features.values()) == train + tests
    length = run.cost.text.tokens
    assert run.text_tokens == 2 * length
    # Start, words and end; what is behind the longest name is cut off.
    tokens = int(tokenizer(list(CLASSES)).argmax(1).max()) + 1
    assert run.work.text_forward == pytest.approx(5 * len(CLASSES) * tokens)
    assert run.shared.image_frozen == train + tests


def test_the_cache_is_paid_for_once(cost):
    account = Account()
    runs = [cost("reading", f"sizes-{k}shot", seed=seed) for seed in (0, 1) for k in (2, 4)]
    images = [account.charge(run).images for run in runs]
    later = 4 * 2 * len(CLASSES)  # two more images of every class in four domains
    assert images == [700 + later + TESTED[-1], later, later, later]


def test_a_shared_base_is_paid_for_once(cost):
    runs = [cost(scenario=f"sizes-{k}shot", reuse_base=True) for k in (2, 4)]
    account = Account()
    first, second = (account.charge(run) for run in runs)
    base = runs[1].cost.learn[0] + runs[1].cost.test[0]
    assert base.image_forward == pytest.approx(3 * 700 + 90)
    whole = Account().charge(runs[1])
    assert whole.images - second.images == pytest.approx(base.image_forward)
    assert second.seconds < whole.seconds
    other = cost(scenario="sizes-2shot", reuse_base=True, seed=1)
    assert account.charge(other).images == pytest.approx(first.images)


def test_images_of_a_selection_alone_are_counted(cost):
    order = ("b", "a")
    run = cost(order=order, config={"passes": 1}).cost
    chosen = {name: SIZES[name] for name in order}
    test = sum((t + 1) * images for t, images in enumerate(seen_so_far(chosen)))
    assert run.work.image_forward == pytest.approx(400 + 2 * len(CLASSES) + test)


@pytest.mark.parametrize("name", GPUS)
def test_every_entry_of_the_table_is_complete(name):
    gpu = GPUS[name]
    assert set(gpu.peaks) <= set(gpu.efficiency)
    assert all(0 < part < 1 for part in gpu.efficiency.values())
    assert gpu.memory > 8
    assert gpu_speed(f"NVIDIA {gpu.title}", "auto").title == gpu.title


def test_seconds_follow_the_table(cost):
    """Twice the work takes twice as long, and a faster card less."""
    run = cost(config={"gradients": "weights"}).cost
    slow, fast = gpu_speed("rtx-3090", "fp32"), gpu_speed("rtx-4090", "fp32")
    alone = Work(image_forward=1000.0)
    assert fast.towers(alone, run.cost) == pytest.approx(
        1000 * run.cost.image.forward / (82.6e12 * GPUS["rtx-4090"].efficiency["fp32"])
    )
    assert slow.towers(alone.times(2), run.cost) == 2 * slow.towers(alone, run.cost)
    assert slow.towers(alone, run.cost) > fast.towers(alone, run.cost)
    busy = replace(fast, call=0.0, decode=1.0)
    assert sum(run.seconds(busy).values()) > 700


def test_this_machine_is_measured_and_remembered(call, registry):
    arguments = ["cost", "counting", "drawn-1shot", "--plugin", PLUGIN, "--set", "passes=1"]
    options = ["--order", "real,sketch", "--base-limit", 2, "--json"]
    code, out, err = call(*arguments, *options)
    assert code == 0, err
    assert "rehearsing counting for drawn" in err
    assert "measuring how fast tiny-clip is here" in err
    [said] = json.loads(out)
    assert said["images_forward"] == pytest.approx(48 + 24 + 480 + 2 * 960)
    assert said["hardware"] == "this-machine"
    assert said["seconds_total"] > 0
    assert said["peak_memory_bytes"] > 0
    code, out, err = call(*arguments, *options)
    assert "rehearsing" not in err
    [again] = json.loads(out)
    assert again["seconds"] == said["seconds"]


def test_published_sizes_stand_for_images(call):
    arguments = ["cost", "reading", "core50-1shot", "--plugin", PLUGIN]
    code, out, err = call(*arguments, "--on", "rtx-4090", "--seeds", "0-1")
    assert code == 0, err
    assert "their published numbers are used" in out
    last = out.splitlines()[-1]
    assert last.startswith("2 runs, about ")
    assert last.endswith(" on one RTX 4090")


def test_a_dry_run_says_what_no_record_tells(call):
    arguments = ["sweep", "--plugin", PLUGIN, "-m", "reading", "-s", "core50", "--shots", "1,2"]
    arguments += ["--seeds", "0-1", "--dry-run", "--on", "rtx-4090"]
    code, out, err = call(*arguments)
    assert code == 0, err
    assert "fsdil-bench data get core50" in out
    lines = out.splitlines()
    assert lines[-1].startswith("4 runs, about ")
    assert lines[-1].endswith(" on one RTX 4090")
    assert "4 by forecast" in lines[-2]
    assert len(err.splitlines()) == 2  # one rehearsal, and one more for another number of shots
    code, out, err = call(*arguments, "--json")
    assert not err  # remembered
    found = json.loads(out)
    total = found["total"]
    assert (total["runs"], total["by_forecast"], total["unknown"]) == (4, 4, 0)
    assert total["seconds"] == pytest.approx(sum(each["seconds"] for each in found["blocked"]))
    images = [each["images_forward"] for each in found["blocked"]]
    later = 7 * 50  # an image of every class in seven domains
    assert images[1:] == [later, later, later]  # the rest is in the cache
    assert images[0] > 30_000


def test_records_are_better_than_forecasts(call, toy_run, tmp_path):
    toy_run("toy-means", "toy-1shot", out=tmp_path / "runs")
    arguments = ["sweep", "--plugin", TOY, "-m", "toy-means,toy-router", "-s", "toy-1shot"]
    code, out, err = call(*arguments, "--seeds", "1", "--dry-run", "--json")
    assert code == 0, err
    assert {cell["method"]: cell["by"] for cell in json.loads(out)["cells"]} == {
        "toy-means": "records",
        "toy-router": "forecast",
    }
    assert "toy-means" not in err
