"""A small model of open_clip with random weights."""

from __future__ import annotations

import json
from types import SimpleNamespace

import open_clip
import pytest
import torch
from clip_world import CONFIG, MODEL, random_model


@pytest.fixture(scope="session")
def test_clip(tmp_path_factory):
    """The model as open_clip builds it, its weights, and what it says of an image and a text."""
    config = tmp_path_factory.mktemp("configs") / f"{MODEL}.json"
    config.write_text(json.dumps(CONFIG))
    open_clip.add_model_config(config)
    model = random_model(0)
    pixels = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(1))
    return SimpleNamespace(
        model=model, name=MODEL, config=CONFIG, state=model.state_dict(), pixels=pixels
    )


@pytest.fixture(scope="session")
def expected(test_clip):
    """Unit embeddings of `pixels` and of texts, by open_clip itself."""

    @torch.no_grad()
    def embed(texts=None, model=test_clip.model):
        if texts is None:
            return model.encode_image(test_clip.pixels, normalize=True)
        return model.encode_text(open_clip.tokenize(texts), normalize=True)

    return embed
