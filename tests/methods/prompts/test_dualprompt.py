from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from fsdil_methods.prompts.dualprompt import DualPrompt
from tiny_world import copied
from tower_world import BLOCKS, DIM, QUICK, TRAINED_HEAD, WIDTH, TowerWorld, random_batch

from fsdil_bench import Batch, RequestError
from fsdil_bench.adapters import BlockAdapter, encode_image, image_tokens

SMALL: dict[str, Any] = QUICK | {"general_length": 2, "expert_length": 3}


def close(one: torch.Tensor, other: torch.Tensor) -> bool:
    return torch.allclose(one, other, rtol=1e-4, atol=1e-4 * float(other.abs().max()))


def test_empty_prefixes_are_clip(tower_world: TowerWorld) -> None:
    """With prefixes of length 0, not with zeros in them."""
    method = tower_world.learn(tower_world.method(DualPrompt, **SMALL), 1)
    visual, batch, first = method.visual, random_batch(), torch.zeros(9, dtype=torch.long)
    plain = visual.ln_post(image_tokens(visual, batch.images).tokens[:, 0])
    method.weights["general"] = torch.zeros(2, 2, 0, WIDTH)
    method.weights["domains.0.experts"] = torch.zeros(3, 2, 0, WIDTH)
    assert close(method.features_in(batch, first), plain)
    assert close(method.features_in(batch, first) @ visual.proj, encode_image(visual, batch.images))
    method.weights["general"] = torch.zeros(2, 2, 1, WIDTH)
    assert not close(method.features_in(batch, first), plain)


def test_prompts_are_in_front_of_projected_keys_and_values(tower_world: TowerWorld) -> None:
    """Each image alone, with its own domain's experts after the general blocks."""
    method = tower_world.learn(tower_world.method(DualPrompt, **SMALL))
    batch, domains = random_batch(), torch.arange(9) % 3
    whole = method.features_in(batch, domains)
    for i, t in enumerate(domains.tolist()):
        rows = [*method.weights["general"], *method.weights[f"domains.{t}.experts"]]
        adapters = [BlockAdapter(prefix=(pair[0], pair[1])) for pair in rows]
        tokens = image_tokens(method.visual, batch.images[i : i + 1], adapters).tokens
        assert close(whole[i : i + 1], method.visual.ln_post(tokens[:, 0]))
    assert len(rows) == BLOCKS


def test_earlier_domains_stay_bit_identical(tower_world: TowerWorld) -> None:
    method = tower_world.method(DualPrompt, **SMALL)
    for t in range(3):
        before = copied(method)
        method.learn(tower_world.domain(t))
        now = method.state_dict()
        old = [name for name in before if name.startswith("domains.")]
        assert len(old) == 2 * t
        assert all(torch.equal(before[name], now[name]) for name in old)
        shared = ("general", "head.weight", "head.bias")
        assert not any(torch.equal(before[name], now[name]) for name in shared)


def test_experts_start_from_those_before_and_keys_do_not(tower_world: TowerWorld) -> None:
    method = tower_world.learn(tower_world.method(DualPrompt, **SMALL | {"steps": 0}), 2)
    one, two = (method.weights[f"domains.{t}.experts"] for t in range(2))
    assert torch.equal(one, two)
    assert one is not two
    mean = F.normalize(tower_world.domain(1).features().mean(0), dim=0)
    assert close(F.normalize(method.weights["domains.1.key"], dim=0), mean)


def test_a_fresh_optimizer_for_every_domain(tower_world: TowerWorld) -> None:
    """Stale momentum would move experts in a domain without gradients."""
    config = SMALL | {
        "key_weight": 0.0,
        "expert_blocks": 0,
        "general_domains": "base",
        "head": "text",
    }
    method = tower_world.learn(tower_world.method(DualPrompt, **config), 1)
    before = copied(method)
    method.learn(tower_world.domain(1))
    assert all(torch.equal(before[name], method.weights[name]) for name in before)


