"""What every built-in method must keep to, whatever it computes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from fsdil_methods import fsdil_methods
from tiny_world import CLASSES, World, copied, same
from tower_world import QUICK, TowerWorld

from fsdil_bench import MethodInfo, RequestError
from fsdil_bench.plugins.descriptors import load_factory

# The tower of these tests has five blocks.
FITTING: dict[str, dict[str, Any]] = {
    "sec-prompt": {"discriminative_blocks": 3, "other_blocks": 2},
}
_TOWER = {"lr": 1e-2, "batch_size": 16, "steps": 3}
SMALL: dict[str, dict[str, Any]] = {
    "ranpac": {"projection_size": 40},
    "rail": {"projection_size": 40},
    "rapf": {"base_epochs": 2, "steps": 3, "lr": 1e-2},
    "dualcp-lite": {"base_epochs": 2, "steps": 3, "lr": 1e-2},
    "linear-probe": {"base_iterations": 20, "steps": 5},
    "finetune": _TOWER,
    "base-only": _TOWER,
    "joint": _TOWER,
    "tip-adapter": {"views": 2},
    "tip-adapter-f": {"views": 2, "steps": 5},
    "lwf": _TOWER,
    "ewc": _TOWER,
    "wise-ft": _TOWER,
    "wise-ft-streaming": _TOWER,
    "duct": _TOWER,
    "duct-text": _TOWER,
    "avalanche-naive": _TOWER,
    "avalanche-ewc": _TOWER,
    "avalanche-lwf": _TOWER,
    "avalanche-replay": _TOWER | {"kept_images": 8},
    "l2p": QUICK,
    "dualprompt": QUICK,
    "coda-prompt": QUICK,
    "inflora": QUICK | {"rank": 3},
    "asp": {"base_epochs": 1, "batch_size": 16, "hidden": 8},
    "app": {"base_epochs": 1, "batch_size": 16, "row_iterations": 3, "lr": 1e-3},
    "sec-prompt": QUICK | FITTING["sec-prompt"],
    "icon": QUICK | {"blocks": 3, "least_shots": 1},
    "dytox": QUICK | {"lr": 1e-3},
    "dytox-replay": QUICK | {"lr": 1e-3, "kept_images": 16, "base_epochs": 12},
    "fshil-lite": QUICK | {"expert_blocks": 2, "rank": 3, "inner_steps": 2},
    "conec-lora": QUICK | {"rank": 3},
}
# They add to the blocks of a transformer, and need one.
ADDING = {"l2p", "dualprompt", "coda-prompt", "inflora", "conec-lora"}
ADDING |= {"asp", "sec-prompt", "icon", "dytox", "dytox-replay", "fshil-lite"}
ALL = {info.name: info for info in fsdil_methods()}
# CVLC needs a real open_clip model; tests/methods/cvlc/test_method.py holds it to the same.
# So do prompts, with test_coop.py and test_domain_prompts.py.
ADAPTED = {"coop", "coop-domains", "s-prompts", "cp-prompt", "pgo-like", "soyo"}
INFOS = {
    name: info for name, info in ALL.items() if not name.startswith("cvlc") and name not in ADAPTED
}
STATELESS = {"zero-shot", "zero-shot-80", "text-prototypes"}
KEEP_IMAGES = {"joint", "avalanche-replay", "dytox-replay"}
KEEP_FEATURES = {
    "tip-adapter", "tip-adapter-f", "rail-dual", "hycal", "rapf", "duct", "conec-lora",
    "coop-domains", "s-prompts", "cp-prompt", "fshil-lite", "pgo-like",
}  # fmt: skip


@pytest.fixture
def world(tmp_path: Path, request: pytest.FixtureRequest) -> World:
    kind = TowerWorld if request.node.callspec.params["name"] in ADDING else World
    return kind(tmp_path)


def build(world: World, info: MethodInfo) -> Any:
    kind = load_factory(info.factory, info.name)
    return world.method(kind, **{**info.overrides, **SMALL.get(info.name, {})})


def test_names() -> None:
    assert list(ALL) == [
        "cvlc", "cvlc-paper", "cvlc-lora", "cvlc-prompt", "cvlc-no-lsr", "cvlc-all-specific",
        "cvlc-single-template", "cvlc-no-text",
        "text-prototypes", "fused-prototypes", "cvlc-frozen",
        "zero-shot", "zero-shot-80", "ncm", "ncm-text", "slda", "ranpac", "linear-probe",
        "tip-adapter", "tip-adapter-f", "slda-text", "rail", "rail-dual", "hycal",
        "rapf", "dualcp-lite",
        "finetune", "base-only", "joint", "lwf", "ewc", "wise-ft", "wise-ft-streaming", "inflora",
        "duct", "duct-text", "conec-lora",
        "coop", "coop-domains", "s-prompts", "cp-prompt", "soyo", "l2p", "dualprompt",
        "coda-prompt",
        "asp", "app", "sec-prompt", "icon", "dytox", "dytox-replay", "fshil-lite", "pgo-like",
        "avalanche-naive", "avalanche-ewc", "avalanche-lwf", "avalanche-replay",
    ]  # fmt: skip
    assert {name for name, info in ALL.items() if not info.exemplar_free} == KEEP_IMAGES
    assert {name for name, info in ALL.items() if info.keeps_features} == KEEP_FEATURES


@pytest.mark.parametrize("name", INFOS)
def test_presets_are_valid_options(world: World, name: str) -> None:
    kind = load_factory(INFOS[name].factory, name)
    for preset in kind.presets.values():
        assert world.method(kind, **{**preset, **INFOS[name].overrides, **FITTING.get(name, {})})


@pytest.mark.parametrize("name", ALL)
def test_a_method_has_presets_for_all_data_sets_or_needs_none(name: str) -> None:
    embedded = {"drawn", "shelf", "forged"}
    everywhere = {"cddb-hard", "core50", "domainnet", *embedded}
    # Avalanche's strategies are for comparison on the embedded worlds.
    wanted = embedded if name.startswith("avalanche-") else everywhere
    assert set(load_factory(ALL[name].factory, name).presets) in (set(), wanted)


@pytest.mark.parametrize("name", INFOS)
def test_text_is_needed_where_declared(world: World, name: str) -> None:
    """Others run to the end on a backbone without text."""
    blind = type(world)(world.folder / "blind", text=False)
    if INFOS[name].needs_text:
        with pytest.raises(RequestError, match="text tower"):
            build(blind, INFOS[name])
    else:
        free = INFOS[name].exemplar_free
        assert len(blind.run(build(blind, INFOS[name]), exemplar_free=free).matrix) == 3


@pytest.mark.parametrize("name", INFOS)
@pytest.mark.parametrize("stop", [1, 2])
def test_a_stopped_run_continues_identically(world: World, name: str, stop: int) -> None:
    free = INFOS[name].exemplar_free
    through = build(world, INFOS[name])
    whole = world.run(through, "whole", exemplar_free=free)
    world.run(build(world, INFOS[name]), "stopped", domains=stop, exemplar_free=free)
    resumed = build(world, INFOS[name])
    rest = world.run(resumed, "stopped", exemplar_free=free)
    assert rest.resumed_after == stop
    assert rest.matrix == whole.matrix
    assert rest.diagnostics == whole.diagnostics
    assert same(resumed.state_dict(), through.state_dict())


@pytest.mark.parametrize("name", INFOS)
def test_predictions_are_ids_and_do_not_depend_on_the_batch(world: World, name: str) -> None:
    method = build(world, INFOS[name])
    world.run(method, exemplar_free=INFOS[name].exemplar_free)
    batch = world.test_batch()
    with torch.no_grad():
        whole = method.predict(batch)
        single = [method.predict(batch.select(torch.tensor([i]))) for i in range(len(batch))]
    assert whole.dtype == torch.int64
    assert whole.shape == (len(batch),)
    assert len(set(whole.tolist())) > 1, "a constant prediction would show nothing"
    assert torch.equal(torch.cat(single), whole)


@pytest.mark.parametrize("name", INFOS)
def test_the_shared_model_stays_as_it_was(world: World, name: str) -> None:
    before = {k: v.clone() for k, v in world.backbone.model.state_dict().items()}
    world.run(build(world, INFOS[name]), exemplar_free=INFOS[name].exemplar_free)
    assert same(before, dict(world.backbone.model.state_dict()))


@pytest.mark.parametrize(
    "name", [n for n in INFOS if INFOS[n].exemplar_free and not INFOS[n].keeps_features]
)
def test_the_state_holds_statistics_not_samples(world: World, name: str) -> None:
    """Its size must not depend on how many images a domain has."""
    sizes = []
    for images in (len(CLASSES) * 3, len(CLASSES) * 15):
        method = build(world, INFOS[name])
        method.learn(world.domain(0, range(images)))
        sizes.append({key: value.shape for key, value in method.state_dict().items()})
    assert sizes[0] == sizes[1]


@pytest.mark.parametrize("name", [name for name in INFOS if name not in STATELESS])
def test_learning_changes_the_state(world: World, name: str) -> None:
    method = build(world, INFOS[name])
    states = [copied(method)]
    world.run(method, domains=1, exemplar_free=INFOS[name].exemplar_free)
    states.append(copied(method))
    assert not same(*states)


@pytest.mark.parametrize("name", [name for name in INFOS if name not in STATELESS])
def test_the_seed_is_the_only_chance(world: World, name: str) -> None:
    """Whatever the global generators were left in, the outcome is the same."""
    states = []
    for noise in (1, 2):
        torch.manual_seed(noise)
        method = build(world, INFOS[name])
        torch.manual_seed(noise)
        method.learn(world.domain(0) if INFOS[name].exemplar_free else _replaying(world))
        states.append(copied(method))
    assert same(*states)


def _replaying(world: World) -> Any:
    domain = world.domain(0)
    domain._earlier = ()
    return domain
