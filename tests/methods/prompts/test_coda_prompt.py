from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from fsdil_methods.prompts.coda_prompt import CODAPrompt
from fsdil_methods.prompts.components import PARTS, off_orthogonal, orthogonal
from tiny_world import copied
from tower_world import DIM, QUICK, TRAINED_HEAD, WIDTH, TowerWorld, random_batch

from fsdil_bench import Batch, RequestError
from fsdil_bench.adapters import BlockAdapter, image_tokens

SMALL: dict[str, Any] = QUICK | {"blocks": 3, "components": 4, "prefix_length": 2}


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(3)


def close(one: torch.Tensor, other: torch.Tensor) -> bool:
    return torch.allclose(one, other, rtol=1e-4, atol=1e-4 * float(other.abs().max()))


def test_new_components_are_orthogonal_to_trained_ones(tower_world: TowerWorld) -> None:
    """Old ones no longer are orthogonal to each other, and need not be."""
    method = tower_world.method(CODAPrompt, **SMALL | {"base_epochs": 4})
    method.learn(tower_world.domain(0))
    method.learn(tower_world.domain(1))
    fresh = method.new_components(2)
    for part in PARTS:
        old, new = method.so_far(part).flatten(2), fresh[part].flatten(2)
        assert old.shape[1] == 8
        assert off_orthogonal(old).max() > 1e-4, "otherwise this shows nothing"
        gram = new @ torch.cat([old, new], 1).mT
        expected = torch.cat([torch.zeros(4, 8), torch.eye(4)], 1).expand(3, -1, -1)
        assert torch.allclose(gram, expected, atol=1e-5)


def test_orthogonal_vectors_are_random_and_may_not_be_too_many() -> None:
    old = torch.randn(3, 2, 5, generator=generator())
    new = orthogonal(old, 4, generator())
    assert new.shape == (4, 2, 5)
    assert not torch.equal(new, orthogonal(old, 4, torch.Generator().manual_seed(4)))
    with pytest.raises(RequestError, match="11 components"):
        orthogonal(old, 8, generator())


def test_the_penalty_is_the_formula(tower_world: TowerWorld) -> None:
    method = tower_world.learn(tower_world.method(CODAPrompt, **SMALL), 2)
    expected = 0.0
    for part in PARTS:
        for block in method.so_far(part).double().numpy():
            rows = block.reshape(8, -1)
            expected += np.mean((rows @ rows.T - np.eye(8)) ** 2)
    assert float(method.penalty()) == pytest.approx(expected, rel=1e-4)


def test_the_penalty_keeps_components_orthogonal(tower_world: TowerWorld) -> None:
    config = SMALL | {"base_epochs": 10}
    free, held = (
        tower_world.learn(tower_world.method(CODAPrompt, **config, orthogonality=mu), 1)
        for mu in (0.0, 100.0)
    )
    assert held.penalty() < 0.2 * free.penalty()


def test_prompts_are_the_weighted_sum(tower_world: TowerWorld) -> None:
    method = tower_world.learn(tower_world.method(CODAPrompt, **SMALL), 2)
    queries = random_batch().features
    found = method.prompts(queries)
    keys, attentions, components = (method.so_far(part).double().numpy() for part in PARTS)
    negative = 0
    for b in range(3):
        for n, query in enumerate(queries.double().numpy()):
            total = np.zeros((4, WIDTH))
            for m in range(8):
                asked = query * attentions[b, m]
                norms = np.linalg.norm(asked) * np.linalg.norm(keys[b, m])
                alpha = asked @ keys[b, m] / norms
                negative += alpha < 0
                total += alpha * components[b, m]
            assert np.allclose(found[b, n].numpy(), total, atol=1e-5)
    assert negative > 0, "weights are no softmax"


