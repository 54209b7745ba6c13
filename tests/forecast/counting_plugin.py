"""Methods that send known numbers of images and tokens through the towers, for forecasts."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from fsdil_bench import Batch, Method, MethodInfo, RequestError, TrainDomain, hookimpl, option
from fsdil_bench.adapters import BlockAdapter, encode_image, encode_text, tower_shape


@dataclass(frozen=True)
class Config:
    passes: int = option(3, "passes of every training image", minimum=0)
    most: int = option(10_000, "images that are looked at", minimum=1)
    gradients: str = option("none", "none, prompts or weights")
    prompts: int = option(0, "tokens beside those of an image")
    width: float = option(0.0, "the least width of the tower")


class Counting(Method):
    """Every training image passes `passes` times, every test image t + 1 times after domain t."""

    Config = Config
    inputs = frozenset({"images"})

    def __init__(self, context):
        super().__init__(context)
        self.seen = torch.zeros(())

    def learn(self, domain: TrainDomain) -> None:
        self.seen = self.seen + 1
        config, left = self.context.config, self.context.config.most
        for batch in domain.batches(16, epochs=config.passes, augment=True):
            images = batch.images[: max(0, left)]
            left -= len(images)
            if len(images):
                self.step(images)

    def step(self, images):
        config, backbone = self.context.config, self.context.backbone
        if config.gradients == "weights":
            tower = backbone.visual_copy()
            tower(images).sum().backward()
            return
        visual = backbone.model.visual
        shape = tower_shape(visual)
        if shape.width < config.width:
            raise RequestError(f"the tower is {shape.width} wide", "Take a wider one.")
        tokens = torch.zeros(config.prompts, shape.width, requires_grad=True)
        adapters = [BlockAdapter(tokens=tokens)] + [BlockAdapter()] * (shape.blocks - 1)
        raw = encode_image(visual, images, adapters)
        if config.gradients == "prompts":
            raw.sum().backward()

    @torch.no_grad()
    def predict(self, batch: Batch) -> torch.Tensor:
        for _ in range(int(self.seen)):
            self.context.backbone.embed_with(self.context.backbone.model.visual, batch.images)
        return torch.zeros(len(batch), dtype=torch.long)

    def state_dict(self):
        return {"seen": self.seen}

    def load_state_dict(self, state):
        self.seen = state["seen"]


class Reading(Method):
    """Features of everything, and every class name through the text tower in every domain."""

    inputs = frozenset({"features"})

    def learn(self, domain: TrainDomain) -> None:
        domain.features()
        backbone = self.context.backbone
        with torch.no_grad():
            encode_text(backbone.model, backbone.tokenizer(list(self.context.class_names)))
        backbone.encode_text(["a thing", "another"])

    def predict(self, batch: Batch) -> torch.Tensor:
        return torch.zeros(len(batch), dtype=torch.long)

    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        pass


@hookimpl
def fsdil_methods():
    return [
        MethodInfo("counting", "known passes", Counting),
        MethodInfo("reading", "known texts", Reading, needs_text=True),
    ]
