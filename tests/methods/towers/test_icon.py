from __future__ import annotations

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from fsdil_methods.towers.icon import ADAPTER, ICON, node_threshold
from tiny_world import copied
from tower_world import CLASSES, QUICK, TRAINED_HEAD, WIDTH, TowerWorld, random_batch

from fsdil_bench.adapters import BlockAdapter, image_tokens

SMALL: dict[str, Any] = QUICK | {"blocks": 3, "rank": 2, "steps": 4, "head_only": 0.5}
NODES = SMALL | {"least_shots": 1}


def close(one: torch.Tensor, other: torch.Tensor) -> bool:
    return torch.allclose(one, other, rtol=1e-4, atol=1e-4 * float(other.abs().max()))


def with_nodes(world: TowerWorld, wanted: list[bool], **options: Any) -> Any:
    """A method after the base domain, about to get nodes of domain 1 for some classes."""
    method = world.learn(world.method(ICON, **NODES | options), 1)
    accuracy = torch.where(torch.tensor(wanted), 0.0, 1.0)
    method.accuracy = lambda domain: (accuracy, torch.full((CLASSES,), 2))
    return method


def test_adapters_start_as_nothing(tower_world: TowerWorld) -> None:
    method = tower_world.method(ICON, **SMALL)
    batch, visual = random_batch(), method.visual
    plain = visual.ln_post(image_tokens(visual, batch.images).tokens[:, 0])
    assert close(method.features(batch), plain)


def test_an_adapter_is_beside_the_attention(tower_world: TowerWorld) -> None:
    method = tower_world.learn(tower_world.method(ICON, **SMALL), 1)
    parts = [method.weights[f"adapter.{name}"] for name in ADAPTER]
    assert not any(torch.equal(part, torch.zeros_like(part)) for part in parts)

    def branch(b: int) -> Any:
        down, bias, up, up_bias, gain = (part[b] for part in parts)
        return lambda x: gain * (F.gelu(x @ down.T + bias) @ up.T + up_bias)

    adapters = [BlockAdapter(attention_branch=branch(b)) for b in range(3)] + [BlockAdapter()] * 2
    batch = random_batch()
    tokens = image_tokens(method.visual, batch.images, adapters).tokens
    assert close(method.features(batch), method.visual.ln_post(tokens[:, 0]))


@pytest.mark.parametrize("head", ["linear", "text"])
def test_a_new_node_without_training_changes_nothing(tower_world: TowerWorld, head: str) -> None:
    method = with_nodes(tower_world, [True, False, True, False], head=head, steps=0)
    batch = random_batch(30)
    before = method.predict(batch), method.logits(method.features(batch))
    method.learn(tower_world.domain(1))
    assert method.diagnostics() == {"nodes": [2]}
    assert torch.equal(method.predict(batch), before[0])
    assert close(method.logits(method.features(batch)), before[1])


def test_nodes_of_classes_that_do_not_train_stay(tower_world: TowerWorld) -> None:
    """A new node stands for its class, so its old one gets no gradient; unused ones stay empty."""
    method = with_nodes(tower_world, [True, False, True, False], distillation=0.0)
    before = copied(method)
    method.learn(tower_world.domain(1))
    old, new = before["head.weight"], method.weights["head.weight"]
    assert [torch.equal(a, b) for a, b in zip(old, new, strict=True)] == [True, False, True, False]
    nodes = method.weights["domains.1.nodes.weight"]
    assert not nodes[[1, 3]].any()
    assert not torch.equal(nodes[[0, 2]], old[[0, 2]])


def test_the_largest_node_of_a_class_counts(tower_world: TowerWorld) -> None:
    method = with_nodes(tower_world, [True, False, True, False])
    method.learn(tower_world.domain(1))
    f = method.features(random_batch(30))
    w = method.weights
    first = F.linear(f, w["head.weight"], w["head.bias"])
    second = F.linear(f, w["domains.1.nodes.weight"], w["domains.1.nodes.bias"])
    expected = first.clone()
    expected[:, [0, 2]] = torch.maximum(first, second)[:, [0, 2]]
    assert close(method.logits(f), expected)
    training = method.class_logits(f, method.nodes(), newest=1)
    expected[:, [0, 2]] = second[:, [0, 2]]
    assert close(training, expected)


