"""Avalanche benchmarks as streams: made of generated images, nothing is downloaded."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import fsdil_bench
from fsdil_bench import DataError, RequestError, ScenarioInfo, stream_from_avalanche
from fsdil_bench.avalanche.incoming_images import IncomingImages, as_picture
from fsdil_bench.data.shots import draw_shots
from fsdil_bench.plugins.registry import Plugin, load_registry

pytest.importorskip("avalanche")

from avalanche.benchmarks import benchmark_from_datasets, nc_benchmark, ni_benchmark
from avalanche.benchmarks.utils import (
    DefaultTransformGroups,
    _make_taskaware_classification_dataset,
    as_classification_dataset,
    make_avalanche_dataset,
)
from torchvision.transforms import (
    ColorJitter,
    Compose,
    Normalize,
    RandomRotation,
    ToTensor,
)

NAMES = ("red", "green", "blue")
MEAN, STD = (0.4, 0.5, 0.6), (0.2, 0.3, 0.4)


@dataclass
class Patches(torch.utils.data.Dataset):
    """Noisy patches; `seed` is another set of them, `domain` sets the brightness."""

    seed: int
    count: int = 12
    domain: int = 0

    def __post_init__(self):
        self.targets = [i % len(NAMES) for i in range(self.count)]
        self.read = 0

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        self.read += 1
        return Image.fromarray(self.pixels(index)), self.targets[index]

    def pixels(self, index):
        noise = np.random.default_rng([self.seed, index]).integers(0, 90, (8, 8, 3))
        noise[:, :, self.targets[index]] += 60 + 20 * self.domain
        return noise.astype(np.uint8)


def plain(seed=0, count=12, **given: Any):
    """A benchmark made with `benchmark_from_datasets`."""
    sets = [(Patches(2 * t + seed, count, t), Patches(2 * t + 1 + seed, 9, t)) for t in range(3)]
    wrap = partial(as_classification_dataset, **given)
    made = benchmark_from_datasets(
        train=[wrap(a) for a, _ in sets], test=[wrap(b) for _, b in sets]
    )
    return made, sets


def rotated(angles=(0, 90, 180), count=12, task_labels=False, transform=None):
    """A benchmark made as Avalanche makes RotatedMNIST and PermutedMNIST."""

    def turned(images, angle):
        return make_avalanche_dataset(
            _make_taskaware_classification_dataset(images),
            frozen_transform_groups=DefaultTransformGroups((RandomRotation((angle, angle)), None)),
        )

    train, test = ([turned(Patches(seed, count), angle) for angle in angles] for seed in (0, 1))
    return nc_benchmark(
        train, test, n_experiences=len(angles), task_labels=task_labels, shuffle=False,
        class_ids_from_zero_in_each_exp=True, one_dataset_per_exp=True,
        train_transform=transform, eval_transform=transform,
    )  # fmt: skip


def pictures(samples):
    """Pixels and labels, in the order of the pixels."""
    return sorted(
        (samples.load(each).tobytes(), int(y))
        for each, y in zip(samples.ids, samples.labels, strict=True)
    )


def test_every_experience_is_a_domain_with_its_own_test_images():
    made, sets = plain()
    stream = stream_from_avalanche(made, NAMES, synonyms=[["crimson"], [], ["azure"]])
    assert [domain.name for domain in stream.domains] == [f"experience-{t}" for t in range(3)]
    assert stream.synonyms == (("crimson",), (), ("azure",))
    assert stream.unseen == ()
    for domain, (train, test) in zip(stream.domains, sets, strict=True):
        for samples, images in ((domain.train, train), (domain.test, test)):
            assert list(samples.labels) == images.targets
            for i, each in enumerate(samples.ids):
                assert np.array_equal(samples.load(each), images.pixels(i))
    assert stream.domains[1].test.ids[4] == "experience-1/test/4"


def test_images_are_read_when_they_are_needed():
    made, sets = plain()
    stream = stream_from_avalanche(made, NAMES)
    assert {images.read for pair in sets for images in pair} == {3}, "the first, for the checks"
    stream.domains[0].train.load("experience-0/train/5")
    assert sets[0][0].read == 4


def test_the_same_benchmark_has_the_same_ids_and_keys_and_another_has_other_keys():
    one, again, other = (stream_from_avalanche(plain(seed)[0], NAMES) for seed in (0, 0, 50))
    assert one.digest() == again.digest() != other.digest()
    assert one.domains[0].train.ids == other.domains[0].train.ids
    assert not set(one.domains[0].train.keys) & set(other.domains[0].train.keys)


def test_a_classic_benchmark():
    stream = stream_from_avalanche(rotated(), NAMES, domains=("up", "left", "down"))
    up, left, down = (domain.train for domain in stream.domains)
    turned = [(np.frombuffer(p, np.uint8).reshape(8, 8, 3), y) for p, y in pictures(up)]
    for times, samples in ((1, left), (2, down)):
        assert sorted((np.rot90(p, times).tobytes(), y) for p, y in turned) == pictures(samples)


def test_reading_leaves_the_generators_of_the_process_alone():
    """A RandomRotation by one angle draws, although nothing depends on it."""
    stream = stream_from_avalanche(rotated(), NAMES)
    stream.digest()  # as before every run
    before = torch.get_rng_state()
    for domain in stream.domains:
        pictures(domain.test)
    assert torch.equal(before, torch.get_rng_state())


def test_a_normalisation_is_refused_or_undone():
    made = rotated(transform=Compose([ToTensor(), Normalize(MEAN, STD)]))
    with pytest.raises(DataError, match=r"floats from -\d.* to \d.*, not from 0 to 1") as refused:
        stream_from_avalanche(made, NAMES)
    assert "normalised=((0.485" in refused.value.remedy
    undone = stream_from_avalanche(made, NAMES, normalised=(MEAN, STD))
    bare = stream_from_avalanche(rotated(), NAMES)
    assert pictures(undone.domains[1].train) == pictures(bare.domains[1].train)


def test_one_test_experience_is_of_no_domain():
    """Then every domain is tested on images of its own, which it does not learn from."""
    made = ni_benchmark(Patches(0, 90), Patches(1, 9), n_experiences=3, seed=0)
    stream = stream_from_avalanche(made, NAMES, test_share=0.25)
    [(name, common)] = stream.unseen
    assert (name, len(common)) == ("test", 9)
    for domain, experience in zip(stream.domains, made.train_stream, strict=True):
        assert not set(domain.train.ids) & set(domain.test.ids)
        assert len(domain.train) + len(domain.test) == len(experience.dataset)
        shares = np.bincount(domain.test.labels) / np.bincount(experience.dataset.targets)
        assert (shares > 0.1).all()
        assert (shares <= 0.25).all()
    again = stream_from_avalanche(made, NAMES, test_share=0.25)
    assert again.digest() == stream.digest()


def test_groups_are_a_data_attribute_and_stay_together():
    videos = [f"video {i // 6}" for i in range(36)]
    images = as_classification_dataset(Patches(0, 36)).update_data_attribute("video", videos)
    test = as_classification_dataset(Patches(1)).update_data_attribute("video", videos[:12])
    made = benchmark_from_datasets(train=[images, images], test=[test])
    stream = stream_from_avalanche(made, NAMES, groups="video")
    for domain in stream.domains:
        assert domain.test.groups
        assert not {*zip(domain.test.groups, domain.test.labels.tolist(), strict=True)} & {
            *zip(domain.train.groups, domain.train.labels.tolist(), strict=True)
        }
    assert stream.unseen[0][1].groups == tuple(videos[:12])
    with pytest.raises(RequestError, match="no data attribute 'film'"):
        stream_from_avalanche(made, NAMES, groups="film")


def as_dataset(images, form):
    """Items of another form."""

    class Formed(torch.utils.data.Dataset):
        targets = images.targets

        def __len__(self):
            return len(images)

        def __getitem__(self, index):
            return form(images.pixels(index)), images.targets[index]

    return as_classification_dataset(Formed())


@pytest.mark.parametrize(
    "form",
    [
        Image.fromarray,
        lambda pixels: pixels,
        lambda pixels: torch.from_numpy(pixels).permute(2, 0, 1),
        lambda pixels: torch.from_numpy(pixels).permute(2, 0, 1) / 255,
        lambda pixels: pixels / 255,
        lambda pixels: (torch.from_numpy(pixels).permute(2, 0, 1) / 255).half(),
    ],
    ids=["PIL", "array", "tensor", "float tensor", "float array", "half tensor"],
)
def test_a_form_that_is_taken(form):
    images = Patches(0)
    made = benchmark_from_datasets(
        train=[as_dataset(images, form)], test=[as_dataset(images, form)]
    )
    stream = stream_from_avalanche(made, NAMES)
    samples = stream.domains[0].train
    loaded = [samples.load(each) for each in samples.ids]
    assert all(np.array_equal(each, images.pixels(i)) for i, each in enumerate(loaded))
    assert loaded[0].dtype == np.uint8


def test_grey_images_get_three_channels():
    grey = np.arange(64, dtype=np.uint8).reshape(8, 8)
    for image in (grey, grey[:, :, None], torch.from_numpy(grey), torch.from_numpy(grey)[None],
                  Image.fromarray(grey)):  # fmt: skip
        picture = as_picture(image, "grey")
        assert picture.shape == (8, 8, 3)
        assert all(np.array_equal(picture[:, :, c], grey) for c in range(3))


@pytest.mark.parametrize(
    ("image", "words"),
    [
        (np.zeros((8, 8, 3), np.int64), r"a int64 array \(8, 8, 3\)"),
        (np.zeros((3, 8, 8), np.uint8), r"a uint8 array \(3, 8, 8\)"),
        (torch.zeros(8, 8, 3), r"a float32 tensor \(8, 8, 3\)"),
        (torch.zeros(784), r"a float32 tensor \(784,\)"),
        (np.zeros((8, 8), bool), r"a bool array \(8, 8\)"),
        (np.full((8, 8, 3), 200.0), "floats from 200 to 200"),
        (np.full((8, 8, 3), np.nan), "floats from nan to nan"),
        (Image.new("I;16", (8, 8)), "the mode I;16"),
        ("0.png", "is a str"),
    ],
)
def test_any_other_form_is_refused_by_name(image, words):
    with pytest.raises(DataError, match=words) as refused:
        as_picture(image, "experience-0/train/7")
    assert "'experience-0/train/7'" in refused.value.message
    assert refused.value.remedy


@pytest.mark.parametrize("given", [(MEAN,), ((0.5,), (0.0,)), ("a", "b"), ((0.5, 0.5), (1, 1)), 3])
def test_a_normalisation_that_makes_no_sense(given):
    with pytest.raises(RequestError, match=r"normalised = .* does not fit"):
        IncomingImages({}, given)


def test_a_random_transform_is_refused():
    jitter = ColorJitter(brightness=0.9), None
    made, _ = plain(transform_groups={"train": jitter, "eval": jitter})
    with pytest.raises(DataError, match="another one every time"):
        stream_from_avalanche(made, NAMES)


def test_class_incremental_benchmarks_and_task_labels_are_refused():
    split = nc_benchmark(Patches(0), Patches(1), n_experiences=3, task_labels=False, seed=0)
    with pytest.raises(DataError, match="training experience 0 has no image of ") as refused:
        stream_from_avalanche(split, NAMES)
    assert "class-incremental" in refused.value.remedy
    with pytest.raises(DataError, match="the task labels 0, 1, 2"):
        stream_from_avalanche(rotated(task_labels=True), NAMES)


def test_what_does_not_fit_together_is_named():
    made, _ = plain()
    many = benchmark_from_datasets(
        train=[each.dataset for each in made.train_stream],
        test=[each.dataset for each in list(made.test_stream)[:2]],
    )
    for given, words in (
        ((many, NAMES), "2 experiences, the training stream 3"),
        ((made, NAMES[:2]), "training experience 0 has labels from 0 to 2, but there are 2 class"),
        ((made, (*NAMES, "grey", "pink")), "training experience 0 has no image of grey, pink"),
        ((made, ("red", "red", "blue")), "names a class twice"),
        ((object(), NAMES), "object has no train_stream"),
    ):
        with pytest.raises(fsdil_bench.FsdilError, match=words):
            stream_from_avalanche(*given)
    for option, words in (
        ({"domains": ("a", "b", "a")}, "2 different names for 3 domains"),
        ({"synonyms": [[]]}, "synonyms for 1 classes and names for 3"),
        ({"test_share": 1.0}, "test_share = 1.0"),
    ):
        with pytest.raises(RequestError, match=words):
            stream_from_avalanche(made, NAMES, **option)


def test_data_sets_without_sound_labels_are_refused():
    from avalanche.benchmarks.utils import AvalancheDataset

    bare = benchmark_from_datasets(train=[AvalancheDataset([Patches(0)])], test=[])
    with pytest.raises(DataError, match="the data set of training experience 0 has no `targets`"):
        stream_from_avalanche(bare, NAMES)
    wrong = as_classification_dataset(Patches(0)).update_data_attribute("targets", [2, 1, 0] * 4)
    made = benchmark_from_datasets(train=[wrong], test=[wrong])
    with pytest.raises(DataError, match="has the label 0, but 2 in `targets`"):
        stream_from_avalanche(made, NAMES)


@pytest.fixture
def offered(toy_registry):
    """Offer a benchmark as the scenario `incoming`."""

    def offer(make):
        registry = load_registry([*toy_registry.files])
        info = ScenarioInfo("incoming", "for a test", make, default_backbone="toy-clip")
        registry.scenarios["incoming"] = info
        registry.plugins.append(Plugin("incoming", __file__, offers=["scenario incoming"]))
        return registry

    return offer


@pytest.mark.parametrize(
    "make", [lambda: plain(count=30)[0], lambda: rotated(count=30)], ids=["plain", "rotated"]
)
def test_it_runs_as_any_scenario(offered, tmp_path, make):
    registry = offered(lambda request: stream_from_avalanche(make(), NAMES))

    def run(scenario, method="toy-means", out=tmp_path, **options):
        return fsdil_bench.run(method, scenario, registry=registry, out=out, **options)

    record = run("incoming-2shot")
    assert [domain["train"] for domain in record.scenario["domains"]] == [30, 6, 6]
    assert run("incoming-2shot", out=tmp_path / "again").matrix == record.matrix
    arranged = run("incoming-1shot", order=["experience-2", "experience-0"], base_limit=2)
    assert arranged.domain_names == ["experience-2", "experience-0"]
    assert run("incoming-1shot@validation").domain_names[1] == "experience-0-shots"


def test_an_avalanche_method_learns_what_came_from_avalanche(offered, tmp_path):
    registry = offered(lambda request: stream_from_avalanche(rotated(), NAMES))
    options = {"config": {"steps": 1}, "registry": registry, "order": ["experience-0"]}
    record = fsdil_bench.run("avalanche-naive", "incoming-1shot", out=tmp_path, **options)
    assert len(record.matrix) == 1


def test_back_again():
    """What came in can go out: with the same images, as the backbone takes them."""
    from fsdil_bench.avalanche import to_avalanche

    stream = stream_from_avalanche(plain()[0], NAMES)
    out = to_avalanche(draw_shots(replace(stream, transform="clip"), 2, 0), size=8)
    assert [len(each.dataset) for each in out.train_stream] == [12, 6, 6]


def test_it_can_be_sealed(tmp_path, monkeypatch):
    """The scenario is built by the harness, as always; a method's process knows nothing of it."""
    examples = Path(__file__).parent.parent.parent / "examples"
    monkeypatch.syspath_prepend(str(examples / "fsdil-rotated" / "src"))
    plugin = tmp_path / "rotated.py"
    plugin.write_text("from fsdil_rotated import fsdil_scenarios as fsdil_scenarios\n")
    runs = [
        fsdil_bench.run(
            "ncm", "rotated-1shot", plugins=[plugin], out=tmp_path, sealed=sealed, base_limit=2
        )
        for sealed in (False, True)
    ]
    assert runs[0].run_id == runs[1].run_id
    assert runs[0].matrix == runs[1].matrix
    assert runs[1].provenance["trusts"] == {"scenario": "rotated.py"}
