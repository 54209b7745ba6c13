from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from fsdil_methods.towers.class_attention import ClassAttention
from fsdil_methods.towers.dytox import DyTox, DyToxReplay, herd
from tiny_world import copied
from tower_world import (
    BLOCKS,
    CLASSES,
    QUICK,
    TOKENS,
    TRAINED_HEAD,
    WIDTH,
    TowerWorld,
    random_batch,
)

from fsdil_bench import PluginError
from fsdil_bench.adapters import image_tokens, tower_blocks

SMALL: dict[str, Any] = QUICK | {"lr": 1e-3}


def close(one: torch.Tensor, other: torch.Tensor) -> bool:
    return torch.allclose(one, other, rtol=1e-4, atol=1e-4 * float(other.abs().max()))


def test_tokens_do_not_see_each_other(tower_world: TowerWorld) -> None:
    method = tower_world.learn(tower_world.method(DyTox, **SMALL), 2)
    x = method.entering(random_batch().images)
    assert x.shape == (9, TOKENS, WIDTH)
    before = method.read(x, method.block_weights())
    method.add({"token": torch.randn(WIDTH)}, "domains.2.")
    after = method.read(x, method.block_weights())
    assert after.shape == (9, 3, WIDTH)
    assert torch.allclose(after[:, :2], before, atol=1e-6)


def test_class_attention_is_that_of_torch(tower_world: TowerWorld) -> None:
    """Each token in a sequence of its own, through torch's attention."""
    block = tower_blocks(tower_world.backbone.model.visual)[-1]
    tokens, x = torch.randn(4, 3, WIDTH), torch.randn(4, 6, WIDTH)
    found = ClassAttention(block)(tokens, x)
    for t, token in enumerate(tokens.unbind(1)):
        together = block.ln_1(torch.cat([token[:, None], x], 1))
        out, _ = block.attn(together[:, :1], together, together)
        out = token + out[:, 0]
        out = out + block.mlp(block.ln_2(out))
        assert close(found[:, t], out)


def test_untrained_it_is_clip(tower_world: TowerWorld) -> None:
    method = tower_world.learn(tower_world.method(DyTox, **SMALL | {"base_epochs": 0}), 1)
    batch, visual = random_batch(), method.visual
    plain = image_tokens(visual, batch.images).tokens[:, 0]
    assert close(method.features(batch), plain)
    # So is what the head reads.
    normed = visual.ln_post(plain)
    expected = F.linear(
        normed, *(method.weights[f"domains.0.head.{k}"] for k in ("weight", "bias"))
    )
    assert close(method.logits(method.features(batch)[:, None]), expected)


def test_a_token_can_stand_alone(tower_world: TowerWorld) -> None:
    """Then the class token of an image does not matter."""
    for alone in (True, False):
        config = SMALL | {"class_token": not alone}
        method = tower_world.learn(tower_world.method(DyTox, **config), 1)
        x = method.entering(random_batch().images)
        other = torch.cat([torch.randn(9, 1, WIDTH), x[:, 1:]], 1)
        found = [method.read(each, method.block_weights()) for each in (x, other)]
        assert torch.equal(*found) == alone


def test_earlier_tokens_and_heads_stay(tower_world: TowerWorld) -> None:
    method = tower_world.method(DyTox, **SMALL)
    for t in range(3):
        before = copied(method)
        method.learn(tower_world.domain(t))
        old = [name for name in before if name.startswith("domains.")]
        assert len(old) == 5 * t
        assert all(torch.equal(before[name], method.weights[name]) for name in old)
        moved = [n for n in before if n.startswith("block.")]
        assert not any(torch.equal(before[name], method.weights[name]) for name in moved)


def test_one_domain_is_a_plain_classifier(tower_world: TowerWorld) -> None:
    """A first step of AdamW goes against the sign of the gradient of plain BCE."""
    config = SMALL | {"batch_size": 999, "augment": False, "weight_decay": 0.0}
    method = tower_world.method(DyTox, **config)
    domain = tower_world.domain(0)
    start = method.new_parts(domain)
    reader = ClassAttention(tower_blocks(method.visual)[-1]).requires_grad_()
    x = method.entering(domain.images())
    out = reader(x[:, :1] + start["token"], x[:, 1:])[:, 0]
    normed = F.layer_norm(out, (WIDTH,), start["norm.weight"], start["norm.bias"])
    logits = normed @ start["head.weight"].T + start["head.bias"]
    assert torch.allclose(start["head.bias"].sigmoid(), torch.tensor(1 / CLASSES))
    wanted = F.one_hot(domain.labels, CLASSES).float()
    p = logits.sigmoid()
    (-(wanted * p.log() + (1 - wanted) * (1 - p).log()).mean()).backward()
    method.learn(tower_world.domain(0))
    for name, old in reader.named_parameters():
        assert old.grad is not None
        clear = old.grad.abs() > 1e-5
        expected = old.detach() - 1e-3 * old.grad.sign()
        torch.testing.assert_close(method.weights[name][clear], expected[clear], atol=1e-5, rtol=0)


