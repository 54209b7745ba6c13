"""The wheel holds everything, and what it installs works without the source tree."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from packages import build_wheel

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build_wheel(ROOT, tmp_path_factory.mktemp("wheel"))


def tracked(folder: str) -> set[str]:
    names = {p.relative_to(ROOT / folder).as_posix() for p in (ROOT / folder).rglob("*.py")}
    return {name for name in names if "__pycache__" not in name}


def test_wheel_holds_every_module_and_data_file(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    folders = {"fsdil_bench": "fsdil_bench", "methods": "fsdil_methods"}
    for folder, package in {**folders, "scenarios": "fsdil_scenarios"}.items():
        missing = {name for name in tracked(folder) if f"{package}/{name}" not in names}
        assert not missing
    for data in ("drawn/classes.json", "tiny_clip/model.json", "tiny_clip/vocabulary.json",
                 "tiny_clip/weights.safetensors"):  # fmt: skip
        assert f"fsdil_scenarios/{data}" in names
    for data in ("py.typed", "records/record.schema.json", "analysis/paper/results.csv",
                 "analysis/published.json"):  # fmt: skip
        assert f"fsdil_bench/{data}" in names
    for asset in ("page.html", "page.css", "main.js"):
        assert f"fsdil_bench/report/leaderboards/assets/{asset}" in names
    for kind in ("method", "scenario"):
        for file in ("README.md", "pyproject.toml"):
            assert f"fsdil_bench/plugins/scaffold/templates/{kind}_package/{file}" in names
    assert not [name for name in names if name.startswith(("tests/", "benchmarks/", "methods/"))]
    weights = zipfile.ZipFile(wheel).getinfo("fsdil_scenarios/tiny_clip/weights.safetensors")
    assert weights.file_size <= 25 * 2**20


def test_installed_wheel_runs_apart_from_the_source_tree(wheel, tmp_path):
    site = tmp_path / "site"
    install = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--target",
        str(site),
    ]
    subprocess.run([*install, str(wheel)], check=True, capture_output=True)
    environment = os.environ | {"PYTHONPATH": str(site)}

    def call(*arguments):
        command = [sys.executable, *arguments]
        return subprocess.run(
            command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=True
        ).stdout

    where = "import fsdil_bench, fsdil_methods, fsdil_scenarios as s; print(s.__file__)"
    assert str(site) in call("-c", where)
    assert "drawn" in call("-m", "fsdil_bench", "list", "scenarios")
    run = call(
        "-m",
        "fsdil_bench",
        "run",
        "-m",
        "zero-shot",
        "-s",
        "drawn-1shot",
        "--order",
        "sketch",
        "-q",
    )
    assert "record: runs/drawn-1shot/zero-shot" in run


def test_editable_install_is_what_the_tests_run_on():
    """`pip install -e` maps the folders methods/ and scenarios/ to their import names."""
    import fsdil_methods
    import fsdil_scenarios

    assert Path(fsdil_methods.__file__).parent == ROOT / "methods"
    assert Path(fsdil_scenarios.__file__).parent == ROOT / "scenarios"