def test_one_half_is_keys_the_other_values(tower_world: TowerWorld) -> None:
    method = tower_world.learn(tower_world.method(CODAPrompt, **SMALL), 2)
    batch = random_batch()
    whole, prompts = method.features(batch), method.prompts(batch.features)
    for i in range(len(batch)):
        adapters = [BlockAdapter(prefix=(p[i, :2], p[i, 2:])) for p in prompts]
        adapters += [BlockAdapter()] * 2
        tokens = image_tokens(method.visual, batch.images[i : i + 1], adapters).tokens
        assert close(whole[i : i + 1], method.visual.ln_post(tokens[:, 0]))


def test_a_query_without_weights_gives_zeros_which_are_not_clip(tower_world: TowerWorld) -> None:
    method = tower_world.learn(tower_world.method(CODAPrompt, **SMALL), 1)
    batch = random_batch()
    silent = Batch(batch.images, torch.zeros(9, DIM))
    assert not method.prompts(silent.features).any()
    visual = method.visual
    plain = visual.ln_post(image_tokens(visual, batch.images).tokens[:, 0])
    zero = torch.zeros(2, WIDTH)
    adapters = [BlockAdapter(prefix=(zero, zero))] * 3 + [BlockAdapter()] * 2
    zeros = visual.ln_post(image_tokens(visual, batch.images, adapters).tokens[:, 0])
    assert close(method.features(silent), zeros)
    assert not close(method.features(silent), plain)


def test_old_components_are_frozen_and_still_count(tower_world: TowerWorld) -> None:
    method = tower_world.method(CODAPrompt, **SMALL)
    for t in range(3):
        before = copied(method)
        method.learn(tower_world.domain(t))
        old = [name for name in before if name.startswith("domains.")]
        assert len(old) == 3 * t
        assert all(torch.equal(before[name], method.weights[name]) for name in old)
        new = [name for name in method.weights if name.startswith(f"domains.{t}.")]
        started = method.new_components(t) if t == 0 else None
        assert len(new) == 3
        assert started is None or not torch.equal(started["keys"], method.weights[new[0]])
    batch = random_batch()
    features = method.features(batch)
    method.weights["domains.0.components"] = torch.zeros_like(
        method.weights["domains.0.components"]
    )
    assert not torch.equal(features, method.features(batch))


def test_old_components_get_no_gradient(tower_world: TowerWorld) -> None:
    method = tower_world.learn(tower_world.method(CODAPrompt, **SMALL, orthogonality=1.0), 2)
    own = [f"domains.1.{part}" for part in PARTS]
    for name in own:
        method.weights[name].requires_grad_()
    batch = random_batch()
    (method.encode(batch.images, batch.features).sum() + method.penalty()).backward()
    for name, value in method.weights.items():
        assert (value.grad is not None) == (name in own), name


def test_the_order_of_domains_survives_the_names(tower_world: TowerWorld) -> None:
    """A stored state may list domain 10 before domain 2."""
    method = tower_world.method(CODAPrompt)
    for t in (10, 2, 0, 1, 11):
        method.add({"keys": torch.full((5, 1, DIM), float(t))}, f"domains.{t}.")
    assert method.so_far("keys")[0, :, 0].tolist() == [0, 1, 2, 10, 11]


def test_what_is_trained(tower_world: TowerWorld) -> None:
    own = 3 * 4 * (2 * DIM + 4 * WIDTH)
    for head, more in (("linear", TRAINED_HEAD), ("text", 0)):
        method = tower_world.method(CODAPrompt, **SMALL, head=head)
        for t in range(3):
            method.learn(tower_world.domain(t))
            assert method.trained_parameters() == own + more
            stored = sum(value.numel() for value in method.state_dict().values())
            assert stored == (t + 1) * own + more


def test_the_rate_falls_to_zero(tower_world: TowerWorld) -> None:
    """Half a cosine: at the middle of the steps it is one half."""
    config = tower_world.method(CODAPrompt, **SMALL).context.config
    rate = config.rate(10)
    assert [round(rate(step), 6) for step in (0, 5, 10)] == [1.0, 0.5, 0.0]
