from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from fsdil_methods.prompts.components import PARTS
from fsdil_methods.prompts.sec_prompt import SECPrompt, asked, cluster
from tiny_world import copied
from tower_world import BLOCKS, CLASSES, TOKENS, WIDTH, TowerWorld, random_batch

from fsdil_bench import RequestError
from fsdil_bench.adapters import BlockAdapter, image_tokens

SMALL: dict[str, Any] = {
    "base_epochs": 1, "steps": 2, "batch_size": 16, "prompt_length": 2,
    "discriminative_blocks": 3, "other_blocks": 2, "later_lr": 0.01,
}  # fmt: skip


def close(one: torch.Tensor, other: torch.Tensor) -> bool:
    return torch.allclose(one, other, rtol=1e-4, atol=1e-4 * float(other.abs().max()))


def test_what_a_domain_leaves_as_it_was(tower_world: TowerWorld) -> None:
    method = tower_world.method(SECPrompt, **SMALL)
    before = copied(method)
    method.learn(tower_world.domain(0))
    now = copied(method)
    assert not any(torch.equal(before[f"other.{p}"], now[f"other.{p}"]) for p in PARTS)
    for t in (1, 2):
        before = copied(method)
        method.learn(tower_world.domain(t))
        old = [name for name in before if name.startswith(("domains.", "other."))]
        assert len(old) == 3 * t + 3
        assert all(torch.equal(before[name], method.weights[name]) for name in old)
        assert torch.equal(method.weights["prototypes"][:t], before["prototypes"])


def test_new_components_are_trained(tower_world: TowerWorld) -> None:
    config = SMALL | {"later_lr": 0.0, "weight_decay": 0.0}
    moved, still = (
        tower_world.learn(tower_world.method(SECPrompt, **each), 2) for each in (SMALL, config)
    )
    for part in PARTS:
        name = f"domains.1.{part}"
        assert torch.allclose(moved.weights[name], still.weights[name], atol=0.5)
        assert not torch.equal(moved.weights[name], still.weights[name])
        rows = torch.cat([still.weights[f"domains.0.{part}"], still.weights[name]], 1).flatten(2)
        new = still.weights[name].flatten(2)
        expected = torch.cat([torch.zeros(2, 4), torch.eye(2)], 1).expand(3, -1, -1)
        assert torch.allclose(new @ rows.mT, expected, atol=1e-5)


def test_copies_without_noise_are_equal(tower_world: TowerWorld) -> None:
    images = random_batch(3).images
    for noise, equal in ((0.0, True), (0.5, False)):
        method = tower_world.learn(tower_world.method(SECPrompt, **SMALL, noise=noise), 1)
        drawn = torch.Generator().manual_seed(0)
        found = method.encode(images, 2, drawn)
        plain = method.encode(images)
        assert found.features.shape == (9, WIDTH)
        assert found.prompts.shape == (3, 9, 2, WIDTH)
        first, *others = found.features.chunk(3)
        assert close(first, plain.features)
        for each in others:
            assert close(each, first) == equal


def test_predictions_depend_on_no_other_image(tower_world: TowerWorld) -> None:
    method = tower_world.learn(tower_world.method(SECPrompt, **SMALL), 2)
    batch = random_batch()
    whole = method.features(batch)
    for i in range(len(batch)):
        alone = method.features(batch.select(torch.tensor([i])))
        assert torch.allclose(alone, whole[i : i + 1], atol=1e-5)


