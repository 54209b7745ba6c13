"""What runs and caches are known by: content and code, never names alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
import toy_plugin

from fsdil_bench import Domain, Samples, ScenarioInfo, Stream
from fsdil_bench.data.streams import load_stream
from fsdil_bench.progress import Progress
from fsdil_bench.runs.job import identify, prepare
from fsdil_bench.runs.request import RunRequest

IDS = tuple(f"train/{i}" for i in range(6))


def request_on(scenario, **options):
    return RunRequest.of(method="toy-means", scenario=scenario, **options)


def patches(value, keys=()):
    """A scenario whose sample ids say nothing about its pictures."""

    def build(request):
        def load(sample_id):
            return np.full((8, 8, 3), value + int(sample_id[-1]), np.uint8)

        samples = Samples(IDS, np.arange(6) % 2, load, keys)
        return Stream("any", ("a", "b"), (Domain("d", samples, samples),) * 1)

    return build


@pytest.fixture
def registry(toy_registry):
    """Scenarios of equal sample ids and different pictures."""
    added = {}
    for name, value, keys in (
        ("dark", 10, ()),
        ("bright", 200, ()),
        ("dark-keyed", 10, IDS),
        ("bright-keyed", 200, IDS),
    ):
        info = ScenarioInfo(name, name, patches(value, keys), default_backbone="toy-clip")
        added[name] = info
    return replace(toy_registry, scenarios={**toy_registry.scenarios, **added})


@pytest.mark.parametrize("suffix", ["", "-keyed"])
def test_equal_sample_ids_of_two_scenarios_do_not_share_features(registry, suffix):
    features = []
    for name in ("dark", "bright", "dark"):
        job = prepare(request_on(f"{name}{suffix}-1shot"), registry)
        features.append(job.pictures(Progress()).features(job.stream.domains[0].train))
    assert not torch.equal(features[0], features[1])
    assert torch.equal(features[0], features[2])


def test_equal_pictures_of_two_scenarios_share_features(registry):
    one, other = (
        load_stream(f"{name}-1shot", registry=registry).domains[0].train.keys
        for name in ("dark", "dark")
    )
    assert list(one) == list(other)
    assert len(set(one)) == len(IDS)


def test_the_pictures_are_part_of_the_id(registry):
    """Also where the scenario is of the same name and code, and so are all ids and labels."""
    dark = registry.scenario("dark")
    changed = replace(registry.scenario("bright"), name="dark")
    one = identify(request_on("dark-1shot"), registry)
    scenarios = {**registry.scenarios, "dark": changed}
    other = identify(request_on("dark-1shot"), replace(registry, scenarios=scenarios))
    assert one.code == other.code
    assert one.run_id != other.run_id
    assert dark.name == changed.name


def test_another_tokenizer_asks_for_other_embeddings(toy_registry, monkeypatch):
    """Texts are cached by what turns them into numbers, not by the texts alone."""
    sentences = ["a red one", "a blue one"]

    def embedded():
        job = prepare(request_on("toy-1shot"), toy_registry)
        return job.backbone.encode_text(sentences)

    first = embedded()
    assert torch.equal(embedded(), first)

    class Reversed:
        version = "2"

        def __call__(self, texts):
            return toy_plugin.tokenize([text[::-1] for text in texts])

    build = toy_registry.backbone("toy-clip").factory.__globals__["Backbone"]
    module = toy_registry.backbone("toy-clip").factory.__globals__

    def other(*arguments, **options):
        return build(*arguments, **options | {"tokenizer": Reversed()})

    monkeypatch.setitem(module, "Backbone", other)
    assert not torch.equal(embedded(), first)


def test_the_code_of_the_backbone_is_part_of_the_id(toy_registry):
    job = identify(request_on("toy-1shot"), toy_registry)
    assert set(job.code) == {"method", "scenario", "backbone"}
