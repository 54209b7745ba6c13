from __future__ import annotations

from typing import Any

import torch
from fsdil_methods.prompts.s_prompts import SPrompts
from small_clip import WIDTH, ClipWorld

from fsdil_bench.adapters import encode_image

FAST: dict[str, Any] = {"context_length": 4, "batch_size": 16, "base_epochs": 1, "steps": 2}


def test_prompts_come_after_the_class_token_before_the_first_norm(clip_world: ClipWorld) -> None:
    """Against open_clip's own transformer on tokens that are put together by hand."""
    method = clip_world.method(SPrompts, **FAST, prompt_length=3)
    prompts = method.new_image_prompts(0)
    visual: Any = clip_world.backbone.model.visual
    images = clip_world.test_batch().images[:5]
    patches = visual.conv1(images).flatten(2).mT
    first = visual.class_embedding.expand(len(images), 1, -1)
    x = torch.cat([first, patches], 1) + visual.positional_embedding
    x = torch.cat([x[:, :1], prompts["image"].expand(len(images), -1, -1), x[:, 1:]], 1)
    x = visual.transformer(visual.ln_pre(x))
    expected = visual.ln_post(x[:, 0]) @ visual.proj
    found = encode_image(visual, images, method.image_adapters(prompts))
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)
    plain = clip_world.backbone.model.encode_image(images)
    assert not found.allclose(plain, atol=1e-3), "random prompts are no no-op"


def test_without_image_prompts_it_is_the_plain_tower(clip_world: ClipWorld) -> None:
    method = clip_world.method(SPrompts, **FAST, prompt_length=0)
    images = clip_world.test_batch().images
    assert method.new_image_prompts(0) == {}
    found = encode_image(method.visual, images, method.image_adapters({}))
    torch.testing.assert_close(found, clip_world.backbone.model.encode_image(images))


def test_prompts_start_like_a_linear_layer(clip_world: ClipWorld) -> None:
    method = clip_world.method(SPrompts, **FAST, prompt_length=200)
    tokens = method.new_image_prompts(0)["image"]
    bound = WIDTH**-0.5
    assert 0.99 * bound < tokens.abs().max() <= bound
    assert not tokens.equal(method.new_image_prompts(1)["image"])


def test_the_size_on_vit_b_16() -> None:
    """10 tokens of width 768 and 16 context vectors of width 512."""
    config = SPrompts.Config()
    assert config.prompt_length * 768 + config.context_length * 512 == 15_872
