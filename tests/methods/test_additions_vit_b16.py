"""Methods that add to the image tower, on the shapes of CLIP ViT-B/16 without a text tower."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from fsdil_methods.prompts.coda_prompt import CODAPrompt
from fsdil_methods.prompts.dualprompt import DualPrompt
from fsdil_methods.prompts.l2p import L2P
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
