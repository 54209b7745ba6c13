"""Real images, and the real image tower of CLIP ViT-B/16, where FSDIL_TEST_ASSETS has them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import fsdil_bench
from fsdil_bench.plugins import load_registry

ASSETS = os.environ.get("FSDIL_TEST_ASSETS", "")
PACS = Path(ASSETS) / "data" / "pacs"
ORDER = ["photo", "art_painting", "cartoon", "sketch"]
PLUGIN = Path(__file__).with_name("vit_b16_plugin.py")

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(
        not (ASSETS and PACS.is_dir()), reason="FSDIL_TEST_ASSETS names no folder with data/pacs"
    ),
]


@pytest.fixture(scope="module")
def registry():
    return load_registry([PLUGIN])


def run_pacs(registry, method, out, **options):
    options = {"data": PACS, "order": ORDER, "out": out} | options
    return fsdil_bench.run(method, registry=registry, **options)


@pytest.mark.parametrize("method", ["zero-shot", "ncm"])
def test_tiny_clip_runs_on_real_photographs(registry, method, tmp_path):
    record = run_pacs(registry, method, tmp_path, scenario="folder-2shot", base_limit=20)
    assert [domain["name"] for domain in record.scenario["domains"]] == ORDER
    assert record.scenario["classes"] == [
        "dog", "elephant", "giraffe", "guitar", "horse", "house", "person",
    ]  # fmt: skip
    assert [domain["train"] for domain in record.scenario["domains"]] == [140, 14, 14, 14]
    # tiny-clip knows drawn objects, not photographs of animals: only the protocol is tested here.
    assert 0 <= record.metrics["Last"] <= 100


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("shots", [1, 8])
@pytest.mark.parametrize("method", ["ncm", "linear-probe"])
def test_real_clip_looks_like_clip(registry, method, shots, tmp_path, pytestconfig, monkeypatch):
    # One cache for all four: the tower embeds about six images per second on two cores.
    cache = Path(str(pytestconfig.cache.mkdir("real-clip")))
    monkeypatch.setenv("FSDIL_CACHE", str(cache))
    record = run_pacs(
        registry, method, tmp_path, scenario=f"folder-{shots}shot", backbone="vit-b16-visual"
    )
    print(method, shots, record.metrics, record.matrix)
    assert record.matrix[0][0] > 90
    if shots == 8:
        assert record.metrics["Last"] > 70
