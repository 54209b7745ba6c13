"""The public API is what `fsdil_bench` exports, and the built-in plugins need nothing else."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

import fsdil_bench

ROOT = Path(fsdil_bench.__file__).parent.parent
PLUGIN_FILES = [p for folder in ("methods", "scenarios") for p in (ROOT / folder).rglob("*.py")]


def test_every_exported_name_can_be_imported():
    assert sorted(fsdil_bench.__all__) == fsdil_bench.__all__
    for name in fsdil_bench.__all__:
        assert getattr(fsdil_bench, name) is not None
    with pytest.raises(AttributeError):
        fsdil_bench.no_such_name  # noqa: B018


@pytest.mark.parametrize("path", PLUGIN_FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_built_in_plugins_use_only_the_public_api(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("fsdil_bench"):
            assert node.module in ("fsdil_bench", "fsdil_bench.adapters")
            public = importlib.import_module(node.module).__all__
            assert {alias.name for alias in node.names} <= set(public)
        if isinstance(node, ast.Import):
            assert not any(alias.name.startswith("fsdil_bench") for alias in node.names)


def test_an_unknown_argument_is_named_with_the_nearest_and_all_others(toy_registry, tmp_path):
    for call, given, others in (
        (fsdil_bench.run, ["toy-means", "toy-1shot"], ("reuse_base", "workers", "fresh")),
        (fsdil_bench.load_stream, ["toy-1shot"], ("base_limit", "synonyms", "registry")),
    ):
        with pytest.raises(fsdil_bench.RequestError) as caught:
            call(*given, registry=toy_registry, sede=1)
        assert f"unknown argument of {call.__name__}: 'sede'" in caught.value.message
        assert "Did you mean 'seed" in caught.value.remedy
        assert all(name in caught.value.remedy for name in others)
