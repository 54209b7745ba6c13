"""The names that the shell completes: methods, scenarios, backbones, launchers and so on.

They are those of installed plugins. A file of `--plugin` is not executed for it, since a key that
completes a word should run nothing that was not run before. Broken plugins are passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from click import Context, Parameter
from click.shell_completion import CompletionItem

from fsdil_bench.plugins.descriptors import ScenarioInfo
from fsdil_bench.plugins.registry import Registry, load_registry

#: What `shell_complete` of an option or argument takes.
Completer = Callable[[Context, Parameter, str], list[CompletionItem]]
#: Names with what is said about each.
Named = Iterable[tuple[str, str]]


def _completer(known: Callable[[Registry, str], Named]) -> Completer:
    def complete(context: Context, parameter: Parameter, incomplete: str) -> list[CompletionItem]:
        del context, parameter
        named = known(load_registry(), incomplete)
        return [CompletionItem(name, help=what) for name, what in _beginning(named, incomplete)]

    return complete


def _beginning(named: Named, start: str) -> Iterator[tuple[str, str]]:
    return ((name, what) for name, what in named if name.startswith(start))


def _scenarios(registry: Registry, incomplete: str) -> Named:
    """Ids; those with a variant only after the id without, since they are many."""
    for info in registry.scenarios.values():
        for name in (f"{info.name}-{shots}shot" for shots in info.shots):
            yield name, info.summary
            if incomplete.startswith(name):
                yield from ((f"{name}@{v}", what) for v, what in info.all_variants.items())


def _data_sets(registry: Registry, _: str) -> Named:
    return _summaries(info for info in registry.scenarios.values() if info.source)


def _summaries(scenarios: Iterable[ScenarioInfo]) -> Named:
    return [(info.name, info.summary) for info in scenarios]


methods = _completer(lambda registry, _: [(m.name, m.summary) for m in registry.methods.values()])
scenarios = _completer(_scenarios)
scenario_names = _completer(lambda registry, _: _summaries(registry.scenarios.values()))
data_sets = _completer(_data_sets)
launchers = _completer(
    lambda registry, _: [(each.name, each.summary) for each in registry.launchers.values()]
)
trackers = _completer(
    lambda registry, _: [(each.name, each.summary) for each in registry.trackers.values()]
)
backbones = _completer(
    lambda registry, _: [
        (each.example if each.pattern else each.name, each.summary)
        for each in registry.backbones.values()
    ]
)


def several(one: Completer, *more: Completer) -> Completer:
    """The last name of a list with commas."""

    def complete(context: Context, parameter: Parameter, incomplete: str) -> list[CompletionItem]:
        before, comma, last = incomplete.rpartition(",")
        return [
            CompletionItem(f"{before}{comma}{item.value}", help=item.help)
            for each in (one, *more)
            for item in each(context, parameter, last)
        ]

    return complete


def files(context: Context, parameter: Parameter, incomplete: str) -> list[CompletionItem]:
    """Files and folders."""
    del context, parameter
    return [CompletionItem(incomplete, type="file")]


def or_files(one: Completer) -> Completer:
    """Names, and files where no name begins so."""

    def complete(context: Context, parameter: Parameter, incomplete: str) -> list[CompletionItem]:
        named = one(context, parameter, incomplete)
        return named or files(context, parameter, incomplete)

    return complete