def test_a_node_is_a_copy_of_the_first_one(tower_world: TowerWorld) -> None:
    method = with_nodes(tower_world, [True, True, False, False])
    method.learn(tower_world.domain(1))
    accuracy = torch.tensor([0.0, 1.0, 0.0, 1.0])
    method.accuracy = lambda domain: (accuracy, torch.full((CLASSES,), 2))
    method.add_nodes(tower_world.domain(2))
    w = method.weights
    new = w["domains.2.nodes.weight"]
    assert torch.equal(new[[0, 2]], w["head.weight"][[0, 2]])
    assert not torch.equal(new[0], w["domains.1.nodes.weight"][0])
    assert not new[[1, 3]].any()


def test_the_threshold_is_the_formula() -> None:
    accuracy = torch.tensor([0.0, 0.5, 0.9, 1.0, 0.3])
    usual = torch.tensor([0.0, 1.0, 1.0, 0.8, 0.4])
    expected = [0, math.tanh(5), math.tanh(1), 0, math.tanh(2.5)]
    assert node_threshold(accuracy, usual).tolist() == pytest.approx(expected, abs=1e-6)


def test_few_shots_give_no_node(tower_world: TowerWorld) -> None:
    """Domains have two images of a class, and four are needed by default."""
    method = tower_world.learn(tower_world.method(ICON, **SMALL))
    assert method.diagnostics() == {"nodes": [0, 0]}


@pytest.mark.parametrize(("rule", "nodes"), [("paper", 2), ("coded", 1)])
def test_rules(tower_world: TowerWorld, rule: str, nodes: int) -> None:
    method = tower_world.learn(tower_world.method(ICON, **NODES, node_rule=rule), 1)
    method.weights["accuracies"] = torch.ones(CLASSES)
    accuracy = torch.tensor([0.0, 0.5, 1.0, 1.0])
    method.accuracy = lambda domain: (accuracy, torch.full((CLASSES,), 2))
    method.add_nodes(tower_world.domain(1))
    assert method.diagnostics() == {"nodes": [nodes]}


def test_accuracies_are_those_on_training_images(tower_world: TowerWorld) -> None:
    method = tower_world.learn(tower_world.method(ICON, **SMALL), 1)
    domain = tower_world.domain(0)
    right = method.logits(method.features(type(random_batch())(domain.images()))).argmax(1)
    right = right == domain.labels
    expected = [float(right[domain.labels == c].float().mean()) for c in range(CLASSES)]
    assert method.weights["accuracies"].tolist() == pytest.approx(expected)
    method.learn(tower_world.domain(1))
    assert method.weights["judged"].tolist() == [2] * CLASSES


def test_the_distillation_is_the_formula(tower_world: TowerWorld) -> None:
    method = with_nodes(tower_world, [True, False, True, False])
    before = [{k: v.clone() for k, v in each.items()} for each in method.nodes()]
    f = method.features(random_batch())
    assert float(method.distilled(f, method.nodes(), before)) == pytest.approx(0, abs=1e-7)
    method.learn(tower_world.domain(1))
    w = method.weights
    now = F.linear(f, w["head.weight"], w["head.bias"]).softmax(1)
    old = F.linear(f, before[0]["weight"], before[0]["bias"]).softmax(1)
    expected = (now * (now / old).log()).sum(1).mean()
    assert float(method.distilled(f, method.nodes(), before)) == pytest.approx(
        float(expected), rel=1e-3
    )


