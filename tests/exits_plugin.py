"""Methods, a scenario and a backbone that end the program or raise what is no Exception, and names
that no plugin may use."""

from __future__ import annotations

import sys

import torch

from fsdil_bench import BackboneInfo, Method, MethodInfo, ScenarioInfo, hookimpl


class Quiet(Method):
    """Predicts class 0."""

    inputs = frozenset({"features"})

    def learn(self, domain):
        pass

    def predict(self, batch):
        return torch.zeros(len(batch), dtype=torch.long)

    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        pass


class ExitsInLearn(Quiet):
    def learn(self, domain):
        sys.exit(0)


class ExitsInPredict(Quiet):
    def predict(self, batch):
        sys.exit(0)


class ExitsInBuild(Quiet):
    def __init__(self, context):
        sys.exit(0)


class ExitsInState(Quiet):
    def state_dict(self):
        sys.exit(0)


class ExitsInReport(Quiet):
    def diagnostics(self):
        sys.exit(0)


class StopsGenerators(Quiet):
    def learn(self, domain):
        raise GeneratorExit


class Strange(BaseException):
    """Neither an Exception nor one of Python's own."""


class OwnBaseException(Quiet):
    def learn(self, domain):
        raise Strange("out of this world")


class Interrupts(Quiet):
    def learn(self, domain):
        raise KeyboardInterrupt  # as if the user pressed Ctrl-C


def leave(*_):
    sys.exit(0)


@hookimpl
def fsdil_methods():
    named = {
        "exits-in-learn": ExitsInLearn,
        "exits-in-predict": ExitsInPredict,
        "exits-in-build": ExitsInBuild,
        "exits-in-state": ExitsInState,
        "exits-in-report": ExitsInReport,
        "stops-generators": StopsGenerators,
        "own-base-exception": OwnBaseException,
        "interrupts": Interrupts,
        "exits-on-load": "module_that_exits:Method",
        "quiet+v1.5_b": Quiet,
        "../../evil": Quiet,
        "3": Quiet,
        "": Quiet,
        "Upper": Quiet,
        "a b": Quiet,
        "a/b": Quiet,
        ".hidden": Quiet,
        "line\n": Quiet,
        "x" * 65: Quiet,
        7: Quiet,
        None: Quiet,
    }
    return [MethodInfo(name, "bad", factory) for name, factory in named.items()]


@hookimpl
def fsdil_scenarios():
    return [ScenarioInfo("exits", "bad", leave, default_backbone="toy-clip")]


@hookimpl
def fsdil_backbones():
    return [BackboneInfo("exits", "bad", leave), BackboneInfo("../evil", "bad", leave)]


@hookimpl
def fsdil_run_finished(record):
    if record.spec["method"] == "exits-in-report":
        sys.exit(0)
