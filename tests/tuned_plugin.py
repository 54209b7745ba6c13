"""A plugin file for the tests of tuning: methods whose accuracy follows from their options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch

from fsdil_bench import Method, MethodInfo, hookimpl, option


@dataclass(frozen=True)
class Config:
    lr: float = option(0.01, "right from 0.02 to 0.04", minimum=0)
    width: int = option(4, "of no consequence", minimum=1)
    depth: int = option(1, "of no consequence", minimum=1)
    kind: Literal["good", "bad"] = option("bad", "what it says")
    off: float = option(0.0, "of no consequence")
    share: float = option(0.5, "right at its limits", minimum=0, maximum=1)


class Aimed(Method):
    """Knows the classes of the toy stream by their colour, if its options are right."""

    Config = Config
    inputs = frozenset({"images"})

    def learn(self, domain):
        pass

    def predict(self, batch):
        config = self.context.config
        right = 0.02 < config.lr < 0.04 or config.kind == "good" or config.share in (0, 1)
        return batch.images.mean((2, 3)).argmax(1) * right

    def state_dict(self):
        return {"empty": torch.zeros(1)}

    def load_state_dict(self, state):
        pass


class Preset(Aimed):
    presets = {"toy": {"lr": 0.1, "width": 9}}  # noqa: RUF012


@hookimpl
def fsdil_methods():
    return [
        MethodInfo("preset", "for tests", Preset),
        MethodInfo("preset-lower", "for tests", Preset, overrides={"lr": 0.001}),
        MethodInfo("aimed", "for tests", Aimed),
        MethodInfo("aimed-lower", "for tests", Aimed, overrides={"lr": 0.001}),
    ]