def test_only_the_head_is_trained_at_first(tower_world: TowerWorld) -> None:
    method = tower_world.learn(tower_world.method(ICON, **SMALL | {"head_only": 1.0}), 1)
    before = copied(method)
    method.learn(tower_world.domain(1))
    for name in ADAPTER:
        assert torch.equal(before[f"adapter.{name}"], method.weights[f"adapter.{name}"])
    assert not torch.equal(before["head.weight"], method.weights["head.weight"])
    assert not method.weights["domains.1.shift"].any()


def test_a_slow_copy_follows_from_the_second_domain_on(tower_world: TowerWorld) -> None:
    method = tower_world.learn(tower_world.method(ICON, **SMALL), 1)
    assert not any(name.startswith("slow.") for name in method.weights)
    start = method.weights["adapter.up"].clone()
    ways = []
    follow = method.follow

    def watched() -> None:
        ways.append(method.weights["adapter.up"].detach().clone())
        follow()

    method.follow = watched
    method.learn(tower_world.domain(1))
    assert len(ways) == 4
    slow = start
    for each in ways:
        slow = 0.99 * slow + 0.01 * each
    assert close(method.weights["slow.up"], slow)
    batch = random_batch(30)
    fast, slower = (
        method.logits(method.encode(batch.images, kind)).softmax(1) for kind in ("adapter", "slow")
    )
    assert torch.equal(method.predict(batch), torch.maximum(fast, slower).argmax(1))


def test_shifts_add_up_to_where_the_adapters_are(tower_world: TowerWorld) -> None:
    method = tower_world.method(ICON, **SMALL)
    start = torch.cat([method.weights[f"adapter.{name}"].flatten() for name in ADAPTER])
    tower_world.learn(method)
    end = torch.cat([method.weights[f"adapter.{name}"].flatten() for name in ADAPTER])
    assert close(torch.stack(method.of_domains("shift")).sum(0), end - start)


def test_what_is_trained(tower_world: TowerWorld) -> None:
    adapter = 3 * (2 * 2 * WIDTH + 2 + WIDTH + 1)
    method = tower_world.method(ICON, **SMALL)
    method.learn(tower_world.domain(0))
    assert method.trained_parameters() == adapter + TRAINED_HEAD
    for t in (1, 2):
        method.learn(tower_world.domain(t))
        assert method.trained_parameters() == adapter + 2 * TRAINED_HEAD
    stored = sum(value.numel() for value in method.state_dict().values())
    # Adapters and their slow copy, a shift per domain, heads and nodes, and accuracies.
    assert stored == 5 * adapter + 3 * TRAINED_HEAD + 2 * CLASSES + 2 * CLASSES
    assert 5 * (768 * 5 + 5 + 5 * 768 + 768 + 1) == 42_270


def test_shifts_are_kept_apart_from_the_fourth_domain_on(tower_world: TowerWorld) -> None:
    """Domains 3 and 4 are domains 1 and 2 again."""
    ends = []
    for weight in (0.0, 100.0):
        config = SMALL | {"shift_weight": weight, "head_only": 0.0}
        method = tower_world.learn(tower_world.method(ICON, **config))
        states = [copied(method)]
        again = tower_world.domain(1)
        again.index = 3
        method.learn(again)
        ends.append([*states, copied(method)])
    assert torch.equal(ends[0][0]["adapter.up"], ends[1][0]["adapter.up"])
    assert not torch.equal(ends[0][1]["adapter.up"], ends[1][1]["adapter.up"])


def test_class_names_stay_and_their_copies_are_trained(tower_world: TowerWorld) -> None:
    method = with_nodes(tower_world, [True, False, True, False], head="text")
    text = method.text.text.clone()
    method.learn(tower_world.domain(1))
    assert torch.equal(method.text.text, text)
    nodes = method.weights["domains.1.nodes.weight"]
    assert not nodes[[1, 3]].any()
    assert not torch.equal(nodes[[0, 2]], text[[0, 2]])
    assert method.trained_parameters() == 3 * (4 * WIDTH + 2 + WIDTH + 1) + text.numel()
