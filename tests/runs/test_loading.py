"""Images made in the background: the same ones, in the same order, within bounds."""

from __future__ import annotations

import threading
from collections import Counter

import numpy as np
import pytest
import torch
import toy_plugin
from PIL import Image
from torchvision.transforms import InterpolationMode, v2

from fsdil_bench import Domain, Samples, Stream, TrainDomain, file_samples
from fsdil_bench.data import image_files
from fsdil_bench.data.transforms import build_transform
from fsdil_bench.errors import DataError, PluginError
from fsdil_bench.progress import Progress
from fsdil_bench.runs import picture_memory, pictures
from fsdil_bench.runs.pictures import Pictures

SIZE = toy_plugin.SIZE
CUBIC = {"interpolation": InterpolationMode.BICUBIC, "antialias": True}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Forty JPEG files of several shapes."""
    folder = tmp_path_factory.mktemp("jpeg")
    rng = np.random.default_rng(0)
    for i in range(40):
        spots = Image.fromarray(rng.integers(0, 256, (6, 6, 3), dtype=np.uint8))
        spots.resize((30 + i, 24), Image.Resampling.BICUBIC).save(folder / f"{i:02}.jpg")
    return folder


def decode(path):
    with Image.open(path) as file:
        return np.asarray(file.convert("RGB"))


def samples_in(folder, load=decode):
    ids = tuple(path.name for path in sorted(folder.iterdir()))
    return Samples(ids, np.arange(len(ids)) % 3, lambda sample_id: load(folder / sample_id))


def stream_of(*trains, **options):
    domains = tuple(Domain(f"d{t}", train, train) for t, train in enumerate(trains))
    return Stream("s", toy_plugin.CLASSES, domains, **options)


@pytest.fixture
def open_pictures(tmp_path):
    def open_with(stream, workers=None):
        backbone = toy_plugin.build_backbone()
        transform = build_transform(stream.transform, backbone.image)
        return Pictures(stream, backbone, transform, tmp_path, Progress(), workers=workers)

    return open_with


def background():
    return [thread for thread in threading.enumerate() if thread.name.startswith("prefetch")]


def same(one, two):
    return torch.equal(one, two) and one.stride() == two.stride()


# The views are what they always were


def augmented_as_ever(samples, positions, seeds):
    """One image after another, with the global generator."""
    steps = v2.Compose(
        [v2.RandomResizedCrop(SIZE, scale=(0.7, 1.0), **CUBIC), v2.RandomHorizontalFlip()]
    )
    views = []
    for position, seed in zip(positions, seeds, strict=True):
        picture = np.array(samples.load(samples.ids[position]))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            views.append(steps(torch.from_numpy(picture).permute(2, 0, 1)))
    return torch.stack(views)


def plain_as_ever(samples, positions):
    steps = v2.Compose([v2.Resize(SIZE, **CUBIC), v2.CenterCrop(SIZE)])
    pictures = [np.array(samples.load(samples.ids[position])) for position in positions]
    views = [steps(torch.from_numpy(p).permute(2, 0, 1)).numpy() for p in pictures]
    return torch.from_numpy(np.stack(views))


@pytest.mark.parametrize("workers", [0, 1, 4])
def test_batches_are_bit_for_bit_what_they_were(files, open_pictures, workers):
    samples = samples_in(files)
    loaded = open_pictures(stream_of(samples), workers)
    rng = np.random.default_rng(1)
    parts = [rng.permutation(40)[:size] for size in (1, 7, 8, 9, 40, 16)]
    seeds = [[int(s) for s in rng.integers(0, 2**62, len(part))] for part in parts]
    batches = list(loaded.batches(samples, zip(parts, seeds, strict=True)))
    for part, own, views in zip(parts, seeds, batches, strict=True):
        assert same(views, augmented_as_ever(samples, part, own))
        assert same(loaded.augmented(samples.subset(part), own), views)
    for _ in range(2):  # from their source, then from memory
        batches = list(loaded.batches(samples, ((part, None) for part in parts)))
        for part, views in zip(parts, batches, strict=True):
            assert same(views, plain_as_ever(samples, part))
            assert same(loaded.plain(samples.subset(part)), views)


@pytest.mark.parametrize("options", [{}, {"augment": False}, {"shuffle": False}, {"steps": 9}])
def test_training_batches_do_not_depend_on_the_number_of_workers(files, open_pictures, options):
    samples = samples_in(files)

    def batches(workers):
        loaded = open_pictures(stream_of(samples), workers)
        domain = TrainDomain(0, samples, toy_plugin.CLASSES, loaded, (4, 0), Progress())
        return [*domain.batches(9, epochs=2, **options), *domain.batches(9, drop_last=True)]

    expected = batches(0)
    assert len(expected) == options.get("steps", 10) + 4
    for workers in (1, 3):
        for one, two in zip(batches(workers), expected, strict=True):
            assert same(one.images, two.images)
            assert torch.equal(one.labels, two.labels)
            assert torch.equal(one.positions, two.positions)
            assert one.labels.tolist() == (one.positions % 3).tolist()


def test_a_run_does_not_depend_on_the_number_of_workers(toy_run, tmp_path, monkeypatch):
    results = []
    for workers in (0, 3):
        monkeypatch.setenv("FSDIL_CACHE", str(tmp_path / f"cache{workers}"))
        results.append(toy_run("toy-router", workers=workers, out=tmp_path / f"{workers}"))
    one, two = results
    assert one.run_id == two.run_id
    assert one.predictions_sha256 == two.predictions_sha256


def test_pictures_kept_on_disk_are_drawn_once(open_pictures):
    drawn = Counter()

    def load(sample_id):
        drawn[sample_id] += 1
        return toy_plugin.load(sample_id)

    stream = toy_plugin.build_stream()
    train = stream.domains[0].train
    samples = Samples(train.ids, train.labels, load, keys=train.ids)
    kept = Stream("kept", toy_plugin.CLASSES, stream.domains, keep_images=True)
    seeds = range(len(samples))
    first, second = (open_pictures(kept, workers=4).augmented(samples, seeds) for _ in range(2))
    assert same(first, second)
    assert set(drawn.values()) == {1}
    assert len(drawn) == 36


# Others are not disturbed


def test_the_methods_random_numbers_are_its_own(files, open_pictures):
    samples = samples_in(files)
    loaded = open_pictures(stream_of(samples), 4)
    domain = TrainDomain(0, samples, toy_plugin.CLASSES, loaded, (0, 0), Progress())
    torch.manual_seed(1)
    expected = torch.rand(50)
    torch.manual_seed(1)
    drawn = [torch.rand(1) for _ in domain.batches(4, epochs=5)]
    assert torch.equal(torch.cat(drawn), expected)


# Failure and early end


def test_a_corrupt_image_is_named_when_its_batch_is_due(files, tmp_path, open_pictures):
    broken = tmp_path / "broken"
    broken.mkdir()
    for path in files.iterdir():
        (broken / path.name).write_bytes(path.read_bytes()[: 60 if path.name == "13.jpg" else None])
    samples = samples_in(broken)
    for workers in (0, 3):
        loaded = open_pictures(stream_of(samples), workers)
        domain = TrainDomain(0, samples, toy_plugin.CLASSES, loaded, (0, 0), Progress())
        batches = domain.batches(10, shuffle=False)
        assert next(batches).positions.tolist() == list(range(10))
        with pytest.raises(DataError, match=r"image '13\.jpg' cannot be read"):
            next(batches)
        assert not background()
        with pytest.raises(DataError, match=r"image '13\.jpg' cannot be read"):
            loaded.features(samples)
        assert not background()


def test_a_method_may_stop_early(files, open_pictures):
    samples = samples_in(files)
    loaded = open_pictures(stream_of(samples), 3)
    domain = TrainDomain(0, samples, toy_plugin.CLASSES, loaded, (0, 0), Progress())
    for _ in domain.batches(4, epochs=100):
        assert len(background()) == 3
        break
    assert not background()

    def failing():
        for _ in domain.batches(4):
            raise RuntimeError("diverged")

    with pytest.raises(RuntimeError):
        failing()
    assert not background()


def test_what_was_made_ahead_is_not_handed_out_after_the_domain(files, open_pictures):
    samples = samples_in(files)
    loaded = open_pictures(stream_of(samples), 2)
    domain = TrainDomain(0, samples, toy_plugin.CLASSES, loaded, (0, 0), Progress())
    batches = domain.batches(4)
    next(batches)
    domain.close()
    with pytest.raises(PluginError, match="was over"):
        next(batches)
    assert not background()


# Bounds


def many(count, prefix="", loaded=None):
    def load(sample_id):
        if loaded is not None:
            loaded[sample_id] += 1
        return np.full((20, 20, 3), len(sample_id), np.uint8)  # 1200 bytes

    ids = tuple(f"{prefix}{i}" for i in range(count))
    return Samples(ids, np.arange(count) % 3, load, keys=ids)


def test_only_a_few_batches_are_made_ahead(open_pictures):
    loaded = Counter()
    samples = many(5000, loaded=loaded)
    rows = np.arange(5000)
    batches = open_pictures(stream_of(samples), 2).batches(
        samples, ((rows[i : i + 64], None) for i in range(0, 5000, 64))
    )
    next(batches)
    assert 64 <= loaded.total() <= 64 + 8 * (pictures._AHEAD + 1)
    batches.close()


def test_features_of_many_images_are_made_and_kept_in_chunks(open_pictures, monkeypatch):
    loaded = Counter()
    samples = many(3000, loaded=loaded)
    opened = open_pictures(stream_of(samples), 2)
    written, outstanding = [], []
    put, encode = opened._features.store.put, opened.backbone.frozen_features
    done = 0

    def counted(pixels):
        nonlocal done
        outstanding.append(loaded.total() - done)
        done += len(pixels)
        return encode(pixels)

    monkeypatch.setattr(opened.backbone, "frozen_features", counted)
    monkeypatch.setattr(
        opened._features.store, "put", lambda part: [written.append(len(part)), put(part)]
    )
    assert len(opened.features(samples)) == 3000
    assert max(written) <= 512
    assert sum(written) == 3000
    assert max(outstanding) <= 32 + 8 * (pictures._AHEAD + 1)


@pytest.mark.parametrize("workers", [0, 4])
def test_base_images_leave_room_for_few_shot_images(open_pictures, monkeypatch, workers):
    monkeypatch.setattr(picture_memory, "_LIMIT", 100 * 1200)
    loaded = Counter()
    base, few = many(400, "base", loaded), many(50, "few", loaded)
    opened = open_pictures(stream_of(base, few), workers)
    for _ in range(3):
        opened.augmented(base, range(400))
        assert opened._memory.bytes == 50 * 1200
        opened.plain(base)
    for _ in range(3):
        opened.augmented(few, range(50))
    assert {n for key, n in loaded.items() if key.startswith("few")} == {1}
    held = sum(array.nbytes for array in opened._memory.arrays.values())
    assert held == opened._memory.bytes <= 100 * 1200


def test_forgotten_images_free_their_memory(open_pictures):
    loaded = Counter()
    samples = many(30, loaded=loaded)
    opened = open_pictures(stream_of(samples), 2)
    opened.plain(samples)
    opened.forget(samples.subset(range(10)))
    assert opened._memory.bytes == 20 * (1200 + 3 * SIZE * SIZE)
    opened.augmented(samples, range(30))
    assert sorted(loaded.values()) == [1] * 20 + [2] * 10
    opened.forget(samples)
    assert opened._memory.bytes == 0
    assert not opened._memory.arrays


def test_a_remembered_view_holds_no_larger_image(open_pictures):
    samples = many(1)
    opened = open_pictures(stream_of(samples, transform="core50"), 0)
    opened.plain(samples)
    view = opened._memory.arrays["plain/0"]
    assert view.base is None or view.base.nbytes == view.nbytes == 3 * SIZE * SIZE


def test_images_of_a_domain_that_is_over_are_forgotten(toy_run, toy_registry, monkeypatch):
    """Unless the method may look at them again."""
    forgotten = []
    forget = Pictures.forget

    def noted(self, samples):
        forgotten.append(len(samples))
        forget(self, samples)

    monkeypatch.setattr(Pictures, "forget", noted)
    toy_run("toy-means")
    assert forgotten == [36, 3, 3, 3]
    info = toy_registry.methods["toy-means"]
    keeping = type(info)(**{**vars(info), "exemplar_free": False})
    monkeypatch.setitem(toy_registry.methods, "toy-means", keeping)
    toy_run("toy-means", fresh=True)
    assert len(forgotten) == 4


def test_the_number_of_workers_can_be_set(toy_job):
    def workers(**request):
        job = toy_job(**request)
        return job.pictures(Progress()).workers

    assert workers(workers=0) == 0
    assert workers(workers=5) == 5
    assert workers() >= 1


# Large pictures


@pytest.fixture
def large(tmp_path):
    """Files whose pictures are far larger than the tower looks at."""
    rng = np.random.default_rng(0)
    (tmp_path / "large").mkdir()
    for i in range(6):
        spots = Image.fromarray(rng.integers(0, 256, (60, 60, 3), dtype=np.uint8))
        kind = "png" if i % 2 else "jpg"
        spots.resize((900, 700)).save(tmp_path / "large" / f"{i}.{kind}")
    names = sorted(path.name for path in (tmp_path / "large").iterdir())
    return file_samples(tmp_path / "large", names, [0, 1, 2] * 2)


def test_a_few_shot_domain_of_large_pictures_fits_into_memory(large, open_pictures, monkeypatch):
    monkeypatch.setattr(picture_memory, "_LIMIT", len(large) * 150 * 150 * 3 * 2)
    decoded = Counter()
    plain = image_files.read_image

    def noted(root, sample_id, least=None):
        decoded[sample_id] += 1
        return plain(root, sample_id, least)

    monkeypatch.setattr(image_files, "read_image", noted)
    opened = open_pictures(stream_of(many(3), large), 2)
    assert opened.transform.short_side == 128
    for _ in range(3):
        opened.augmented(large, range(6))
    assert set(decoded.values()) == {1}  # whole pictures would have taken ten times the room
    assert len(decoded) == 6


def test_augmented_views_do_not_depend_on_memory_or_on_what_was_seen_before(
    large, open_pictures, monkeypatch
):
    roomy = open_pictures(stream_of(many(3), large), 2)
    first = roomy.augmented(large, range(6))
    again = roomy.augmented(large, range(6))
    roomy.forget(large)
    plain = roomy.plain(large)
    after_plain = roomy.augmented(large, range(6))
    monkeypatch.setattr(picture_memory, "_LIMIT", 0)
    short = open_pictures(stream_of(many(3), large), 0)
    assert same(short.plain(large), plain)
    for views in (again, after_plain, short.augmented(large, range(6))):
        assert same(views, first)
    whole = [roomy.transform.plain(large.load(i)) for i in large.ids]
    assert torch.equal(plain, torch.stack(whole))


def test_any_loader_of_large_pictures_will_do(large, open_pictures):
    by_hand = Samples(large.ids, large.labels, lambda i: large.load(i))
    opened = open_pictures(stream_of(many(3), by_hand), 2)
    views = opened.augmented(by_hand, range(6))
    transform = opened.transform
    expected = [transform.augmented(large.load(i), seed) for seed, i in enumerate(large.ids)]
    assert torch.equal(views, torch.stack(expected))
    assert all(min(array.shape[:2]) == 128 for array in opened._memory.arrays.values())
