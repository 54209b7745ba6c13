from __future__ import annotations

from statistics import fmean

import numpy as np
import open_clip
import pytest
from fsdil_methods.frozen.imagenet_templates import IMAGENET_TEMPLATES
from fsdil_methods.frozen.zero_shot import ZeroShot
from tiny_world import CLASSES, TESTS, World

from fsdil_bench import RequestError, scores


def test_nearest_name(world: World) -> None:
    method = world.method(ZeroShot)
    text = world.backbone.encode_text([f"a photo of a {name}." for name in CLASSES]).numpy()
    z = np.concatenate([world.features(t, "test")[0] for t in range(3)])
    assert world.predict(method) == (z @ text.T).argmax(1).tolist()


def test_permuting_classes_permutes_predictions(world: World) -> None:
    order = [2, 0, 3, 1]
    permuted = World(world.folder / "permuted", class_names=[CLASSES[i] for i in order])
    predicted = world.predict(world.method(ZeroShot))
    assert [order[i] for i in permuted.predict(permuted.method(ZeroShot))] == predicted
    assert len(set(predicted)) > 1


def test_ensemble_is_the_direction_of_the_mean(world: World) -> None:
    templates = ("a photo of a {}.", "{} drawn by hand")
    text = world.method(ZeroShot, templates=templates).text.numpy()
    parts = [
        world.backbone.encode_text([t.format(name) for name in CLASSES]).numpy() for t in templates
    ]
    mean = (parts[0] + parts[1]) / 2
    np.testing.assert_allclose(text, mean / np.linalg.norm(mean, axis=1, keepdims=True), atol=1e-6)
    assert np.abs(text - parts[0]).max() > 1e-3


def test_one_template_and_its_double_are_the_same(world: World) -> None:
    one, two = (world.method(ZeroShot, templates=("a {}.",) * n).text.numpy() for n in (1, 2))
    alone = world.backbone.encode_text([f"a {name}." for name in CLASSES]).numpy()
    np.testing.assert_allclose(one, alone, atol=1e-7)
    np.testing.assert_allclose(two, one, atol=1e-7)


def test_nothing_is_forgotten(world: World) -> None:
    outcome = world.run(world.method(ZeroShot))
    last = outcome.matrix[-1]
    assert len(set(last)) > 1, "equal accuracies would show nothing"
    assert outcome.matrix == [last[:1], last[:2], last]
    result = scores(outcome.matrix, [TESTS * len(CLASSES)] * 3)
    assert result["FA*"] == pytest.approx(fmean(last[:2]))
    assert outcome.state_bytes == [0, 0, 0]


@pytest.mark.parametrize("templates", [(), ("a photo",)])
def test_useless_templates_are_refused(world: World, templates: tuple[str, ...]) -> None:
    with pytest.raises(RequestError):
        world.method(ZeroShot, templates=templates)


def test_the_80_templates_are_the_published_ones() -> None:
    published = [template("{}") for template in open_clip.OPENAI_IMAGENET_TEMPLATES]
    assert len(IMAGENET_TEMPLATES) == len(published) == 80
    assert set(IMAGENET_TEMPLATES) == set(published)
