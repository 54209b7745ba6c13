"""A plugin file for the tests of the pretended device: a small open_clip model on a few pictures,
and, where the process of a sealed run loads it, the device itself."""

from __future__ import annotations

import os

from fsdil_bench import Backbone, BackboneInfo, ImageSpec, ScenarioInfo, hookimpl
from fsdil_bench.data.streams import SEALED

if SEALED in os.environ:
    from fsdil_bench.checks.pretended_device import pretended_device

    held = pretended_device()  # for as long as the process lives
    held.__enter__()


def few(request):
    """Four classes and two domains of the tiny world."""
    from tiny_world import CLASSES, samples

    from fsdil_bench import Domain, Stream

    domains = [Domain(f"d{t}", samples(t, "train", 4), samples(t, "test", 3)) for t in range(2)]
    return Stream("few", CLASSES, tuple(domains))


def small():
    from small_clip import build_model, tokenize
    from tiny_world import DIM

    return Backbone(
        "small",
        build=build_model,
        weights_hash="small",
        image=ImageSpec(8),
        embed_dim=DIM,
        tokenizer=tokenize,
    )


@hookimpl
def fsdil_scenarios():
    return [ScenarioInfo("few", "a few pictures", few, default_backbone="small")]


@hookimpl
def fsdil_backbones():
    return [BackboneInfo("small", "three blocks in each tower", small)]
