"""CLIP ViT-B/16: the real image tower and real text embeddings, if FSDIL_TEST_ASSETS has them."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import fsdil_bench
from fsdil_bench.data.transforms import build_transform
from fsdil_bench.errors import RequestError
from fsdil_bench.plugins.registry import load_registry

ASSETS = Path(os.environ.get("FSDIL_TEST_ASSETS", "nowhere"))
PLUGIN = Path(__file__).with_name("vit_b16_plugin.py")
CLASSES = ("dog", "elephant", "giraffe", "horse", "house", "person")

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(
        not (ASSETS / "weights" / "vitb16_text_embeddings").is_dir(),
        reason="FSDIL_TEST_ASSETS names no folder with weights of ViT-B/16",
    ),
]


@pytest.fixture(scope="module")
def registry():
    return load_registry([PLUGIN])


def test_real_images_are_nearest_to_their_names(registry):
    backbone = registry.backbone("vit-b16-coco-text").factory()
    transform = build_transform("clip", backbone.image)
    files = [
        path
        for name in CLASSES
        for path in sorted((ASSETS / "data" / "pacs" / "photo" / name).iterdir())[:2]
    ]
    views = torch.stack([transform.plain(np.asarray(Image.open(file))) for file in files])
    images = backbone.encode_image(transform.normalise(views, backbone.device))
    texts = backbone.encode_text([f"a photo of a {name}." for name in CLASSES])
    nearest = (images @ texts.T).argmax(1)
    assert (nearest == torch.arange(len(CLASSES)).repeat_interleave(2)).float().mean() >= 0.9
    # As CLIP's embeddings are: a matching pair has a cosine of about a quarter.
    assert 0.2 < (images @ texts.T).max(1).values.mean() < 0.4


def test_a_class_without_embedding_is_named(registry, tmp_path):
    with pytest.raises(RequestError, match="guitar"):
        fsdil_bench.run(
            "zero-shot", "folder-1shot", data=ASSETS / "data" / "pacs", base="photo",
            backbone="vit-b16-coco-text", registry=registry, out=tmp_path,
        )  # fmt: skip
