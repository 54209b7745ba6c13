"""CVLC with all its savings computes what the plain formulation of the benchmark computes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
import toy_plugin
from open_clip.model import CLIP

from fsdil_bench import Backbone, ImageSpec

ROOT = Path(__file__).parent.parent
NAMES = ["small cat", "dog", "old big house"]
SYNONYMS = [["kitten", "tom cat"], ["hound", "puppy dog"], ["villa", "cottage"]]


@pytest.fixture
def speed(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks import cvlc_speed

    yield cvlc_speed
    for name in [name for name in sys.modules if name.startswith("benchmarks")]:
        del sys.modules[name]


def build_model() -> CLIP:
    torch.manual_seed(0)
    vision = {"image_size": 16, "patch_size": 8, "width": 32, "layers": 3, "head_width": 16}
    text = {"context_length": 12, "vocab_size": 66, "width": 32, "heads": 2, "layers": 3}
    return CLIP(embed_dim=16, vision_cfg=vision, text_cfg=text)


def tokenize(texts):
    rows = torch.zeros(len(texts), 12, dtype=torch.long)
    words = toy_plugin.tokenize(texts)
    for row, word, text in zip(rows, words, texts, strict=True):
        length = min(6, len(text.split()))
        row[0], row[1 : length + 1], row[length + 1] = 64, word[:length], 65
    return rows


def test_the_same_results(speed, tmp_path):
    results = []
    for kind in ("ours", "plain"):
        backbone = Backbone(
            "small", build=build_model, weights_hash="small", image=ImageSpec(16), embed_dim=16,
            tokenizer=tokenize,
        )  # fmt: skip
        stream = speed.make_stream(NAMES, SYNONYMS)
        results.append(
            speed.measure(kind, backbone, stream, tmp_path / kind, shared_blocks=2, candidates=12)
        )
    found = speed.differences(*results)
    assert found["prototypes"] < 1e-4
    assert found["routed"] == found["classes"] == found["oracle"] == 0
    assert all(len(result["seconds"]) == 3 for result in results)
    # The savings are about how, not what: a wrong constant anywhere must show.
    results[1]["prototypes"][0, 0, 0] += 1e-2
    assert speed.differences(*results)["prototypes"] > 1e-3
