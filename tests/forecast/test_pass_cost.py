"""Operations of the towers, counted on the meta device, against the formula for transformers."""

from __future__ import annotations

import pytest

from fsdil_bench.forecast.pass_cost import pass_cost
from fsdil_bench.models.clip.outline import outline
from fsdil_bench.plugins.registry import load_registry
from fsdil_bench.runs.lookup import describe_backbone


def blocks(count, tokens, width):
    """Four projections and an MLP of four widths, then keys and values of all tokens."""
    return count * (24 * tokens * width**2 + 4 * tokens**2 * width)


def test_vit_b16():
    cost = pass_cost(outline("ViT-B-16-quickgelu:openai"))
    ends = 2 * 196 * 768 * 16 * 16 * 3 + 2 * 768 * 512
    assert cost.image.forward == blocks(12, 197, 768) + ends
    assert cost.text.forward * 77 == pytest.approx(blocks(12, 77, 512) + 2 * 512**2)
    both = cost.image.backward + cost.image.weight_backward
    assert both == pytest.approx(2 * cost.image.forward, rel=0.01)
    assert cost.image.backward == pytest.approx(cost.image.forward, rel=0.05)
    weights = cost.image.weight_bytes + cost.text.weight_bytes
    assert weights == 4 * 149_620_737
    assert (cost.image.blocks, cost.image.tokens, cost.text.tokens) == (12, 197, 77)
    # Between the inputs of all linear layers (about 10 widths) and everything that is computed.
    least = 12 * 197 * 768 * 4 * 10
    assert least < cost.image.kept_training < 2.5 * least
    assert cost.image.kept < cost.image.kept_training


def test_a_backbone_that_has_its_weights():
    registry = load_registry()
    cost = pass_cost(describe_backbone(registry.backbone("tiny-clip"), "tiny-clip"))
    assert cost.image.forward == blocks(12, 17, 128) + 2 * 16 * 128 * 12 * 12 * 3 + 2 * 128**2


def test_a_tower_without_tokens():
    cost = pass_cost(outline("RN50-quickgelu:openai"))
    assert cost.image.tokens == 1
    assert 10e9 < cost.image.forward < 14e9
