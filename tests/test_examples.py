"""The packages in examples/ work as a third party's would: found, run, ranked."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest
from packages import as_if_installed, build_wheel

import fsdil_bench
from fsdil_bench import cli

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"


@pytest.mark.parametrize(
    ("example", "method", "scenario", "config"),
    [
        ("fsdil-hello", "hello", "toy-1shot", {}),
        ("fsdil-stripes", "ncm", "stripes-1shot", {}),
        ("fsdil-avalanche", "avalanche-mas", "toy-1shot", {"steps": 1}),
        ("fsdil-rotated", "ncm", "rotated-1shot", {}),
    ],
)
def test_an_example_is_found_and_runs(monkeypatch, tmp_path, example, method, scenario, config):
    registry = as_if_installed(monkeypatch, EXAMPLES / example)
    assert registry.warnings() == []
    record = fsdil_bench.run(
        method,
        scenario,
        config=config,
        backbone="toy-clip",
        base_limit=2,
        registry=registry,
        out=tmp_path,
    )
    assert len(record.matrix) >= 3
    assert record.metrics["Last"] > 0


def test_hello_follows_its_formula(monkeypatch, tmp_path):
    """With a prior beyond all images it is zero-shot; without, the balanced class mean."""
    registry = as_if_installed(monkeypatch, EXAMPLES / "fsdil-hello")

    def matrix(method, **config):
        return fsdil_bench.run(
            method, "toy-2shot", config=config, registry=registry, out=tmp_path
        ).matrix

    assert matrix("hello", prior=1e9) == matrix("zero-shot")
    assert matrix("hello", prior=0.0) == matrix("ncm", mode="balanced")
    assert matrix("zero-shot") != matrix("ncm", mode="balanced")


def written(kind: str, place: Path) -> Path:
    """A package as `fsdil-bench new-<kind> --package` writes it."""
    arguments = [f"new-{kind}", f"fresh-{kind}", "--package", "--out", str(place)]
    cli.cli.main(arguments, standalone_mode=False)
    return place / f"fresh-{kind}"


@pytest.mark.slow
@pytest.mark.parametrize(
    "package",
    ["fsdil-hello", "fsdil-stripes", "fsdil-avalanche", "fsdil-rotated", "method", "scenario"],
)
def test_a_package_is_built_installed_and_passes_its_tests(tmp_path, package):
    if (EXAMPLES / package).is_dir():
        source = shutil.copytree(EXAMPLES / package, tmp_path / package)
    else:
        source = written(package, tmp_path)
    wheel = build_wheel(source, tmp_path / "wheels")
    site = tmp_path / "site"
    install = ["-m", "pip", "install", "--quiet", "--no-deps", "--target", str(site), str(wheel)]
    subprocess.run([sys.executable, *install], check=True, capture_output=True)
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")]),
        "FSDIL_CACHE": str(tmp_path / "cache"),
    }
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", str(source / "tests")],
        capture_output=True, text=True, cwd=tmp_path, env=environment,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr
    assert "passed" in result.stdout


def test_a_third_partys_method_in_a_fresh_environment(tmp_path):
    """Project and example as wheels; only their dependencies are this environment's."""
    hello = shutil.copytree(EXAMPLES / "fsdil-hello", tmp_path / "fsdil-hello")
    wheels = [build_wheel(s, tmp_path / f"wheel-{i}") for i, s in enumerate((ROOT, hello))]
    place = tmp_path / "venv"
    venv.create(place, with_pip=False, symlinks=True)
    python = place / "bin" / "python"
    alone = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}

    def call(*command):
        result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=alone)
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout

    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps"]
    call(*pip, *wheels)
    [site] = place.glob("lib/python*/site-packages")
    # Afterwards, so that pip has seen an empty environment; paths in here are not searched for
    # editable installs.
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    where = "import fsdil_bench, fsdil_hello; print(fsdil_bench.__file__, fsdil_hello.__file__)"
    assert call(python, "-c", where).count(str(site)) == 2

    bench = place / "bin" / "fsdil-bench"
    assert "hello" in call(bench, "list", "methods")
    assert "fsdil-hello 0.1.0" in call(bench, "list", "plugins")
    assert "checks passed" in call(bench, "check", "hello", "--quiet")
    short = ["-s", "drawn-1shot", "--order", "real,sketch", "--base-limit", "2", "-q"]
    for method in ("hello", "ncm"):
        assert f"record: runs/drawn-1shot/{method}" in call(bench, "run", "-m", method, *short)
    call(bench, "leaderboard", "runs", "--out", "boards")
    [board] = (tmp_path / "boards").glob("drawn-1shot*.md")
    assert "hello" in board.read_text()
