from __future__ import annotations

import numpy as np
import pytest
import torch
import toy_plugin

from fsdil_bench import Batch, Samples, TrainDomain
from fsdil_bench.data.transforms import build_transform
from fsdil_bench.errors import PluginError
from fsdil_bench.progress import Progress
from fsdil_bench.runs.pictures import Pictures


@pytest.fixture
def pictures(tmp_path):
    backbone = toy_plugin.build_backbone()
    stream = toy_plugin.build_stream()
    return Pictures(stream, backbone, build_transform("clip", backbone.image), tmp_path, Progress())


@pytest.fixture
def domain(pictures):
    def make(seed=(0, 0)):
        stream = toy_plugin.build_stream()
        return TrainDomain(
            0, stream.domains[0].train, stream.class_names, pictures, seed, Progress()
        )

    return make


def flat(batches):
    return [position for batch in positions(batches) for position in batch]


def positions(batches):
    return [batch.positions.tolist() for batch in batches]


def test_an_epoch_shows_every_image_once(domain):
    seen = flat(domain().batches(10))
    assert sorted(seen) == list(range(36))
    assert [len(p) for p in positions(domain().batches(10))] == [10, 10, 10, 6]
    assert [len(p) for p in positions(domain().batches(10, drop_last=True))] == [10, 10, 10]


def test_steps_override_epochs_and_cycle(domain):
    batches = positions(domain().batches(20, steps=5))
    assert [len(p) for p in batches] == [20, 16, 20, 16, 20]
    assert batches[0] != batches[2]


def test_a_batch_larger_than_the_domain_is_the_domain(domain):
    assert [len(p) for p in positions(domain().batches(500, epochs=2, drop_last=True))] == [36, 36]


def test_order_is_seeded_by_run_domain_and_call(domain):
    one = domain()
    first, second = positions(one.batches(10)), positions(one.batches(10))
    assert first != second
    assert positions(domain().batches(10)) == first
    assert positions(domain((1, 0)).batches(10)) != first
    assert positions(domain((0, 1)).batches(10)) != first
    assert flat(one.batches(10, shuffle=False)) == list(range(36))


def test_augmentation_is_seeded_and_varies(domain):
    one, two = domain(), domain()
    first = next(iter(one.batches(36)))
    again = next(iter(two.batches(36)))
    later = next(iter(one.batches(36)))
    assert torch.equal(first.images, again.images)
    by_position = first.images[first.positions.argsort()]
    assert not torch.equal(by_position, later.images[later.positions.argsort()])
    plain = next(iter(one.batches(36, augment=False, shuffle=False)))
    assert torch.equal(plain.images, one.images())
    assert torch.equal(plain.labels, one.labels)


def test_single_images_can_be_taken(domain):
    one = domain()
    plain = one.take([7, 3])
    assert torch.equal(plain.images, one.images()[[7, 3]])
    assert torch.equal(plain.labels, one.labels[[7, 3]])
    first = one.take([7, 3], draw=1).images
    assert torch.equal(first[1], domain().take([3], draw=1).images[0])
    assert not torch.equal(first, one.take([7, 3], draw=2).images)
    assert not torch.equal(first, plain.images)


def test_global_random_state_is_left_alone(domain):
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    list(domain().batches(10))
    assert torch.equal(torch.rand(3), expected)


def test_a_closed_domain_gives_nothing(domain):
    one = domain()
    one.close()
    batch, taken = (lambda: next(one.batches(4))), (lambda: one.take([0]))
    for read in (one.features, one.images, lambda: one.labels, batch, taken):
        with pytest.raises(PluginError, match="was over"):
            read()


def test_features_come_from_the_cache_the_second_time(domain, pictures, monkeypatch):
    first = domain().features()
    assert torch.allclose(first.norm(dim=1), torch.ones(36))
    monkeypatch.setattr(pictures.backbone, "frozen_features", None)
    assert torch.equal(domain().features(), first)


def test_features_do_not_depend_on_their_neighbours(pictures):
    """Bit for bit: a cache filled in another order gives the same run."""
    samples = toy_plugin.build_stream().domains[0].train
    pixels = pictures.transform.normalise(pictures.plain(samples), torch.device("cpu"))
    embed = pictures.backbone.frozen_features
    whole = embed(pixels)
    assert torch.equal(whole, torch.cat([embed(pixels[i : i + 1]) for i in range(36)]))
    pictures.backbone.place(torch.device("cpu"), "fp32", None, batch_size=256)
    assert torch.equal(whole, embed(pixels))  # nor on the batch size of a run


def test_batch_holds_what_was_declared():
    batch = Batch(features=torch.arange(6.0).view(3, 2))
    assert len(batch) == 3
    assert batch.select(torch.tensor([2])).features.tolist() == [[4.0, 5.0]]
    with pytest.raises(PluginError, match="images"):
        batch.images  # noqa: B018


def test_nothing_in_a_batch_leads_to_labels():
    batch = Batch(torch.zeros(2, 3, 8, 8), torch.zeros(2, 4))
    assert all(torch.is_tensor(value) for value in vars(batch).values())


def test_nothing_handed_out_is_what_the_harness_keeps(domain):
    """A method may write into all it gets; the next to ask gets what the first one got."""
    one = domain()

    def everything():
        batch = next(iter(one.batches(10, shuffle=False, augment=False)))
        taken = one.take([3, 1])
        named = {"labels": one.labels, "features": one.features(), "images": one.images()}
        for name, each in (("batch", batch), ("taken", taken)):
            parts = ("images", "labels", "positions")
            named |= {f"{name}.{part}": getattr(each, part) for part in parts}
        return named

    first = {name: tensor.clone() for name, tensor in everything().items()}
    for name, tensor in everything().items():
        tensor += 1
        again = everything()
        assert all(torch.equal(again[each], first[each]) for each in first), name


def test_an_order_that_is_written_into_stays_as_it_was(domain):
    seen = []
    for batch in domain().batches(10):
        seen += batch.positions.tolist()
        batch.positions.zero_()
    assert sorted(seen) == list(range(36))


def test_labels_of_samples_are_read_only(domain):
    given = np.arange(3)
    samples = Samples(("a", "b", "c"), given, toy_plugin.load)
    given += 1
    assert samples.labels.tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="read-only"):
        samples.labels[0] = 7


def test_images_of_a_large_domain_are_refused_with_advice(domain, monkeypatch):
    few = domain()
    needed = few.images().nbytes
    monkeypatch.setattr("fsdil_bench.runs.views._MOST_BYTES", needed)
    assert few.images().nbytes == needed
    monkeypatch.setattr("fsdil_bench.runs.views._MOST_BYTES", needed - 1)
    with pytest.raises(PluginError, match=r"domain 1 would hold 36 images at once") as refused:
        few.images()
    assert "domain.batches(" in refused.value.remedy
