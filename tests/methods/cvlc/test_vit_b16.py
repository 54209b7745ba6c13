"""CVLC on the shapes of CLIP ViT-B/16, with random weights: a base step and a few-shot domain."""

from __future__ import annotations

import pytest
import torch
from fsdil_methods.cvlc.config import Config
from fsdil_methods.cvlc.method import CVLC
from vit_b16 import learn_two_domains, random_vit_b16

NAMES = ("flip phone", "kitchen shears", "globe light bulb")
SYNONYMS = (("clamshell phone",), ("cooking scissors",), ("round bulb",))
CONFIG = Config(base_epochs=1, epochs=1, batch_size=6, least_views=1, candidates=12)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_one_base_step_and_one_few_shot_domain(tmp_path):
    backbone = random_vit_b16(text=True)
    frozen = {name: value.clone() for name, value in backbone.model.state_dict().items()}
    _, outcome, folder = learn_two_domains(CVLC, CONFIG, backbone, tmp_path, NAMES, SYNONYMS)
    before, after = folder.load_state(0), folder.load_state(1)

    # The paper's table: 65,536 shared and 32,768 specific numbers in each tower; beside them a
    # shift, the text shift, ten scalars, and the temporary classifier with its scale.
    trained = 2 * (65_536 + 32_768) + 2 * 512 + 10 + 3 * 512 + 1
    assert outcome.trained_parameters == [trained, trained]
    assert [len(row) for row in outcome.oracle_matrix] == [1, 2]
    for name, value in backbone.model.state_dict().items():
        assert torch.equal(value, frozen[name])
    shared = [name for name in before if name.startswith("weights.shared")]
    base = [name for name in before if name.startswith("weights.domains.0.")]
    assert shared
    assert base
    assert not any(torch.equal(before[name], after[name]) for name in shared)
    assert all(torch.equal(before[name], after[name]) for name in base)
    assert before["prototypes"].norm(dim=-1).allclose(torch.ones(1, 3))
    assert after["prototypes"].shape == (2, 3, 512)
    assert torch.isfinite(after["prototypes"]).all()