def test_the_first_token_is_the_mean_class_token(tower_world: TowerWorld) -> None:
    method, domain = tower_world.method(DyTox, **SMALL), tower_world.domain(0)
    entering = image_tokens(method.visual, domain.images(), depth=BLOCKS - 1).tokens[:, 0]
    assert close(method.mean_class_token(domain), entering.mean(0))


def test_later_parts_start_from_those_before(tower_world: TowerWorld) -> None:
    method = tower_world.learn(tower_world.method(DyTox, **SMALL | {"steps": 0}), 2)
    for part in ("token", "norm.weight", "norm.bias", "head.weight", "head.bias"):
        one, two = (method.weights[f"domains.{t}.{part}"] for t in range(2))
        assert torch.equal(one, two)
        assert one is not two


def test_the_distillation_is_nothing_at_the_start(tower_world: TowerWorld) -> None:
    method = tower_world.learn(tower_world.method(DyTox, **SMALL | {"steps": 0}), 2)
    tokens, before = method.entering(random_batch().images), method.block_weights()
    places = torch.arange(9) % CLASSES + CLASSES
    logits = method.logits(method.read(tokens, before))
    bce = F.binary_cross_entropy_with_logits(logits, F.one_hot(places, 8).float())
    assert close(method.classified(logits, places, tokens, before), 0.5 * bce)
    # Where the block has changed, it is the mean over elements of p log(p / q).
    moved = logits + torch.randn(9, 8, generator=torch.Generator().manual_seed(0))
    p, q = logits[:, :4].softmax(1), moved[:, :4].softmax(1)
    bce = F.binary_cross_entropy_with_logits(moved, F.one_hot(places, 8).float())
    expected = 0.5 * bce + 0.5 * (p * (p / q).log()).mean()
    assert close(method.classified(moved, places, tokens, before), expected)


@pytest.mark.parametrize("decision", ["max", "logsumexp"])
def test_the_decision(tower_world: TowerWorld, decision: str) -> None:
    method = tower_world.learn(tower_world.method(DyTox, **SMALL, decision=decision))
    batch = random_batch(30)
    outputs = method.features(batch).view(30, 3, WIDTH)
    logits = method.logits(outputs)
    expected = logits.argmax(1) % CLASSES
    if decision == "logsumexp":
        expected = logits.exp().view(30, 3, CLASSES).sum(1).argmax(1)
    assert torch.equal(method.predict(batch), expected)
    assert torch.equal(method.embed(batch), outputs[:, -1])


def test_what_is_trained(tower_world: TowerWorld) -> None:
    block = sum(v.numel() for v in tower_blocks(tower_world.backbone.model.visual)[-1].parameters())
    own = WIDTH + 2 * WIDTH + TRAINED_HEAD
    method = tower_world.method(DyTox, **SMALL)
    for t in range(3):
        method.learn(tower_world.domain(t))
        assert method.trained_parameters() == block + own
        stored = sum(value.numel() for value in method.state_dict().values())
        assert stored == block + (t + 1) * own


# --- with a memory ---


def replaying(world: TowerWorld, t: int) -> Any:
    domain = world.domain(t)
    domain._earlier = tuple(world.domain(s) for s in range(t))
    return domain


def test_a_memory_has_to_be_declared(tower_world: TowerWorld) -> None:
    with pytest.raises(PluginError, match="images of earlier domains"):
        tower_world.run(tower_world.method(DyToxReplay, **SMALL), exemplar_free=True)


def test_it_keeps_nothing_of_the_memory(tower_world: TowerWorld) -> None:
    method = tower_world.method(DyToxReplay, **SMALL)
    for t in range(3):
        method.learn(replaying(tower_world, t))
    plain = tower_world.learn(tower_world.method(DyTox, **SMALL))
    assert method.state_dict().keys() == plain.state_dict().keys()
    assert method._memory == []


def test_memory_is_shared_by_domains_and_classes(tower_world: TowerWorld) -> None:
    method = tower_world.method(DyToxReplay, **SMALL, kept_images=24)
    sizes = [len(kept) for _, kept in method.memory(replaying(tower_world, 2))]
    assert sizes == [3 * CLASSES, 2 * CLASSES]  # the second domain has only two of a class


def test_old_images_are_in_every_step(tower_world: TowerWorld) -> None:
    method = tower_world.method(DyToxReplay, **SMALL)
    method.learn(replaying(tower_world, 0))
    method._memory = method.memory(replaying(tower_world, 2))
    method._drawn = torch.Generator().manual_seed(0)
    parts = list(method.replayed(8))
    assert [len(part.labels) for part in parts] == [4, 4]
    for (_, kept), part in zip(method._memory, parts, strict=True):
        assert set(part.positions.tolist()) <= set(kept.tolist())


def test_herding_follows_the_mean() -> None:
    features = torch.tensor([[0.0], [10.0], [4.0], [5.5], [1.0], [3.0]])
    labels = torch.tensor([0, 0, 0, 0, 1, 1])  # means 4.875 and 2
    # 5.5 is nearest; then 4 makes 4.75; then 0 makes 3.17 and 10 makes 6.5.
    assert herd(features, labels, 2, 3).tolist() == [3, 2, 1, 4, 5]
    assert herd(features, labels, 2, 1).tolist() == [3, 4]