def test_with_general_prompts_frozen_the_oracle_forgets_nothing(tower_world: TowerWorld) -> None:
    config = SMALL | {"general_domains": "base", "head": "text", "base_epochs": 3}
    outcome = tower_world.run(tower_world.method(DualPrompt, **config))
    for i in range(3):
        assert len({row[i] for row in outcome.oracle_matrix[i:]}) == 1
    assert len(outcome.routing) == 3
    assert outcome.routing[0] == 100


@pytest.mark.parametrize(("general", "head"), [("all", "text"), ("base", "linear")])
def test_shared_parts_are_where_it_forgets(
    tower_world: TowerWorld, general: str, head: str
) -> None:
    config = SMALL | {"general_domains": general, "head": head}
    method = tower_world.method(DualPrompt, **config)
    batch, first = random_batch(), torch.zeros(9, dtype=torch.long)
    logits = []
    for t in range(2):
        method.learn(tower_world.domain(t))
        logits.append(method.logits(method.features_in(batch, first)))
    assert not torch.equal(*logits)


def test_the_router_is_the_largest_cosine(tower_world: TowerWorld) -> None:
    method = tower_world.learn(tower_world.method(DualPrompt, **SMALL))
    batch = random_batch(30)
    keys = [method.weights[f"domains.{t}.key"] for t in range(3)]
    unit = torch.stack([key / key.norm() for key in keys])
    queries = 7.0 * batch.features  # lengths do not count
    expected = (batch.features @ unit.T).argmax(1)
    assert torch.equal(method.predict_domain(Batch(None, queries)), expected)
    for t in range(3):  # nor do those of keys
        method.weights[f"domains.{t}.key"] = (t + 1) * keys[t]
    assert torch.equal(method.predict_domain(batch), expected)
    assert len(set(expected.tolist())) > 1


def test_predict_composes_its_two_steps(tower_world: TowerWorld) -> None:
    method = tower_world.learn(tower_world.method(DualPrompt, **SMALL))
    batch = random_batch(30)
    domains = method.predict_domain(batch)
    assert torch.equal(method.predict(batch), method.predict_in_domain(batch, domains))
    assert torch.equal(method.embed(batch), method.features_in(batch, domains))


def test_a_random_key_is_pulled_to_its_domain(tower_world: TowerWorld) -> None:
    config = SMALL | {"key_start": "random", "lr": 0.1, "base_epochs": 10}
    queries = tower_world.domain(0).features()
    similar = []
    for pull in (0.0, 1.0):
        method = tower_world.method(DualPrompt, **config | {"key_weight": pull})
        method.learn(tower_world.domain(0))
        key = F.normalize(method.weights["domains.0.key"], dim=0)
        similar.append(float((queries @ key).mean()))
    mean = F.normalize(queries.mean(0), dim=0)
    best = float((queries @ mean).mean())
    assert similar[1] > similar[0]
    assert similar[1] == pytest.approx(best, abs=0.05)


def test_a_mean_key_stays_near_the_mean(tower_world: TowerWorld) -> None:
    """Steps of Adam have a fixed length, so a short key would be thrown about."""
    method = tower_world.learn(tower_world.method(DualPrompt, **SMALL | {"base_epochs": 5}), 1)
    mean = F.normalize(tower_world.domain(0).features().mean(0), dim=0)
    assert F.normalize(method.weights["domains.0.key"], dim=0) @ mean > 0.99


def test_what_is_trained(tower_world: TowerWorld) -> None:
    general, own = 2 * 2 * 2 * WIDTH, 3 * 2 * 3 * WIDTH + DIM
    method = tower_world.method(DualPrompt, **SMALL)
    for t in range(3):
        method.learn(tower_world.domain(t))
        assert method.trained_parameters() == general + own + TRAINED_HEAD
        stored = sum(value.numel() for value in method.state_dict().values())
        assert stored == general + (t + 1) * own + TRAINED_HEAD
    frozen = tower_world.learn(
        tower_world.method(DualPrompt, **SMALL, general_domains="base", head="text")
    )
    assert frozen.trained_parameters() == own


def test_too_many_blocks_are_refused(tower_world: TowerWorld) -> None:
    with pytest.raises(RequestError, match="has 5"):
        tower_world.method(DualPrompt, expert_blocks=4)
