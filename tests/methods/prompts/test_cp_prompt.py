from __future__ import annotations

from typing import Any

import pytest
import torch
from fsdil_methods.prompts.cp_prompt import CPPrompt
from small_clip import WIDTH, ClipWorld
from tiny_world import copied

from fsdil_bench import RequestError
from fsdil_bench.adapters import encode_image
from fsdil_bench.plugins.options import resolve

FAST: dict[str, Any] = {
    "context_length": 4, "batch_size": 16, "base_epochs": 1, "steps": 2, "lr": 0.1,
    "common_length": 2, "blocks": [0, 2], "prefix_length": 4,
}  # fmt: skip


def embeddings(world: ClipWorld, method: Any, prompts: dict[str, torch.Tensor]) -> torch.Tensor:
    images = world.test_batch().images[:6]
    return encode_image(method.visual, images, method.image_adapters(prompts))


@pytest.mark.parametrize("none", [{"blocks": []}, {"prefix_length": 0}])
def test_with_nothing_it_is_the_plain_tower(clip_world: ClipWorld, none: dict[str, Any]) -> None:
    method = clip_world.method(CPPrompt, **FAST | none | {"common_length": 0})
    assert method.new_image_prompts(0) == {}
    plain = clip_world.backbone.model.encode_image(clip_world.test_batch().images[:6])
    torch.testing.assert_close(embeddings(clip_world, method, {}), plain)
    assert clip_world.predict(clip_world.learn(method)), "it can learn all the same"


def test_a_prefix_of_zeros_takes_attention(clip_world: ClipWorld) -> None:
    method = clip_world.method(CPPrompt, **FAST | {"common_length": 0})
    zeros = {name: torch.zeros_like(v) for name, v in method.new_image_prompts(0).items()}
    plain = clip_world.backbone.model.encode_image(clip_world.test_batch().images[:6])
    assert not embeddings(clip_world, method, zeros).allclose(plain, atol=1e-3)


def test_a_prefix_is_normed_and_projected_and_does_not_look(clip_world: ClipWorld) -> None:
    """Against torch's own attention with a longer source for keys and values."""
    method = clip_world.method(CPPrompt, **FAST | {"common_length": 0, "blocks": [1]})
    prompts = method.new_image_prompts(0)
    visual = method.visual
    images = clip_world.test_batch().images[:6]
    first = visual.class_embedding.expand(len(images), 1, -1)
    x = torch.cat([first, visual.conv1(images).flatten(2).mT], 1) + visual.positional_embedding
    x = visual.ln_pre(x)
    for i, block in enumerate(visual.transformer.resblocks):
        source = x
        if i == 1:
            prefix = visual.ln_pre(prompts["prefix.1"]).expand(len(x), -1, -1)
            source = torch.cat([x[:, :1], prefix, x[:, 1:]], 1)
        keys = block.ln_1(source)
        x = x + block.attn(block.ln_1(x), keys, keys, need_weights=False)[0]
        x = x + block.mlp(block.ln_2(x))
    expected = visual.ln_post(x[:, 0]) @ visual.proj
    found = embeddings(clip_world, method, prompts)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)


def test_equal_halves_are_one_prefix(clip_world: ClipWorld) -> None:
    shared = clip_world.method(CPPrompt, **FAST | {"prefix_length": 2})
    split = clip_world.method(CPPrompt, **FAST, key_value_prefix="split")
    prompts = shared.new_image_prompts(0)
    doubled = {k: torch.cat([v, v]) if "prefix" in k else v for k, v in prompts.items()}
    assert doubled.keys() == split.new_image_prompts(0).keys()
    one, other = embeddings(clip_world, shared, prompts), embeddings(clip_world, split, doubled)
    torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)
    prompts = split.new_image_prompts(0)  # with halves that differ
    assert not embeddings(clip_world, split, prompts).allclose(one, atol=1e-3)


def test_the_common_prompt_is_handed_on(clip_world: ClipWorld) -> None:
    method = clip_world.learn(clip_world.method(CPPrompt, **FAST), upto=1)
    after_base = copied(method)
    still = clip_world.method(CPPrompt, **FAST | {"steps": 0})
    still.load_state_dict(after_base)
    still.learn(clip_world.domain(1))
    assert torch.equal(still.domains[1]["common"], after_base["0.common"])
    assert not still.domains[1]["prefix.0"].equal(after_base["0.prefix.0"])
    method.learn(clip_world.domain(1))
    assert not method.domains[1]["common"].equal(after_base["0.common"])
    assert torch.equal(method.domains[0]["common"], after_base["0.common"])


def test_snapshots_keep_old_domains_as_they_were(clip_world: ClipWorld) -> None:
    kept, newest = (clip_world.method(CPPrompt, **FAST, snapshots=s) for s in (True, False))
    for method in (kept, newest):
        clip_world.learn(method)
    assert kept.prompts(0)["common"].equal(kept.domains[0]["common"])
    assert newest.prompts(0)["common"].equal(newest.domains[2]["common"])
    assert newest.prompts(0)["prefix.0"].equal(newest.domains[0]["prefix.0"])


def test_what_does_not_fit_is_refused(clip_world: ClipWorld) -> None:
    with pytest.raises(RequestError, match="has no block 3"):
        clip_world.method(CPPrompt, **FAST | {"blocks": [0, 3]})
    with pytest.raises(RequestError, match="has no halves"):
        clip_world.method(CPPrompt, **FAST | {"prefix_length": 3}, key_value_prefix="split")


@pytest.mark.parametrize(
    ("preset", "size"), [("cddb-hard", 51_200), ("core50", 43_520), ("domainnet", 550_400)]
)
def test_the_published_sizes_on_vit_b_16(preset: str, size: int) -> None:
    config = resolve(CPPrompt.Config, CPPrompt.presets[preset], owner="", see="")
    image = config.common_length + len(config.blocks) * config.prefix_length
    assert image * 768 + config.context_length * 512 == size


def test_the_size_is_counted(clip_world: ClipWorld) -> None:
    method = clip_world.learn(clip_world.method(CPPrompt, **FAST), upto=2)
    assert method.trained_parameters() == (4 + 2 + 2 * 4) * WIDTH
