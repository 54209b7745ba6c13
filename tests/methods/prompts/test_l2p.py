from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from fsdil_methods.prompts.l2p import L2P
from tiny_world import copied
from tower_world import BLOCKS, DIM, QUICK, TRAINED_HEAD, WIDTH, TowerWorld, random_batch

from fsdil_bench import RequestError
from fsdil_bench.adapters import BlockAdapter, image_tokens

SMALL: dict[str, Any] = QUICK | {"pool_size": 6, "prompt_length": 2, "prompts_per_image": 3}


def close(one: torch.Tensor, other: torch.Tensor) -> bool:
    return torch.allclose(one, other, rtol=1e-4, atol=1e-4 * float(other.abs().max()))


@pytest.mark.parametrize("head", ["linear", "text"])
def test_the_order_of_the_pool_does_not_matter(tower_world: TowerWorld, head: str) -> None:
    method = tower_world.learn(tower_world.method(L2P, **SMALL, head=head), 2)
    before = method.logits(method.features(random_batch()))
    order = torch.randperm(6, generator=torch.Generator().manual_seed(1))
    for name in ("keys", "prompts"):
        method.weights[name] = method.weights[name][order]
    assert close(method.logits(method.features(random_batch())), before)


def test_every_image_picks_for_itself(tower_world: TowerWorld) -> None:
    """Not only the predictions: the prompts are those of the image alone, by the formula."""
    method = tower_world.method(L2P, **SMALL)
    batch = random_batch(20)
    _, picked = method.pick(batch.features)
    keys = F.normalize(method.weights["keys"], dim=1)
    for query, own in zip(batch.features, picked, strict=True):
        similar = [float(query @ key) for key in keys]
        assert set(own.tolist()) == set(sorted(range(6), key=lambda i: -similar[i])[:3])
    assert len({tuple(sorted(own)) for own in picked.tolist()}) > 3, "a vote would show nothing"
    whole = method.features(batch)
    for rows in (torch.tensor([4]), torch.tensor([17, 2, 9])):
        assert torch.equal(method.features(batch.select(rows)), whole[rows])


@pytest.mark.parametrize("head_input", ["prompts", "class"])
@pytest.mark.parametrize("before_norm", [True, False])
def test_a_pool_that_is_picked_whole_is_a_static_prompt(
    tower_world: TowerWorld, head_input: str, before_norm: bool
) -> None:
    """Shallow visual prompts, sent by hand through open_clip's own transformer."""
    method = tower_world.method(
        L2P,
        pool_size=3,
        prompts_per_image=3,
        prompt_length=2,
        head_input=head_input,
        before_norm=before_norm,
    )
    visual, batch = method.visual, random_batch()
    prompt = method.weights["prompts"].flatten(0, 1).expand(len(batch), -1, -1)
    patches = visual.conv1(batch.images).flatten(2).transpose(1, 2)
    x = torch.cat([visual.class_embedding.expand(len(batch), 1, -1), patches], 1)
    x = x + visual.positional_embedding
    if before_norm:
        x = visual.ln_pre(torch.cat([x[:, :1], prompt, x[:, 1:]], 1))
    else:
        x = visual.ln_pre(x)
        x = torch.cat([x[:, :1], prompt, x[:, 1:]], 1)
    x = visual.ln_post(visual.transformer(x))
    expected = x[:, 1:7].mean(1) if head_input == "prompts" else x[:, 0]
    assert close(method.features(batch), expected)


def test_keys_learn_from_the_pull_alone(tower_world: TowerWorld) -> None:
    method = tower_world.method(L2P, **SMALL)
    batch, labels = random_batch(), torch.arange(9) % 4
    for weight in method.weights.values():
        weight.requires_grad_()
    logits = method.logits(method.encode(batch.images, batch.features))
    F.cross_entropy(logits, labels).backward()
    assert method.weights["keys"].grad is None
    unpicked = set(range(6)) - set(method.pick(batch.features)[1].flatten().tolist())
    moving = method.weights["prompts"].grad.flatten(1).abs().amax(1)
    assert all((moving[i] == 0) == (i in unpicked) for i in range(6))
    method.pick(batch.features)[0].sum().backward()
    assert method.weights["keys"].grad.abs().sum() > 0


