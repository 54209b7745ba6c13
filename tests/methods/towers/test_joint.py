from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from fsdil_methods.towers.finetune import FineTune
from fsdil_methods.towers.joint import Joint
from tiny_world import World, copied, same

from fsdil_bench import PluginError

FAST: dict[str, Any] = {"lr": 1e-2, "batch_size": 16, "steps": 4}


def test_the_base_domain_is_finetunes(world: World) -> None:
    joint, finetune = world.method(Joint, **FAST), world.method(FineTune, **FAST)
    one = world.run(joint, "joint", domains=1, exemplar_free=False)
    other = world.run(finetune, "finetune", domains=1)
    assert same(copied(joint), copied(finetune))
    assert one.matrix == other.matrix


def test_earlier_images_are_only_for_those_who_declare_it(world: World) -> None:
    with pytest.raises(PluginError, match="images of earlier domains"):
        world.run(world.method(Joint, **FAST), exemplar_free=True)


def test_it_starts_again_with_every_domain(world: World) -> None:
    """What the tower was before a domain must not matter."""
    clean, spoilt = world.method(Joint, **FAST), world.method(Joint, **FAST)
    with torch.no_grad():
        for weight in spoilt.tower.parameters():
            weight.fill_(1.0)
    states = []
    for method in (clean, spoilt):
        earlier, domain = world.domain(0), world.domain(1)
        domain._earlier = (earlier,)
        method.learn(domain)
        states.append(copied(method))
    assert same(*states)


def test_domains_share_batches_and_loss(world: World) -> None:
    """One plain step equals AdamW on the mean of the domains' losses."""
    config = {"lr": 1e-3, "weight_decay": 0.0, "batch_size": 999, "augment": False}
    method = world.method(Joint, **config, base_epochs=1, steps=0)
    domains = [world.domain(t) for t in range(3)]
    tower = world.backbone.visual_copy()
    losses = []
    for domain in domains:
        z = F.normalize(tower(domain.images()), dim=-1)
        losses.append(F.cross_entropy(20.0 * z @ method.text.T, domain.labels))
    (sum(losses) / 3).backward()  # type: ignore[union-attr]
    domains[2]._earlier = (domains[0], domains[1])
    method.learn(domains[2])
    for old, new in zip(tower.parameters(), method.tower.parameters(), strict=True):
        assert old.grad is not None
        clear = old.grad.abs() > 1e-4
        expected = old - 1e-3 * old.grad.sign()
        assert clear.any()
        torch.testing.assert_close(new[clear], expected[clear], atol=1e-6, rtol=0)


def test_it_remembers_what_finetuning_forgets(world: World) -> None:
    config = FAST | {"steps": 30}
    joint = world.run(world.method(Joint, **config), "joint", exemplar_free=False)
    finetune = world.run(world.method(FineTune, **config), "finetune")
    assert joint.matrix[2][0] > finetune.matrix[2][0]
