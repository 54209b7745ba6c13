"""`--compile`: compiled MLPs compute the same, and what is kept for all runs is not compiled."""

from __future__ import annotations

import pytest
import torch
from small_clip import build_model, tokenize
from torch._dynamo.utils import counters

from fsdil_bench import Backbone, ImageSpec, RequestError
from fsdil_bench.adapters import encode_image
from fsdil_bench.models import compiling

CPU = torch.device("cpu")
SIZE = 8


def small_backbone():
    return Backbone(
        "small", build=build_model, weights_hash="0", image=ImageSpec(SIZE), embed_dim=16,
        tokenizer=tokenize,
    )  # fmt: skip


@pytest.fixture
def pixels():
    return torch.randn(3, 3, SIZE, SIZE, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def backbone(monkeypatch):
    """A backbone whose MLPs are compiled, by a backend that needs no compiler."""
    monkeypatch.setattr(compiling, "BACKEND", "eager")
    torch._dynamo.reset()
    counters.clear()
    made = small_backbone()
    made.place(CPU, "fp32", None, compiles=True)
    return made


def compiled_frames():
    return counters["frames"]["ok"]


def test_adapted_towers_run_compiled(backbone, pixels):
    plain = small_backbone()
    plain.place(CPU, "fp32", None)
    expected = plain.run_with(lambda x: encode_image(plain.model.visual, x), pixels)
    assert compiled_frames() == 0
    found = backbone.run_with(lambda x: encode_image(backbone.model.visual, x), pixels)
    assert compiled_frames() > 0
    assert torch.equal(found, expected)


def test_what_is_kept_for_all_runs_is_not_compiled(backbone, pixels):
    backbone.frozen_features(pixels)
    backbone.encode_image(pixels)
    backbone.encode_text(["a cup"])
    assert compiled_frames() == 0


def test_a_copy_has_compiled_mlps_of_its_own(backbone, pixels):
    tower = backbone.visual_copy()
    before = tower(pixels)
    with torch.no_grad():
        tower.transformer.resblocks[0].mlp.c_fc.weight.add_(1.0)
    assert not torch.equal(tower(pixels), before)
    assert compiled_frames() > 0
    tower(pixels).sum().backward()
    assert tower.transformer.resblocks[0].mlp.c_fc.weight.grad is not None


def test_an_old_torch_is_refused(monkeypatch):
    monkeypatch.delattr(torch.compiler, "set_stance")
    with pytest.raises(RequestError, match="cannot leave kept features out"):
        compiling.require_compiler()


def test_a_compiled_run_has_the_same_id_and_says_so(toy_run, tmp_path):
    plain, made = toy_run(), toy_run(compile=True, out=tmp_path / "compiled")
    assert made.run_id == plain.run_id
    assert (plain.provenance["compile"], made.provenance["compile"]) == (False, True)


@pytest.mark.slow
def test_real_compiled_code_agrees(pixels):
    torch._dynamo.reset()
    plain, made = small_backbone(), small_backbone()
    plain.place(CPU, "fp32", None)
    made.place(CPU, "fp32", None, compiles=True)
    one, other = (
        each.run_with(lambda x, each=each: encode_image(each.model.visual, x), pixels)
        for each in (plain, made)
    )
    torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
