"""All checks by name, and ways to run them on a method."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from fsdil_bench.errors import unknown
from fsdil_bench.plugins.registry import Registry, load_registry
from fsdil_bench.progress import Progress

from . import contract, device, isolation, learning, memory, repeatable
from .finding import CheckError, Finding
from .small_world import SCENARIO, SmallWorld, open_small_world

Check = Callable[[SmallWorld], str]

#: Every check in the order of running, under the name that users type.
CHECKS: dict[str, Check] = {
    check.__name__.replace("_", "-"): check
    for check in (
        contract.contract,
        contract.ids,
        contract.cpu,
        device.device,
        repeatable.determinism,
        repeatable.seeds,
        repeatable.save_load,
        repeatable.batch_size,
        repeatable.order,
        isolation.quiet_prediction,
        contract.one_shot,
        contract.two_classes,
        isolation.kept_data,
        isolation.side_effects,
        isolation.harness,
        isolation.frozen_backbone,
        isolation.shots,
        learning.learns,
        learning.trained_parameters,
        memory.growth,
        memory.exemplars,
        memory.leaks,
        learning.options,
    )
}


class Subject:
    """A method to check; its small world is made when the first check needs it."""

    def __init__(
        self,
        method: str,
        *,
        scenario: str = SCENARIO,
        plugins: Sequence[str | Path] = (),
        registry: Registry | None = None,
        config: Mapping[str, Any] | None = None,
        backbone: str = "",
        progress: Progress | None = None,
    ) -> None:
        self.method, self.scenario, self.plugins, self.backbone = (
            method,
            scenario,
            plugins,
            backbone,
        )
        self.config, self.progress, self._registry = config, progress or Progress(), registry

    @cached_property
    def world(self) -> SmallWorld:
        """The world that all checks of this method share."""
        return open_small_world(
            self.method,
            registry=self._registry or load_registry(self.plugins),
            scenario=self.scenario,
            config=self.config,
            backbone=self.backbone,
            progress=self.progress,
        )

    def finding(self, name: str) -> Finding:
        """The outcome of one check."""
        try:
            return Finding(name, True, CHECKS[name](self.world))
        except CheckError as failure:
            return Finding(name, False, failure.found, failure.remedy)


class MethodCheck:
    """One check of one method, to be called by a test."""

    def __init__(self, subject: Subject, name: str) -> None:
        self._subject = subject
        self.__name__ = name  # pytest shows it

    def __call__(self) -> None:
        """Raise an AssertionError that says what is wrong and how to fix it."""
        finding = self._subject.finding(self.__name__)
        assert finding.passed, f"{finding.name}: {finding.found}\n{finding.remedy}"


def check_method(method: str, *, only: Sequence[str] = (), **subject: Any) -> list[Finding]:
    """Run all checks, or `only` some, and say what they found.

    `subject` are the arguments of `method_checks`, and `registry` and `progress`.
    """
    names = _chosen(only)
    checked = Subject(method, **subject)
    findings = []
    for name in names:
        with checked.progress.phase(f"check {name}"):
            findings.append(checked.finding(name))
    checked.world.close()
    return findings


def method_checks(
    method: str,
    *,
    only: Sequence[str] = (),
    scenario: str = SCENARIO,
    plugins: Sequence[str | Path] = (),
    config: Mapping[str, Any] | None = None,
    backbone: str = "",
) -> list[MethodCheck]:
    """The checks of a method for `pytest.mark.parametrize`; they share one small world.

    `plugins` are plugin files, `config` the method's options, `only` the names of checks.
    """
    subject = Subject(method, scenario=scenario, plugins=plugins, config=config, backbone=backbone)
    return [MethodCheck(subject, name) for name in _chosen(only)]


def _chosen(only: Sequence[str]) -> list[str]:
    for name in only:
        if name not in CHECKS:
            raise unknown("check", name, CHECKS, "fsdil-bench check --list")
    return [name for name in CHECKS if not only or name in only]
