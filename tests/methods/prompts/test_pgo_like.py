from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from fsdil_methods.prompts.pgo_like import PGOLike, not_orthogonal
from fsdil_methods.text_classifier import class_embeddings
from small_clip import ClipWorld
from tiny_world import copied

from fsdil_bench import RequestError
from fsdil_bench.adapters import BlockAdapter, encode_image, encode_text

SMALL: dict[str, Any] = {
    "base_epochs": 1, "steps": 3, "batch_size": 16, "prompt_length": 2, "lr": 0.1,
}  # fmt: skip


def test_without_prompts_it_is_zero_shot(clip_world: ClipWorld) -> None:
    for share in (0.0, 2.0):
        config = SMALL | {"prompt_length": 0, "beta_zero_shot": share}
        method = clip_world.learn(clip_world.method(PGOLike, **config))
        batch = clip_world.test_batch()
        text = class_embeddings(method.context)
        assert torch.equal(method.predict(batch), (batch.features @ text.T).argmax(1))
        assert method.trained_parameters() == 0


def test_prompts_are_deep_in_both_towers(clip_world: ClipWorld) -> None:
    """As tokens that are replaced in every block, and that words but not prompts are read at."""
    method = clip_world.learn(clip_world.method(PGOLike, **SMALL), 1)
    batch, prompts = clip_world.test_batch(), method.domains[0]
    image = [BlockAdapter(tokens=each) for each in prompts["image"]]
    expected = F.normalize(encode_image(method.visual, batch.images, image), dim=1)
    assert torch.allclose(method.embed(batch), expected, atol=1e-5)
    text = [BlockAdapter(tokens=each) for each in prompts["text"]]
    names = [f"a photo of a {name}." for name in method.context.class_names]
    tokens = clip_world.backbone.tokenizer(names)  # type: ignore[misc]
    raw = encode_text(clip_world.backbone.model, tokens, text)
    assert torch.allclose(method.text_classifier(prompts), F.normalize(raw, dim=1), atol=1e-5)


def test_disjoint_prompts_are_orthogonal() -> None:
    one, two = (
        {
            name: torch.zeros(2, 3, 4).index_fill(2, torch.tensor([i]), 1.0)
            for name in ("image", "text")
        }
        for i in range(2)
    )
    assert float(not_orthogonal(one, [two])) == 0
    assert float(not_orthogonal(one, [])) == 0
    # Equal ones have a cosine of 1 in each of two blocks and two towers; opposite ones count alike.
    assert float(not_orthogonal(one, [one, two])) == pytest.approx(4)
    opposite = {name: -value for name, value in one.items()}
    assert float(not_orthogonal(one, [opposite])) == pytest.approx(4)


def test_the_penalty_moves_prompts_apart(clip_world: ClipWorld) -> None:
    apart = []
    for weight in (0.0, 5.0):
        config = SMALL | {"orthogonality": weight, "steps": 20, "lr": 0.02}
        method = clip_world.learn(clip_world.method(PGOLike, **config), 2)
        apart.append(float(not_orthogonal(method.domains[1], method.domains[:1])))
    assert apart[1] < 0.8 * apart[0]


def test_the_proxy_keeps_class_names_near(clip_world: ClipWorld) -> None:
    near = []
    for weight in (0.0, 50.0):
        config = SMALL | {"proxy": weight, "base_epochs": 5}
        method = clip_world.learn(clip_world.method(PGOLike, **config), 1)
        text = method.text_classifier(method.domains[0])
        near.append(float(F.cosine_similarity(text, method.zero_shot).mean()))
    assert near[1] > near[0]


def test_the_ends_of_the_ensemble(clip_world: ClipWorld) -> None:
    method = clip_world.learn(clip_world.method(PGOLike, **SMALL))
    batch = clip_world.test_batch()
    prompted = method._embed(batch, 1) @ method.text_classifier(method.domains[1]).T
    plain = batch.features @ method.zero_shot.T
    assert not torch.allclose(prompted, plain, atol=1e-3)
    for share, expected in ((1.0, prompted), (0.0, plain), (0.5, (prompted + plain) / 2)):
        method.share = share
        assert torch.allclose(method.similarity(batch, 1), expected, atol=1e-6)


def test_the_share_is_the_mean_of_a_beta_distribution(clip_world: ClipWorld) -> None:
    method = clip_world.method(PGOLike, **SMALL, beta_prompted=3.0, beta_zero_shot=1.0)
    assert method.share == pytest.approx(float(torch.distributions.Beta(3.0, 1.0).mean))
    with pytest.raises(RequestError, match="both zero"):
        clip_world.method(PGOLike, **SMALL, beta_prompted=0.0, beta_zero_shot=0.0)


def test_earlier_domains_stay_and_later_ones_start_from_the_base(clip_world: ClipWorld) -> None:
    method = clip_world.method(PGOLike, **SMALL)
    for t in range(3):
        before = copied(method)
        method.learn(clip_world.domain(t))
        assert all(torch.equal(before[name], method.state_dict()[name]) for name in before)
    still = clip_world.learn(clip_world.method(PGOLike, **SMALL | {"steps": 0}))
    for name in ("image", "text"):
        assert all(torch.equal(still.domains[0][name], each[name]) for each in still.domains)
