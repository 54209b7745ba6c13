"""The published sizes of data sets, as streams without images."""

from __future__ import annotations

import pytest

from fsdil_bench.data.published.outline import outlined_stream
from fsdil_bench.data.stream_request import StreamRequest
from fsdil_bench.errors import DataError
from fsdil_bench.plugins.registry import load_registry

REGISTRY = load_registry()
#: The domains and classes of the last follow from the files: without them they are not known.
PUBLISHED = [
    info.name
    for info in REGISTRY.scenarios.values()
    if info.source is not None and info.name != "imagenet-r"
]


def outlined(scenario, **options):
    return outlined_stream(StreamRequest.of(scenario=scenario, **options), REGISTRY)


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_published_data_set_has_one(name):
    stream = outlined(f"{name}-4shot")
    info = REGISTRY.scenario(name)
    assert tuple(domain.name for domain in stream.domains) == info.domains
    assert len(stream.class_names) == info.classes
    assert {len(domain.train) for domain in stream.domains[1:]} == {4 * info.classes}


def test_without_one_images_are_asked_for():
    with pytest.raises(DataError, match="'imagenet-r' does not say how many images"):
        outlined("imagenet-r-4shot")


def test_sizes_are_those_of_the_variant():
    plain, blocks, sessions = (
        outlined(f"core50-1shot{variant}") for variant in ("", "@blocks", "@sessions")
    )
    assert len(plain.domains[0].train) + len(plain.domains[0].test) == 14989
    assert len(blocks.domains[0].train) == len(plain.domains[0].train) - 50 * 20
    assert [len(samples) for _, samples in sessions.unseen] == [14992, 14994, 14986]
    assert not plain.unseen
    validation = outlined("core50-1shot@validation")
    assert len(validation.domains[0].train) == pytest.approx(
        0.6 * len(plain.domains[0].train), 1e-3
    )


def test_order_and_limits_count():
    stream = outlined("cddb-hard-2shot", order=("san", "wild"), base_limit=10)
    assert [(d.name, len(d.train), len(d.test)) for d in stream.domains] == [
        ("san", 20, 90),
        ("wild", 4, 2063),
    ]


def test_there_are_no_images():
    samples = outlined("pacs-1shot").domains[0].train
    with pytest.raises(DataError, match="made up"):
        samples.load(samples.ids[0])


def test_a_scenario_without_one_says_what_to_do():
    with pytest.raises(DataError, match="--data"):
        outlined("folder-1shot")
