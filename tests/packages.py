"""Packages for tests: built as wheels, or taken as if they were installed."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from fsdil_bench.plugins import harness_guard
from fsdil_bench.plugins import registry as plugins
from fsdil_bench.plugins.registry import Registry, load_registry

TOY = Path(__file__).parent / "toy_plugin.py"


_NOT_SOURCE = (".*", "__pycache__", "build", "dist", "*.egg-info")


def build_wheel(source: Path, out: Path) -> Path:
    """Build in a copy: two tests at a time would write into each other's build folder, and old
    files in it would get into the wheel."""
    copy = out / "source"
    shutil.copytree(source, copy, ignore=shutil.ignore_patterns(*_NOT_SOURCE))
    command = [sys.executable, "-m", "build", "--wheel", "--outdir", str(out), str(copy)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    return next(out.glob("*.whl"))


def as_if_installed(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Registry:
    """All plugins with the package in `folder`, found by the entry point it declares."""
    declared = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))
    points = declared["project"]["entry-points"]["fsdil_bench"]
    found = plugins._installed()
    added = [EntryPoint(name, value, "fsdil_bench") for name, value in points.items()]
    monkeypatch.syspath_prepend(str(folder / "src"))
    monkeypatch.setattr(plugins, "_installed", lambda: [*found, *added])
    for name in ("_known", "_modules"):  # this change is nobody's fault
        monkeypatch.setattr(harness_guard, name, {})
    return load_registry([TOY])
