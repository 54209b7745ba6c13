"""Matrix products by oneDNN: as precise as any in float32, and only where they help."""

from __future__ import annotations

import contextlib

import pytest
import torch
import torch.nn.functional as F

from fsdil_bench.models import cpu_products
from fsdil_bench.models.device import full_precision, numerics

MATMUL = getattr(torch.backends.mkldnn, "matmul", None)
pytestmark = pytest.mark.skipif(
    not hasattr(MATMUL, "fp32_precision") or not torch.backends.mkldnn.is_available(),
    reason="this torch cannot be told to ask oneDNN",
)


def switches():
    return MATMUL.fp32_precision, torch.backends.cuda.flash_sdp_enabled()


@pytest.fixture
def suitable(monkeypatch):
    """A processor as it should be, whatever the tests run on; the answer is not remembered."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: True)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX512")
    monkeypatch.setattr(cpu_products, "_maker_is_amd", lambda: True)
    monkeypatch.setattr(cpu_products, "products_are_precise", lambda: True)
    monkeypatch.setattr(
        cpu_products, "_onednn_is_better", cpu_products._onednn_is_better.__wrapped__
    )


def test_a_run_computes_with_them_and_leaves_no_trace(suitable):
    outside = switches()
    with numerics("fp32"):
        assert switches() == ("bf16", False)
        with full_precision(torch.device("cpu")):
            assert switches() == ("bf16", False)
        assert switches() == ("bf16", False)
    assert switches() == outside
    with contextlib.suppress(ValueError), numerics("fp32"):
        raise ValueError
    assert switches() == outside


@pytest.mark.parametrize(
    ("place", "name", "value"),
    [
        (torch.cuda, "is_available", True),
        (torch.backends.mkl, "is_available", False),
        (torch.backends.cpu, "get_cpu_capability", "AVX2"),
        (cpu_products, "_maker_is_amd", False),
        (cpu_products, "products_are_precise", False),
    ],
)
def test_elsewhere_torch_chooses(suitable, monkeypatch, place, name, value):
    monkeypatch.setattr(place, name, lambda: value)
    outside = switches()
    with numerics("fp32"):
        assert switches() == outside


def test_a_torch_without_the_switch_keeps_its_products(suitable, monkeypatch):
    monkeypatch.setattr(torch.backends.mkldnn, "matmul", object())
    with numerics("fp32"):
        pass


def test_the_maker_is_read_from_the_system(tmp_path, monkeypatch):
    file = tmp_path / "cpuinfo"
    monkeypatch.setattr(cpu_products, "_CPUINFO", file)
    assert not cpu_products._maker_is_amd()
    file.write_text("processor : 0\nvendor_id : AuthenticAMD\n")
    assert cpu_products._maker_is_amd()
    file.write_text("processor : 0\nvendor_id : GenuineIntel\n")
    assert not cpu_products._maker_is_amd()


@pytest.mark.parametrize("digits", [torch.bfloat16, torch.float16])
def test_products_of_fewer_digits_are_noticed(monkeypatch, digits):
    """As on a processor that multiplies bfloat16 faster; float16 has the digits of TF32."""
    multiply = torch.Tensor.__matmul__

    def coarse(a, b):
        if a.dtype != torch.float32 or (a < 0).sum() == 0:  # the exact product, and its scale
            return multiply(a, b)
        return multiply(a.to(digits).float(), b.to(digits).float())

    monkeypatch.setattr(torch.Tensor, "__matmul__", coarse)
    assert not cpu_products.products_are_precise()


needs_them = pytest.mark.skipif(not cpu_products.onednn_is_better(), reason="not on this processor")


@needs_them
@pytest.mark.parametrize("shape", [(1, 5, 3), (33, 17, 129), (544, 128, 384), (300, 3072, 64)])
def test_products_and_their_gradients_are_float32(shape):
    rows, terms, columns = shape
    torch.manual_seed(0)
    x, w = torch.randn(rows, terms), torch.randn(columns, terms)
    with numerics("fp32"):
        ours = gradients(x, w)
    for name, ours_, exact in zip("yxw", ours, gradients(x.double(), w.double()), strict=True):
        scale = exact.abs().max()
        assert ((ours_ - exact).abs().max() / scale) < 1e-5, name


def gradients(x, w):
    x, w = x.clone().requires_grad_(), w.clone().requires_grad_()
    y = F.linear(x, w)
    return y.detach(), *torch.autograd.grad(y.square().sum(), (x, w))


@needs_them
@pytest.mark.parametrize("masked", [False, True])
def test_attention_is_the_same(masked):
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 2, 4, 37, 16)
    mask = torch.ones(37, 37, dtype=torch.bool).tril() if masked else None
    plain = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    with numerics("fp32"):
        ours = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    assert torch.allclose(plain, ours, atol=1e-5)
