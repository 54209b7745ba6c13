"""Training steps that would not fit compute activations again; nothing else changes."""

from __future__ import annotations

import copy

import pytest
import torch
from open_clip.model import CLIP

from fsdil_bench import Backbone, ImageSpec, RequestError
from fsdil_bench.adapters import BlockAdapter, encode_image, encode_text
from fsdil_bench.models import checkpointing
from fsdil_bench.models.checkpointing import Checkpointing, free_memory, kept_bytes

CPU = torch.device("cpu")


def build_model():
    torch.manual_seed(0)
    vision = {"image_size": 64, "patch_size": 8, "width": 64, "layers": 6, "head_width": 32}
    text = {"context_length": 16, "vocab_size": 64, "width": 64, "heads": 2, "layers": 6}
    return CLIP(embed_dim=16, vision_cfg=vision, text_cfg=text, quick_gelu=True)


@pytest.fixture
def backbone():
    made = Backbone(
        "small", build=build_model, weights_hash="0", image=ImageSpec(64), embed_dim=16
    )  # fmt: skip
    made.place(CPU, "fp32", None)
    return made


def place(backbone, choice):
    backbone.place(CPU, "fp32", None, checkpointing=choice)


def kept(run, weights=()):
    """The result, and the bytes that autograd holds for it."""
    held = {}

    def pack(tensor):
        held[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        result = run()
    own = {weight.untyped_storage().data_ptr() for weight in weights}
    return result, sum(t.untyped_storage().nbytes() for p, t in held.items() if p not in own)


def projections():
    """C1 and C2 in all blocks."""
    new = [torch.eye(32).requires_grad_() for _ in range(12)]
    return [BlockAdapter(query=new[i], value=new[i + 6]) for i in range(6)]


def test_choices():
    assert Checkpointing("on", CPU).wanted(1)
    assert not Checkpointing("off", CPU).wanted(1 << 60)
    with pytest.raises(RequestError, match="cannot be 'maybe'"):
        Checkpointing("maybe", CPU)


def test_auto_asks_for_free_memory_once(monkeypatch):
    asked = []
    monkeypatch.setattr(checkpointing, "free_memory", lambda device: asked.append(device) or 1000)
    auto = Checkpointing("auto", CPU)
    assert [auto.wanted(n) for n in (499, 501, 501, 499)] == [False, True, True, False]
    assert len(asked) == 2
    monkeypatch.setattr(checkpointing, "free_memory", lambda device: None)
    assert not Checkpointing("auto", CPU).wanted(1 << 60)


def test_free_memory(monkeypatch, tmp_path):
    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable:    100 kB\n")
    monkeypatch.setattr(checkpointing, "_MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(checkpointing, "_CGROUP", tmp_path)
    assert free_memory(CPU) == 102_400
    (tmp_path / "memory.max").write_text("60000\n")
    (tmp_path / "memory.current").write_text("20000\n")
    assert free_memory(CPU) == 40_000
    (tmp_path / "memory.max").write_text("max\n")
    assert free_memory(CPU) == 102_400
    (tmp_path / "meminfo").unlink()
    assert free_memory(CPU) is None
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (500, 900))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: 70)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: 50)
    assert free_memory(torch.device("cuda")) == 520


@pytest.fixture(params=["fused attention", "whole attention"])
def attention(request, monkeypatch):
    """Attention by torch's fused kernel, and as where oneDNN multiplies."""
    whole, before = request.param == "whole attention", torch.backends.cuda.flash_sdp_enabled()
    monkeypatch.setattr(checkpointing, "onednn_is_better", lambda: whole)
    torch.backends.cuda.enable_flash_sdp(not whole)
    yield
    torch.backends.cuda.enable_flash_sdp(before)


def test_the_estimate_is_what_a_step_keeps(backbone, attention):
    model, pixels = backbone.model, torch.randn(4, 3, 64, 64)
    _, counted = kept(lambda: encode_image(model.visual, pixels, projections()), model.parameters())
    assert kept_bytes(model, images=4) == pytest.approx(counted, rel=0.25)
    tokens = torch.tensor([[1, *range(2, 16), 63]]).repeat(4, 1)
    _, counted = kept(lambda: encode_text(model, tokens, projections()), model.parameters())
    assert kept_bytes(model, text_tokens=64) == pytest.approx(counted, rel=0.25)
    tower = backbone.visual_copy()
    _, counted = kept(lambda: tower(pixels), tower.parameters())
    assert kept_bytes(model, images=4, all_weights=True) == pytest.approx(counted, rel=0.25)


def test_a_tower_that_is_not_known_is_left_alone():
    assert kept_bytes(torch.nn.Linear(2, 2), images=100, text_tokens=7) == 0


def test_a_copy_of_the_tower_decides_for_itself(backbone):
    """Results are the same to the bit, and the copy of a copy does the same."""
    pixels, results = torch.randn(4, 3, 64, 64), {}
    for choice in ("off", "on"):
        place(backbone, choice)
        tower = copy.deepcopy(backbone.visual_copy())
        out, bytes_kept = kept(lambda tower=tower: tower(pixels), tower.parameters())
        grads = torch.autograd.grad(out.square().sum(), list(tower.parameters()))
        results[choice] = (out, grads, bytes_kept)
        with torch.no_grad():
            assert torch.equal(tower(pixels), tower(pixels))
    assert torch.equal(results["off"][0], results["on"][0])
    for one, other in zip(results["off"][1], results["on"][1], strict=True):
        assert torch.equal(one, other)
    assert results["on"][2] < results["off"][2] / 5


def test_what_a_method_asks(backbone, monkeypatch):
    monkeypatch.setattr(checkpointing, "free_memory", lambda device: 2 * kept_bytes(
        backbone.model, images=10))  # fmt: skip
    place(backbone, "auto")
    assert not backbone.checkpoint(images=10)
    assert backbone.checkpoint(images=11)
    assert backbone.checkpoint(images=10, text_tokens=1)
    assert backbone.checkpoint(images=9, all_weights=True)
    place(backbone, "off")
    assert not backbone.checkpoint(images=1 << 40)
