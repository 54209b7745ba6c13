"""CVLC on the shapes of CLIP ViT-B/16, with random weights: a base step and a few-shot domain."""

from __future__ import annotations

import numpy as np
import open_clip
import pytest
import torch
from fsdil_methods.cvlc.config import Config
from fsdil_methods.cvlc.method import CVLC

from fsdil_bench import Backbone, Context, Domain, ImageSpec, Samples, Stream
from fsdil_bench.folder import RunFolder
from fsdil_bench.pictures import Pictures
from fsdil_bench.progress import Progress
from fsdil_bench.protocol import Loop
from fsdil_bench.transforms import build_transform

MODEL = "ViT-B-16-quickgelu"
NAMES = ("flip phone", "kitchen shears", "globe light bulb")
SYNONYMS = (("clamshell phone",), ("cooking scissors",), ("round bulb",))
CONFIG = Config(base_epochs=1, epochs=1, batch_size=6, least_views=1, candidates=12)


def picture(sample_id: str) -> np.ndarray:
    noise = np.random.default_rng(sum(sample_id.encode()))
    return noise.integers(0, 256, (240, 260, 3)).astype(np.uint8)


def samples(domain: int, part: str, each: int) -> Samples:
    ids = tuple(f"{domain}/{part}/{c}/{i}" for c in range(3) for i in range(each))
    return Samples(ids, np.repeat(np.arange(3), each), picture)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_one_base_step_and_one_few_shot_domain(tmp_path):
    torch.manual_seed(0)
    backbone = Backbone(
        MODEL,
        build=lambda: open_clip.create_model(MODEL, load_weights=False),
        weights_hash="random",
        image=ImageSpec(224),
        embed_dim=512,
        tokenizer=open_clip.get_tokenizer(MODEL),
    )
    domains = tuple(
        Domain(f"d{t}", samples(t, "train", 1 if t else 2), samples(t, "test", 1)) for t in range(2)
    )
    stream = Stream("random", NAMES, domains, SYNONYMS)
    frozen = {name: value.clone() for name, value in backbone.model.state_dict().items()}
    pictures = Pictures(
        stream, backbone, build_transform("clip", backbone.image), tmp_path, Progress()
    )
    method = CVLC(Context(CONFIG, backbone, NAMES, SYNONYMS, 0))
    folder = RunFolder(tmp_path / "run")
    folder.path.mkdir()
    loop = Loop(
        "cvlc", method, stream, pictures, 0, True, folder, Progress(), keep_checkpoints=True
    )
    outcome = loop.run()
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