def test_without_pull_keys_stay(tower_world: TowerWorld) -> None:
    still, pulled = (tower_world.method(L2P, **SMALL, key_weight=weight) for weight in (0.0, 1.0))
    start = still.weights["keys"].clone()
    for method in (still, pulled):
        tower_world.learn(method, 2)
    assert torch.equal(still.weights["keys"], start)
    assert not torch.equal(pulled.weights["keys"], start)


def test_the_pull_brings_picked_keys_closer(tower_world: TowerWorld) -> None:
    method = tower_world.method(L2P, **SMALL | {"key_weight": 1.0, "base_epochs": 5})
    queries = tower_world.domain(0).features()
    before = method.pick(queries)[0].mean()
    method.learn(tower_world.domain(0))
    assert method.pick(queries)[0].mean() > before + 0.05


def test_prompts_that_nobody_picks_never_learn(tower_world: TowerWorld) -> None:
    """The record shows it."""
    method = tower_world.method(L2P, **SMALL | {"prompts_per_image": 1, "key_weight": 0.0})
    start = method.weights["prompts"].clone()
    method.learn(tower_world.domain(0))
    usage = method.diagnostics()["usage"]
    assert sum(usage) == pytest.approx(1, abs=0.01)
    moved = [not torch.equal(a, b) for a, b in zip(start, method.weights["prompts"], strict=True)]
    assert moved == [share > 0 for share in usage]
    assert not all(moved)


def test_what_is_trained(tower_world: TowerWorld) -> None:
    linear, text = (tower_world.method(L2P, **SMALL, head=head) for head in ("linear", "text"))
    pool = 6 * DIM + 6 * 2 * WIDTH
    for method, expected in ((linear, pool + TRAINED_HEAD), (text, pool)):
        before = copied(method)
        for t in range(3):
            method.learn(tower_world.domain(t))
            assert method.trained_parameters() == expected
            assert sum(value.numel() for value in method.state_dict().values()) == expected
        after = copied(method)
        assert not any(torch.equal(before[name], after[name]) for name in before)
        assert not any(value.requires_grad for value in after.values())


def test_all_classes_can_win_in_every_domain(tower_world: TowerWorld) -> None:
    """There is no class mask: a domain that shows one class still moves the logits of all."""
    method = tower_world.method(L2P, **SMALL)
    one_class = tower_world.domain(0, range(0, 60, 4))
    assert set(one_class.labels.tolist()) == {0}
    before = method.weights["head.bias"].clone()
    method.learn(one_class)
    change = method.weights["head.bias"] - before
    assert change[0] > 0
    assert (change[1:] < 0).all()


def test_text_head_on_the_class_token_is_the_prompted_clip(tower_world: TowerWorld) -> None:
    method = tower_world.method(L2P, **SMALL, head="text", head_input="class")
    batch = random_batch()
    prompts = method.weights["prompts"][method.pick(batch.features)[1]].flatten(1, 2)
    adapters = [BlockAdapter(tokens=method.visual.ln_pre(prompts))]
    adapters += [BlockAdapter()] * (BLOCKS - 1)
    tokens = image_tokens(method.visual, batch.images, adapters).tokens
    z = F.normalize(method.visual.ln_post(tokens[:, 0]) @ method.visual.proj, dim=1)
    scale = tower_world.backbone.logit_scale
    assert close(method.logits(method.features(batch)), scale * z @ method.text.text.T)
    assert close(method.embed(batch), z)


def test_a_top_larger_than_the_pool_is_refused(tower_world: TowerWorld) -> None:
    with pytest.raises(RequestError, match="pool of 2"):
        tower_world.method(L2P, pool_size=2, prompts_per_image=3)


def test_text_head_needs_texts(tmp_path: Any) -> None:
    blind = TowerWorld(tmp_path, text=False)
    with pytest.raises(RequestError, match="text tower"):
        blind.method(L2P, head="text")
