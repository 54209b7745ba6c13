from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from fsdil_methods.frozen.zero_shot import ZeroShot
from fsdil_methods.prompts.coop import CoOp
from fsdil_methods.text_classifier import class_embeddings
from small_clip import CONTEXT, WIDTH, ClipWorld
from tiny_world import copied, same

from fsdil_bench import RequestError

FAST: dict[str, Any] = {"context_length": 4, "batch_size": 16, "base_epochs": 1, "steps": 3}


def test_words_for_a_start_are_zero_shot(clip_world: ClipWorld) -> None:
    method = clip_world.method(CoOp, **FAST | {"base_epochs": 0, "steps": 0},
                               context_words="a photo of a")  # fmt: skip
    expected = class_embeddings(method.context)
    torch.testing.assert_close(method.classifier(), expected, atol=1e-5, rtol=0)
    clip_world.learn(method)
    assert clip_world.predict(method) == clip_world.predict(clip_world.method(ZeroShot))


def test_training_lowers_the_loss(clip_world: ClipWorld) -> None:
    method = clip_world.method(CoOp, **FAST | {"base_epochs": 10, "lr": 0.1, "augment": False})
    domain, losses = clip_world.domain(0), []
    for _ in range(2):
        logits = method.context.backbone.logit_scale * domain.features() @ method.classifier().T
        losses.append(float(F.cross_entropy(logits, domain.labels)))
        method.learn(clip_world.domain(0))
    assert losses[1] < 0.9 * losses[0]


def test_a_step_is_sgd_on_the_cross_entropy(clip_world: ClipWorld) -> None:
    config = FAST | {"base_epochs": 1, "batch_size": 999, "augment": False, "weight_decay": 0.0}
    method = clip_world.method(CoOp, **config, lr=0.01)
    domain, vectors = clip_world.domain(0), method.vectors.clone().requires_grad_()
    model: Any = clip_world.backbone.model
    # Word by word, without the tree: the embeddings of all texts with the context in their midst.
    tokens = clip_world.backbone.tokenizer([f"{n}." for n in clip_world.stream.class_names])
    words = model.token_embedding(tokens)
    context = vectors.expand(len(words), -1, -1)
    x = torch.cat([words[:, :1], context, words[:, 1 : CONTEXT - len(vectors)]], 1)
    x = model.transformer(x + model.positional_embedding, attn_mask=model.attn_mask)
    ends = tokens.argmax(-1) + len(vectors)
    text = model.ln_final(x)[torch.arange(len(x)), ends] @ model.text_projection
    logits = model.logit_scale.exp() * domain.features() @ F.normalize(text, dim=-1).T
    F.cross_entropy(logits, domain.labels).backward()
    method.learn(clip_world.domain(0))
    torch.testing.assert_close(method.vectors, vectors.detach() - 0.01 * vectors.grad)


def test_one_context_goes_through_the_stream(clip_world: ClipWorld) -> None:
    method = clip_world.method(CoOp, **FAST)
    states = []
    for t in range(3):
        method.learn(clip_world.domain(t))
        states.append(copied(method))
    assert not same(states[0], states[1])
    assert not same(states[1], states[2])
    still = clip_world.method(CoOp, **FAST | {"steps": 0})
    for t in range(3):
        still.learn(clip_world.domain(t))
        assert same(copied(still), states[0]), "it begins where the domain before ended"


def test_all_numbers_of_the_context_are_trained(clip_world: ClipWorld) -> None:
    outcome = clip_world.run(clip_world.method(CoOp, **FAST))
    assert outcome.trained_parameters == [4 * WIDTH] * 3
    assert outcome.state_bytes == [4 * WIDTH * 4] * 3


def test_a_stopped_run_continues_identically(clip_world: ClipWorld) -> None:
    whole = clip_world.method(CoOp, **FAST)
    clip_world.run(whole, "whole")
    clip_world.run(clip_world.method(CoOp, **FAST), "stopped", domains=1)
    resumed = clip_world.method(CoOp, **FAST)
    clip_world.run(resumed, "stopped")
    assert same(copied(whole), copied(resumed))


def test_too_long_a_context_is_refused(clip_world: ClipWorld) -> None:
    with pytest.raises(RequestError, match="do not fit") as caught:
        clip_world.method(CoOp, context_length=18)
    assert "Set context_length to 16 or less." in caught.value.remedy
    clip_world.method(CoOp, context_length=16)


def test_it_needs_a_text_tower(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="text tower"):
        ClipWorld(tmp_path, text=False).method(CoOp)
