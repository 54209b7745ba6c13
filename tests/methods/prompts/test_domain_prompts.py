"""What every method with prompts of its own for every domain must keep to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from fsdil_methods.prompts.coop import CoOpDomains
from fsdil_methods.prompts.cp_prompt import CPPrompt
from fsdil_methods.prompts.pgo_like import PGOLike
from fsdil_methods.prompts.s_prompts import SPrompts
from small_clip import BLOCKS, WIDTH, ClipWorld
from tiny_world import DIM, copied, same

from fsdil_bench import Batch, RequestError

FAST: dict[str, Any] = {"batch_size": 16, "base_epochs": 1, "steps": 3, "lr": 0.1}
CONTEXT: dict[str, Any] = {"context_length": 4}
KINDS: dict[str, tuple[type, dict[str, Any]]] = {
    "coop-domains": (CoOpDomains, CONTEXT),
    "s-prompts": (SPrompts, CONTEXT | {"prompt_length": 3}),
    "cp-prompt": (CPPrompt, CONTEXT | {"common_length": 2, "blocks": (0, 2), "prefix_length": 4}),
    "pgo-like": (PGOLike, {"prompt_length": 2, "proxy": 0.0}),
}
# Numbers trained per domain: context, image prompts, prefixes.
COUNTS = {
    "coop-domains": 4 * WIDTH,
    "s-prompts": 4 * WIDTH + 3 * WIDTH,
    "cp-prompt": 4 * WIDTH + 2 * WIDTH + 2 * 4 * WIDTH,
    "pgo-like": 2 * BLOCKS * 2 * WIDTH,
}


@pytest.fixture(params=KINDS)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


def build(world: ClipWorld, name: str, **config: Any) -> Any:
    kind, own = KINDS[name]
    return world.method(kind, **{**FAST, **own, **config})


def test_nothing_of_an_earlier_domain_changes(clip_world: ClipWorld, name: str) -> None:
    method = build(clip_world, name, weight_decay=0.1)
    seen: dict[str, torch.Tensor] = {}
    for t in range(3):
        method.learn(clip_world.domain(t))
        now = copied(method)
        assert all(torch.equal(now[key], value) for key, value in seen.items())
        assert set(now) > set(seen)
        seen = now


def test_with_the_true_domain_nothing_is_forgotten(clip_world: ClipWorld, name: str) -> None:
    outcome = clip_world.run(build(clip_world, name))
    oracle = outcome.oracle_matrix
    assert [row[0] for row in oracle] == [oracle[0][0]] * 3
    assert oracle[1][1] == oracle[2][1]
    assert outcome.routing[0] == 100


def test_domains_have_prompts_of_their_own(clip_world: ClipWorld, name: str) -> None:
    method = clip_world.learn(build(clip_world, name))
    first, second = (method.domains[t] for t in (0, 1))
    assert first.keys() == second.keys()
    assert all(first[key].shape != second[key].shape or not first[key].equal(second[key])
               for key in first)  # fmt: skip


def test_few_images_have_few_centres(clip_world: ClipWorld, name: str) -> None:
    method = build(clip_world, name, centres=5)
    method.learn(clip_world.domain(0))
    method.learn(clip_world.domain(1, [0, 1]))  # as two classes with one shot
    assert [len(prompts["centres"]) for prompts in method.domains] == [5, 2]
    assert clip_world.predict(method)


@pytest.mark.parametrize("start", ["base", "previous"])
def test_a_start_from_another_domain(clip_world: ClipWorld, name: str, start: str) -> None:
    method = clip_world.learn(build(clip_world, name, start_from=start))
    source = method.domains[0 if start == "base" else 1]
    part = "text" if name == "pgo-like" else "context"
    still = build(clip_world, name, start_from=start, steps=0)
    still.load_state_dict({k: v for k, v in method.state_dict().items() if k[0] in "01"})
    still.learn(clip_world.domain(2))
    assert torch.equal(still.domains[2][part], source[part])


def test_training_lowers_the_loss(clip_world: ClipWorld, name: str) -> None:
    """Against zero steps, under the prompts that each of them ends with."""
    losses = []
    for epochs in (0, 10):
        method = build(clip_world, name, base_epochs=epochs, augment=False)
        domain = clip_world.domain(0)
        method.learn(domain)
        batch = Batch(domain.images(), domain.features())
        z = method._embed(batch, 0)
        logits = clip_world.backbone.logit_scale * z @ method._classifier(0).T
        losses.append(float(F.cross_entropy(logits, domain.labels)))
    assert losses[1] < 0.9 * losses[0]


def test_cost_is_that_of_one_domain(clip_world: ClipWorld, name: str) -> None:
    outcome = clip_world.run(build(clip_world, name))
    assert outcome.trained_parameters == [COUNTS[name]] * 3
    each = 4 * (COUNTS[name] + 5 * DIM)
    assert outcome.state_bytes == [each, 2 * each, 3 * each]


def test_a_stopped_run_continues_identically(clip_world: ClipWorld, name: str) -> None:
    whole, resumed = build(clip_world, name), build(clip_world, name)
    rows = clip_world.run(whole, "whole").matrix
    clip_world.run(build(clip_world, name), "stopped", domains=2)
    outcome = clip_world.run(resumed, "stopped")
    assert outcome.resumed_after == 2
    assert outcome.matrix == rows
    assert same(copied(whole), copied(resumed))


def test_predictions_do_not_depend_on_the_batch(clip_world: ClipWorld, name: str) -> None:
    method = clip_world.learn(build(clip_world, name))
    batch = clip_world.test_batch()
    with torch.no_grad():
        whole = method.predict(batch)
        single = [method.predict(batch.select(torch.tensor([i]))) for i in range(len(batch))]
    assert len(set(whole.tolist())) > 1
    assert torch.equal(torch.cat(single), whole)
    assert method.embed(batch).norm(dim=1).allclose(torch.ones(len(batch)))


def test_the_shared_model_stays_as_it_was(clip_world: ClipWorld, name: str) -> None:
    before = {k: v.clone() for k, v in clip_world.backbone.model.state_dict().items()}
    clip_world.run(build(clip_world, name))
    assert same(before, dict(clip_world.backbone.model.state_dict()))


def test_the_distance_is_an_option(clip_world: ClipWorld, name: str) -> None:
    method = clip_world.learn(build(clip_world, name, distance="l2"))
    batch = clip_world.test_batch()
    distances = torch.stack(
        [torch.cdist(batch.features, p["centres"]).amin(1) for p in method.domains], 1
    )
    assert torch.equal(method.predict_domain(batch), distances.argmin(1))


def test_it_needs_a_text_tower(tmp_path: Path, name: str) -> None:
    with pytest.raises(RequestError, match="text tower"):
        build(ClipWorld(tmp_path, text=False), name)


def test_presets_are_valid_options(clip_world: ClipWorld, name: str) -> None:
    kind, _ = KINDS[name]
    assert set(kind.presets) == {"cddb-hard", "core50", "domainnet", "drawn", "shelf", "forged"}
    for preset in kind.presets.values():
        own = KINDS[name][1]
        blocks = {"blocks": list(range(BLOCKS))} if "blocks" in preset else {}
        context = {key: own[key] for key in CONTEXT if key in own}
        assert clip_world.method(kind, **{**preset, **(blocks or own), **context})


def test_the_trained_router(clip_world: ClipWorld, name: str) -> None:
    """It changes which domain an image is taken for, and nothing else."""
    plain = clip_world.run(build(clip_world, name), "kmeans")
    method = build(clip_world, name, router="selector")
    outcome = clip_world.run(method, "selector")
    assert outcome.oracle_matrix == plain.oracle_matrix
    assert outcome.routing[0] == 100
    each = (DIM + 1) * torch.tensor([0, 2, 3])
    assert outcome.trained_parameters == (COUNTS[name] + each).tolist()
    batch = clip_world.test_batch()
    assert torch.equal(method.predict_domain(batch), method.selector.route(batch.features))


def test_a_stopped_run_continues_with_its_selector(clip_world: ClipWorld, name: str) -> None:
    methods = [build(clip_world, name, router="selector") for _ in range(3)]
    rows = clip_world.run(methods[0], "whole").matrix
    clip_world.run(methods[1], "stopped", domains=2)
    assert clip_world.run(methods[2], "stopped").matrix == rows
    assert same(copied(methods[0]), copied(methods[2]))


def test_a_selector_leaves_earlier_prompts_alone(clip_world: ClipWorld, name: str) -> None:
    method = build(clip_world, name, router="selector")
    seen: dict[str, torch.Tensor] = {}
    for t in range(3):
        method.learn(clip_world.domain(t))
        now = {k: v for k, v in copied(method).items() if not k.startswith("selector.")}
        assert all(torch.equal(now[key], value) for key, value in seen.items())
        seen = now
