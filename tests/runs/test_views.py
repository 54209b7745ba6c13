from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor
from types import FunctionType, ModuleType

import numpy as np
import pytest
import torch
import toy_plugin

from fsdil_bench import Batch, Samples, TrainDomain, load_stream
from fsdil_bench.data.stream_guard import no_streams
from fsdil_bench.data.transforms import build_transform
from fsdil_bench.errors import PluginError
from fsdil_bench.progress import Progress
from fsdil_bench.runs.label_copies import LabelCopies
from fsdil_bench.runs.pictures import Pictures
from fsdil_bench.runs.served_views import served


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
    batch = Batch(torch.zeros(2, 3, 8, 8), torch.zeros(2, 4), torch.zeros(2, 5))
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


# The view that a method gets


def led_to(start):
    """All objects that references lead to, but not through modules, classes and functions."""
    seen, waiting = {}, [start]
    while waiting:
        thing = waiting.pop()
        if id(thing) not in seen and not isinstance(thing, type | ModuleType | FunctionType):
            seen[id(thing)] = thing
            waiting += gc.get_referents(thing)
    return list(seen.values())


def test_a_served_view_leads_to_no_sample(domain):
    own = domain()
    assert any(isinstance(each, str) and "train" in each for each in led_to(own))
    with served(own, TrainDomain) as view:
        batches = view.batches(4)
        next(batches)
        for start in (view, batches, vars(view), view.take):
            found = led_to(start)
            assert not [each for each in found if isinstance(each, Pictures)]
            assert not [each for each in found if isinstance(each, str) and "train/" in each]
        assert torch.equal(view.images(), own.images())
        assert torch.equal(view.features(), own.features())
        with pytest.raises(PluginError, match="cannot be read but through the views"):
            view._samples.load("0")


def test_what_a_served_view_hands_out_is_noted_by_the_harness(domain):
    own = domain()
    with served(own, TrainDomain) as view:
        view.features()
        next(view.batches(10))
        vars(view).pop("_ledger")._times.clear()
    noted = own._ledger.summary(0, 36)
    assert (noted["distinct"], noted["times"]) == (36, 46)


def test_a_served_view_ends_with_its_domain(domain):
    with served(domain(), TrainDomain) as view:
        kept, batches = view._pictures, view.batches(4)
        next(batches)
    view._open = True
    for read in (view.features, lambda: next(batches), lambda: kept.features(None)):
        with pytest.raises(PluginError, match="was over"):
            read()
    assert not {"_samples", "_pictures"} & set(vars(view))


def test_an_error_of_the_harness_leads_nowhere(domain):
    with served(domain(), TrainDomain) as view:
        with pytest.raises(PluginError, match="image 36 of a domain with 36") as raised:
            view.take([36])
        place, known = raised.value.__traceback__, []
        while place is not None:
            known += place.tb_frame.f_locals.values()
            place = place.tb_next
    assert not [each for each in known if type(each).__name__ in ("_Desk", "Pictures")]


def test_a_process_of_the_method_is_told_to_read_elsewhere(domain, monkeypatch):
    with served(domain(), TrainDomain) as view:
        monkeypatch.setattr("os.getpid", lambda: 1)
        with pytest.raises(PluginError, match="a process that the method has started"):
            view.features()
        monkeypatch.undo()


# Streams while a method is at work


def test_no_stream_is_opened_while_a_method_is_at_work(toy_registry):
    with no_streams(), ThreadPoolExecutor(1) as pool:
        for open_stream in (
            lambda: load_stream("toy-1shot", registry=toy_registry),
            toy_plugin.build_stream,
        ):
            with pytest.raises(PluginError, match="was asked for while a method is at work"):
                pool.submit(open_stream).result()
    assert load_stream("toy-1shot", registry=toy_registry).domains


# Labels


def test_changed_labels_are_noticed():
    one, other = (toy_plugin.samples("d0", "test", 2) for _ in range(2))
    copies = LabelCopies([("one", one), ("other", other)])
    assert copies.of([other, one]).tolist() == [0, 0, 1, 1, 2, 2] * 2
    one.labels.setflags(write=True)
    one.labels[:] = 0
    with pytest.raises(PluginError, match="the test labels of 'one' have changed"):
        copies.of([other])
