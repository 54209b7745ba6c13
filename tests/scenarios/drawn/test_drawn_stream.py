"""The stream of the drawn world, and its variant for choosing options."""

from __future__ import annotations

import json

import numpy as np
import pytest
from fsdil_scenarios.drawn.build import build, load
from fsdil_scenarios.drawn.world import CLASSES, DOMAINS, VALIDATION_DOMAINS, draw

from fsdil_bench import ScenarioRequest, load_stream
from fsdil_bench.errors import RequestError
from fsdil_bench.plugins.registry import load_registry
from fsdil_bench.runs.request import RunRequest
from fsdil_bench.runs.tuning import tune


@pytest.fixture(scope="module")
def streams():
    return {variant: build(ScenarioRequest(variant)) for variant in ("", "validation")}


def sizes(stream) -> dict[str, tuple[int, int]]:
    """Training and test pictures of every class, equally many of each."""
    found = {}
    for domain in stream.domains:
        counts = [np.bincount(part.labels, minlength=24) for part in (domain.train, domain.test)]
        assert all(len(set(part.tolist())) == 1 for part in counts)
        found[domain.name] = tuple(int(part[0]) for part in counts)
    return found


def ids(stream) -> list[str]:
    return [i for d in stream.domains for part in (d.train, d.test) for i in part.ids]


def test_the_descriptor_agrees_with_the_stream(streams):
    info = load_registry().scenario("drawn")
    assert info.domains == tuple(d.name for d in streams[""].domains) == DOMAINS
    assert info.classes == len(streams[""].class_names) == 24
    assert set(info.variants) == {"validation"}


def test_sizes_of_the_stream(streams):
    assert sizes(streams[""]) == dict.fromkeys(DOMAINS, (100, 20))


def test_validation_is_the_base_and_then_two_styles_of_its_own(streams):
    assert list(sizes(streams["validation"]).items()) == [
        ("real", (100, 20)),
        ("woodcut", (40, 20)),
        ("pixel art", (40, 20)),
    ]
    assert not {"woodcut", "pixel art"} & {i.split("/")[0] for i in ids(streams[""])}


def test_validation_shows_no_picture_of_the_stream(streams):
    stream, validation = ids(streams[""]), ids(streams["validation"])
    assert len({*stream, *validation}) == len(stream) + len(validation)
    assert {i.split("/")[1] for i in stream} == {"train", "test"}
    assert {i.split("/")[1] for i in validation} == {"validation"}
    first = [part.ids[::100] for d in streams[""].domains[:1] for part in (d.train, d.test)]
    first += [part.ids[::40] for d in streams["validation"].domains for part in (d.train, d.test)]
    pictures = [load(sample_id).tobytes() for part in first for sample_id in part]
    assert len(set(pictures)) == len(pictures)


def test_validation_shows_no_picture_that_the_embedded_model_was_chosen_on(streams):
    from fsdil_scenarios.tiny_clip.captions import STYLES
    from fsdil_scenarios.tiny_clip.pretrain import VALIDATION_PER_CLASS
    from fsdil_scenarios.tiny_clip.profile import FIRST_SHOT, SHOTS

    chosen_on = {*range(40), *range(VALIDATION_PER_CLASS), *range(FIRST_SHOT, FIRST_SHOT + SHOTS)}
    assert not chosen_on & {int(i.split("/")[3]) for i in ids(streams["validation"])}
    assert not set(VALIDATION_DOMAINS) & set(STYLES)


def test_an_id_names_its_picture(streams):
    for stream in streams.values():
        for domain in stream.domains:
            style, split, name, index = domain.test.ids[-1].split("/")
            assert (style, name) == (domain.name, CLASSES[domain.test.labels[-1]])
            np.testing.assert_array_equal(
                domain.test.load(domain.test.ids[-1]), draw(name, style, int(index), split=split)
            )


@pytest.mark.parametrize("shots", [1, 8])
def test_shots_are_drawn_by_the_seed(shots):
    one, other = (load_stream(f"drawn-{shots}shot@validation", seed=s) for s in (0, 1))
    assert [len(d.train) for d in one.domains] == [2400, 24 * shots, 24 * shots]
    for a, b in zip(one.domains[1:], other.domains[1:], strict=True):
        assert a.train.ids != b.train.ids
        assert a.test.ids == b.test.ids


def test_base_and_order_name_domains_of_the_variant():
    stream = load_stream("drawn-2shot@validation", base="pixel art")
    assert [d.name for d in stream.domains] == ["pixel art", "real", "woodcut"]
    assert [len(d.train) for d in stream.domains] == [960, 48, 48]
    stream = load_stream("drawn-2shot@validation", order=("woodcut", "real"))
    assert [d.name for d in stream.domains] == ["woodcut", "real"]
    with pytest.raises(RequestError, match="'sketch'"):
        load_stream("drawn-2shot@validation", base="sketch")


def test_options_are_chosen_on_it(drawn_cache, tmp_path):
    request = RunRequest.of(method="ncm", scenario="drawn-1shot", base_limit=5)
    choice = tune(
        request, load_registry(), option="mode", values=["running", "balanced"], out=tmp_path
    )
    assert choice.scenario == "drawn-1shot@validation"
    assert choice.images == 3 * 480
    assert min(choice.scores) > 3 * 100 / 24
    for file in tmp_path.rglob("record.json"):
        record = json.loads(file.read_text())
        assert record["spec"]["order"] == ["real", "woodcut", "pixel art"]
