"""Shared by all tests: a cache and a working folder of their own, and the toy plugin."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

if "PYTEST_XDIST_WORKER" in os.environ:  # before torch is imported: the cores are shared
    os.environ.setdefault("OMP_NUM_THREADS", "1")

from fsdil_bench.plugins import harness_guard
from fsdil_bench.plugins.registry import Registry

# Tests may change the harness themselves, and no plugin is blamed for it. This is done before the
# guard notes what the harness is like.
_check_harness = Registry.check_harness
Registry.check_harness = lambda self: None  # type: ignore[method-assign]

TOY = Path(__file__).parent / "toy_plugin.py"
#: The same in two plugins, as sealed runs need it.
TOY_PARTS = [TOY.with_name("toy_world_plugin.py"), TOY.with_name("toy_methods_plugin.py")]


@pytest.fixture
def guarded():
    """For tests in which a changed harness is to be noticed; what earlier tests left is not."""
    with pytest.MonkeyPatch.context() as patch:  # a test may undo its own patches before the end
        patch.setattr(Registry, "check_harness", _check_harness)
        patch.setattr(harness_guard, "_known", {})
        patch.setattr(harness_guard, "_modules", {})
        harness_guard.snapshot()
        yield


@pytest.fixture(autouse=True)
def _own_cache(request, tmp_path_factory, monkeypatch):
    """No test reads or writes the user's cache, nor knows how wide the window is."""
    monkeypatch.delenv("COLUMNS", raising=False)
    if "drawn_cache" not in request.fixturenames:
        monkeypatch.setenv("FSDIL_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(scope="session")
def drawn_cache(tmp_path_factory):
    """One cache for all tests on the drawn world, whose pictures take a while to draw: also for
    those of other processes."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FSDIL_CACHE", str(shared / "drawn-cache"))
        yield


@pytest.fixture(scope="session")
def toy_registry():
    from fsdil_bench.plugins.registry import load_registry

    return load_registry([TOY])


@pytest.fixture
def toy_run(toy_registry, tmp_path):
    """Run a toy method on the toy stream."""
    import fsdil_bench

    def run(method="toy-means", scenario="toy-1shot", **options):
        options.setdefault("out", tmp_path / "runs")
        offered = {"plugins": TOY_PARTS} if options.get("sealed") else {"registry": toy_registry}
        return fsdil_bench.run(method, scenario, **offered, **options)

    return run


@pytest.fixture
def toy_job(toy_registry):
    """Prepare a run of a toy method on the toy stream."""
    from fsdil_bench.runs.job import prepare
    from fsdil_bench.runs.request import RunRequest

    def make(method="toy-means", scenario="toy-1shot", **options):
        return prepare(RunRequest.of(method=method, scenario=scenario, **options), toy_registry)

    return make


@pytest.fixture(scope="session")
def made():
    """Records that were never run (benchmarks/made_records.py)."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parent.parent))
        from benchmarks import made_records
    return made_records


@pytest.fixture
def call(monkeypatch, capsys, tmp_path):
    """Call the command line as a user does, in an empty folder; gives exit code, standard output
    and errors."""
    from fsdil_bench import cli

    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["fsdil-bench", *map(str, arguments)])
        try:
            cli.main()
            code = 0
        except SystemExit as stop:
            code = stop.code or 0
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture
def reference():
    """Arrays that functions of CVLC's authors gave, where FSDIL_TEST_ASSETS has them."""
    import numpy as np

    def load(name):
        path = Path(os.environ.get("FSDIL_TEST_ASSETS", "")) / "fixtures" / f"{name}.npz"
        if not ("FSDIL_TEST_ASSETS" in os.environ and path.is_file()):
            pytest.skip(f"FSDIL_TEST_ASSETS names no folder with fixtures/{name}.npz")
        return dict(np.load(path))

    return load
