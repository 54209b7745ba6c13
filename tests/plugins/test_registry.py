from __future__ import annotations

import subprocess
import sys
import textwrap
from importlib.metadata import EntryPoint

import pytest

from fsdil_bench.errors import RequestError
from fsdil_bench.plugins import registry as plugins
from fsdil_bench.plugins.registry import load_registry


@pytest.fixture
def plugin_file(tmp_path):
    def write(name, text):
        path = tmp_path / f"{name}.py"
        path.write_text(
            "from fsdil_bench import *\nfrom fsdil_bench import hookimpl\n" + textwrap.dedent(text)
        )
        return path

    return write


GOOD = """
    @hookimpl
    def fsdil_methods():
        return [MethodInfo("extra", "a method", "nowhere:Nothing")]
"""


def problems_of(registry, name):
    return next(p for p in registry.plugins if p.name == name).problems


def test_built_in_plugins_are_sound():
    registry = load_registry()
    assert registry.warnings() == []
    assert {"zero-shot", "ncm", "slda", "ranpac", "linear-probe", "finetune"} <= set(
        registry.methods
    )
    assert {"drawn", "folder"} <= set(registry.scenarios)
    assert "tiny-clip" in registry.backbones


def test_file_plugin(plugin_file):
    registry = load_registry([plugin_file("good", GOOD)])
    assert registry.method("extra").summary == "a method"
    assert registry.sources["method extra"] == "good"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("importing", "raise RuntimeError('broken on purpose')", "broken on purpose"),
        ("exiting", "raise SystemExit(3)", "SystemExit"),
        ("syntax", "def (", "SyntaxError"),
        ("misspelt", "@hookimpl\ndef fsdil_metods(): return []", "fsdil_metods"),
        ("argument", "@hookimpl\ndef fsdil_run_finished(rekord): pass", "rekord"),
        ("version", "FSDIL_API = 99\n", "API 99"),
        ("empty", "x = 1\n", "@hookimpl"),
        ("raising", "@hookimpl\ndef fsdil_methods(): raise KeyError('k')", "KeyError"),
        ("typed", "@hookimpl\ndef fsdil_methods(): return ['no info']", "not a MethodInfo"),
        ("clash", GOOD.replace('"extra"', '"ncm"'), "'ncm' is already provided by 'methods'"),
    ],
)  # fmt: skip
def test_a_broken_plugin_costs_only_itself(plugin_file, name, text, message):
    registry = load_registry([plugin_file(name, text), plugin_file("good", GOOD)])
    assert len(problems_of(registry, name)) == 1
    assert message in problems_of(registry, name)[0]
    assert len(registry.warnings()) == 1
    assert "\n" not in registry.warnings()[0]
    assert "extra" in registry.methods
    assert registry.sources["method ncm"] == "methods"


def test_broken_entry_point(monkeypatch):
    broken = EntryPoint("third-party", "no_such_module_anywhere", "fsdil_bench")
    found = plugins._installed()
    monkeypatch.setattr(plugins, "_installed", lambda: [*found, broken])
    registry = load_registry()
    assert "no_such_module_anywhere" in problems_of(registry, "third-party")[0]
    assert "ncm" in registry.methods


def test_missing_file_is_the_users_error():
    with pytest.raises(RequestError, match=r"nowhere\.py"):
        load_registry(["nowhere.py"])


def test_nearest_name_is_suggested():
    with pytest.raises(RequestError, match="zero-shot"):
        load_registry().method("zeroshot")


def test_run_finished_is_called_and_isolated(plugin_file):
    heard = """
        heard = []
        @hookimpl
        def fsdil_run_finished(record):
            heard.append(record)
    """
    failing = "@hookimpl\ndef fsdil_run_finished(record): raise OSError('no network')"
    registry = load_registry([plugin_file("failing", failing), plugin_file("heard", heard)])
    failures = registry.notify_finished("the record")
    assert len(failures) == 1
    assert "no network" in failures[0]
    assert sys.modules["fsdil_plugin_heard"].heard == ["the record"]


def test_listing_imports_nothing_heavy():
    code = (
        "import sys; sys.argv = ['fsdil-bench', 'list', 'methods'];"
        "from fsdil_bench.cli import cli; cli(standalone_mode=False);"
        "heavy = {'torch', 'avalanche', 'open_clip', 'torchvision', 'pandas'} & set(sys.modules);"
        "print('heavy:', sorted(heavy))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert "heavy: []" in result.stdout
    assert "zero-shot" in result.stdout
