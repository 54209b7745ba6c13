from __future__ import annotations

import numpy as np
import pytest
import toy_plugin

from fsdil_bench import Domain, RequestError, Samples, Stream
from fsdil_bench.data.scenario import ScenarioId, arrange, check_stream
from fsdil_bench.errors import DataError


@pytest.mark.parametrize("text", ["drawn-1shot", "cddb-hard-4shot", "core50-16shot@blocks"])
def test_ids_round_trip(text):
    assert str(ScenarioId.parse(text)) == text


def test_id_parts():
    assert ScenarioId.parse("cddb-hard-4shot@balanced") == ScenarioId("cddb-hard", 4, "balanced")


@pytest.mark.parametrize(
    "text", ["drawn", "drawn-0shot", "drawn-shot", "-1shot", "drawn-1shot@", "a b-1shot"]
)
def test_odd_ids_are_refused(text):
    with pytest.raises(RequestError, match="is not a scenario"):
        ScenarioId.parse(text)


def names(stream):
    return [domain.name for domain in stream.domains]


def test_order_and_base():
    stream = toy_plugin.build_stream()
    assert names(arrange(stream, ["d3", "d1"])) == ["d3", "d1"]
    assert names(arrange(stream, base="d2")) == ["d2", "d0", "d1", "d3"]
    assert names(arrange(stream)) == ["d0", "d1", "d2", "d3"]


def test_unknown_and_double_domains():
    stream = toy_plugin.build_stream()
    with pytest.raises(RequestError, match="'d9'"):
        arrange(stream, ["d0", "d9"])
    with pytest.raises(RequestError, match="twice"):
        arrange(stream, ["d0", "d0"])


def one_domain(labels, test_labels=(0, 1)):
    def part(values, kind):
        ids = tuple(f"{kind}{i}" for i in range(len(values)))
        return Samples(ids, np.array(values), toy_plugin.load)

    domain = Domain("only", part(labels, "a"), part(test_labels, "b"))
    return Stream("s", ("x", "y"), (domain, domain))


def test_a_class_without_enough_images_is_named():
    check_stream(one_domain([0, 1]), 1)
    with pytest.raises(DataError, match="domain 'only' has 1 training images of class 'x'"):
        check_stream(one_domain([0, 1, 1]), 2)
    with pytest.raises(DataError, match="0 test images of class 'y'"):
        check_stream(one_domain([0, 1], [0, 0]), 1)


def test_labels_outside_the_classes():
    with pytest.raises(DataError, match="labels outside"):
        check_stream(one_domain([0, 1, 5]), 1)
