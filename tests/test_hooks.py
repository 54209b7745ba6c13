"""Every hook has an example that works, and is implemented by a test."""

from __future__ import annotations

import inspect
import re
import typing
from pathlib import Path

import pluggy
import pytest
from hook_examples import HOOKS, example_of

import fsdil_bench
from fsdil_bench.plugins import hookspecs
from fsdil_bench.runs.finished_domain import of_record

TESTS = Path(__file__).parent


@pytest.fixture
def arguments(toy_run):
    """What hooks may be called with."""
    record = toy_run()
    return {"record": record, "domain": next(of_record(record))}


def test_the_known_hooks_are_among_them():
    assert {"fsdil_methods", "fsdil_scenarios", "fsdil_backbones", "fsdil_run_finished"} <= set(
        HOOKS
    )


@pytest.mark.parametrize("name", HOOKS)
def test_the_example_works(name, arguments, capsys):
    """It registers under the name of the hook, and gives what the hook is declared to give."""
    names = {each: getattr(fsdil_bench, each) for each in fsdil_bench.__all__}
    module = type("Example", (), {})()
    exec(compile(example_of(name), name, "exec"), names)
    setattr(module, name, names[name])
    manager = pluggy.PluginManager(hookspecs.GROUP)
    manager.add_hookspecs(hookspecs)
    manager.register(module)
    manager.check_pending()

    specified = inspect.signature(HOOKS[name])
    given = {each: arguments[each] for each in specified.parameters}
    [*results] = getattr(manager.hook, name)(**given)
    types = vars(hookspecs) | names
    wanted = eval(specified.return_annotation, types)
    if wanted is None:
        assert results == []
        assert capsys.readouterr().out  # the example prints something
    else:
        [kind] = typing.get_args(wanted)
        [offered] = results
        assert offered
        assert all(isinstance(each, kind) for each in offered)


@pytest.mark.parametrize("name", HOOKS)
def test_a_test_implements_it(name):
    pattern = re.compile(rf'@hookimpl(?:\(.*\))?(?:\\n|["\s])+def {name}\(')
    assert [path for path in TESTS.rglob("*.py") if pattern.search(path.read_text("utf-8"))]