def test_prompts_leave_with_their_block(
    tower_world: TowerWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fsdil_methods.prompts import sec_prompt

    method = tower_world.learn(tower_world.method(SECPrompt, **SMALL), 1)
    lengths, run = [], sec_prompt.run_block

    def counting(block: Any, x: torch.Tensor, adapter: BlockAdapter) -> torch.Tensor:
        lengths.append(x.shape[1])
        return run(block, x, adapter)

    monkeypatch.setattr(sec_prompt, "run_block", counting)
    method.encode(random_batch().images)
    assert lengths == [TOKENS, TOKENS + 4, TOKENS + 4, TOKENS + 2, TOKENS]


def test_prompts_are_the_weighted_sums(tower_world: TowerWorld) -> None:
    """Each image alone, with weights worked out in NumPy, through deep prompts of the tower."""
    method = tower_world.learn(tower_world.method(SECPrompt, **SMALL), 2)
    batch = random_batch(4)
    whole = method.features(batch)
    pools = [
        [method.so_far(part) for part in PARTS],
        [method.weights[f"other.{part}"] for part in PARTS],
    ]
    for i in range(4):
        image = batch.images[i : i + 1]
        adapters: list[BlockAdapter] = []
        for b in range(BLOCKS):
            waiting = [*adapters, *[BlockAdapter()] * (BLOCKS - b)]
            query = image_tokens(method.visual, image, waiting, depth=b).tokens[0, 0]
            tokens = [torch.zeros(0, WIDTH)]
            for kind, (keys, attentions, components) in enumerate(pools):
                if not 1 <= b <= len(keys):
                    continue
                a = (query * attentions[b - 1]).double().numpy()
                k = keys[b - 1].double().numpy()
                norms = np.linalg.norm(a, axis=1) * np.linalg.norm(k, axis=1)
                cosine = (a * k).sum(1) / norms
                weights = np.maximum(-cosine, 0)
                if kind == 0:
                    weights = np.exp(cosine) / np.exp(cosine).sum()
                sums = np.einsum("m,mlw->lw", weights, components[b - 1].double().numpy())
                tokens.append(torch.from_numpy(sums).float())
            adapters.append(BlockAdapter(tokens=torch.cat(tokens)))
        out = image_tokens(method.visual, image, adapters).tokens
        assert close(whole[i : i + 1], method.visual.ln_post(out[:, 0]))


def test_cosines_as_products() -> None:
    query, keys, attentions = torch.randn(5, 8), torch.randn(3, 8), torch.randn(3, 8)
    expected = torch.cosine_similarity(query[:, None] * attentions, keys[None], dim=-1)
    assert torch.allclose(asked(query, keys, attentions), expected, atol=1e-6)


def test_the_cluster_term_is_the_formula() -> None:
    prompts = torch.randn(2, 5, 3, 4)
    labels = torch.tensor([0, 1, 0, 0, 1])
    total = 0.0
    for block in prompts.flatten(2):
        for i in range(5):
            for j in range(5):
                if labels[i] == labels[j]:
                    total += 1 - float(torch.cosine_similarity(block[i], block[j], dim=0))
    assert float(cluster(prompts, labels)) == pytest.approx(total / 5 / 2, rel=1e-5)


def test_pools_have_fewest_components(tower_world: TowerWorld) -> None:
    """Half of four classes would be two."""
    method = tower_world.learn(tower_world.method(SECPrompt, **SMALL), 3)
    assert method.weights["other.keys"].shape == (2, 4, WIDTH)
    assert [len(keys[0]) for keys in method.of_domains("keys")] == [4, 2, 2]
    large = tower_world.method(SECPrompt, **SMALL, pool=1.5, growth=0.75)
    tower_world.learn(large, 2)
    assert [len(keys[0]) for keys in large.of_domains("keys")] == [6, 3]


def test_more_blocks_than_the_tower_has_are_refused(tower_world: TowerWorld) -> None:
    with pytest.raises(RequestError, match="discriminative_blocks"):
        tower_world.method(SECPrompt)


def test_what_is_trained(tower_world: TowerWorld) -> None:
    component, head = (2 + 2) * WIDTH, CLASSES * WIDTH
    method = tower_world.method(SECPrompt, **SMALL)
    method.learn(tower_world.domain(0))
    assert method.trained_parameters() == (3 * 4 + 2 * 4) * component + head + 1
    for t in (1, 2):
        method.learn(tower_world.domain(t))
        assert method.trained_parameters() == 3 * 2 * component + head + 1
    stored = sum(value.numel() for value in method.state_dict().values())
    assert stored == (3 * 8 + 2 * 4) * component + 3 * head + 1
