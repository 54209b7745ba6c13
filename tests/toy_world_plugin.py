"""A plugin file for the tests of sealed runs: the toy scenarios and backbones without methods."""

from __future__ import annotations

from dataclasses import replace

import toy_plugin
from toy_plugin import fsdil_backbones as fsdil_backbones

from fsdil_bench import ScenarioInfo, hookimpl


def with_unseen(request):
    sets = (("dark", toy_plugin.samples("d0", "other", 7)),)
    return replace(toy_plugin.build_stream(request), unseen=sets)


@hookimpl
def fsdil_scenarios():
    seen = ScenarioInfo("seen", "with unseen sets", with_unseen, default_backbone="toy-clip")
    return [*toy_plugin.fsdil_scenarios(), seen]
