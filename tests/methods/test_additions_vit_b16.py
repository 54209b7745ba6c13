"""Methods that add to the image tower, on the shapes of CLIP ViT-B/16 without a text tower."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest
import torch
from fsdil_methods.prompts.asp import ASP
from fsdil_methods.prompts.coda_prompt import CODAPrompt
from fsdil_methods.prompts.dualprompt import DualPrompt
from fsdil_methods.prompts.l2p import L2P
from fsdil_methods.prompts.pgo_like import PGOLike
from fsdil_methods.prompts.sec_prompt import SECPrompt
from fsdil_methods.towers.app import App
from fsdil_methods.towers.dytox import DyTox
from fsdil_methods.towers.icon import ICON
from fsdil_methods.towers.inflora import InfLoRA
from vit_b16 import learn_two_domains, random_vit_b16

from fsdil_bench import Backbone, Method
from fsdil_bench.plugins.options import resolve
from fsdil_bench.runs.cost import state_bytes

HEAD = 2 * 768 + 2
# What a domain trains, without the head; what is stored besides, once and for every domain.
COUNTS: dict[type[Method], tuple[int, int, int]] = {
    L2P: (10 * 5 * 768 + 10 * 512, 0, 0),
    DualPrompt: (15_360 + 23_040 + 512, 0, 23_040 + 512),
    CODAPrompt: (5 * 4 * (8 * 768 + 2 * 512), 0, 5 * 4 * (8 * 768 + 2 * 512)),
    InfLoRA: (184_320, 12 * 768 * 384 + 92_160, 184_320 + 92_160),
}


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", COUNTS, ids=lambda kind: kind.__name__)
def test_a_base_step_and_a_one_shot_domain(
    tmp_path: Path, kind: type[Method], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Backbone, "batch_size", 4)  # less padding for the four images there are
    config = resolve(
        kind.Config, {"base_epochs": 1, "steps": 1, "batch_size": 4}, owner="it", see=""
    )
    backbone = random_vit_b16(text=False)
    method, outcome, _ = learn_two_domains(kind, config, backbone, tmp_path, ("cat", "dog"))
    trained, besides, more = COUNTS[kind]
    assert outcome.trained_parameters == [trained + HEAD] * 2
    assert outcome.state_bytes[1] - outcome.state_bytes[0] == 4 * more
    extra = 12 * (8 + 1) if kind is InfLoRA else 0  # sizes of the bases, and what they span
    assert outcome.state_bytes[0] == 4 * (trained + HEAD + besides) + extra
    assert state_bytes(method.state_dict()) == outcome.state_bytes[1]
    assert all(torch.isfinite(value).all() for value in method.state_dict().values())


# What the base domain and a later one train, with the head.
ASP_ENCODER = 2 * ((768 + 512) * 256 + 256 + 256 * 2304 + 2304)
MORE: dict[type[Method], tuple[int, int]] = {
    ASP: (27_648 + ASP_ENCODER + 2 * 768 + 1, 0),
    SECPrompt: (4 * 49_920 + 2 * 768 + 1, 8 * 2 * 3_840 + 2 * 768 + 1),
    ICON: (42_270 + HEAD, 42_270 + 2 * HEAD),
    DyTox: (7_087_872 + 769 * 2 + 2_304, 7_087_872 + 769 * 2 + 2_304),
    App: (86_192_640 + 2 * 512 + 2 * 512, 2 * 512),
}


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", MORE, ids=lambda kind: kind.__name__)
def test_methods_whose_domains_train_different_parts(
    tmp_path: Path, kind: type[Method], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Backbone, "batch_size", 4)
    short = {"base_epochs": 1, "steps": 1, "batch_size": 4}
    known = {field.name for field in fields(kind.Config)}
    wanted = {name: value for name, value in short.items() if name in known}
    config = resolve(kind.Config, wanted, owner="it", see="")
    backbone = random_vit_b16(text=False)
    method, outcome, _ = learn_two_domains(kind, config, backbone, tmp_path, ("cat", "dog"))
    assert outcome.trained_parameters == list(MORE[kind])
    assert all(torch.isfinite(value).all() for value in method.state_dict().values())


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_deep_prompts_in_both_towers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Backbone, "batch_size", 4)
    config = resolve(
        PGOLike.Config, {"base_epochs": 1, "steps": 1, "batch_size": 4}, owner="it", see=""
    )
    backbone = random_vit_b16(text=True)
    _, outcome, _ = learn_two_domains(PGOLike, config, backbone, tmp_path, ("cat", "dog"))
    assert outcome.trained_parameters == [122_880] * 2
