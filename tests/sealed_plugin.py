"""A plugin file for the tests of sealed runs: methods that try to know more than their state."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from toy_plugin import CLASSES, Means

from fsdil_bench import (
    MethodInfo,
    PluginError,
    RouterMethod,
    hookimpl,
    load_stream,
    numpy_generator,
)

KEPT: list[tuple[torch.Tensor, torch.Tensor]] = []


def nearest(features, kept):
    """The class of the most similar image kept; class 0 if there is none."""
    if not kept:
        return torch.zeros(len(features), dtype=torch.long)
    images, labels = (torch.cat(parts) for parts in zip(*kept, strict=True))
    return labels[(features @ images.T).argmax(1)]


class Stateless(Means):
    """Nothing that it needs is in its state."""

    def state_dict(self):
        return {"nothing": torch.zeros(1)}

    def load_state_dict(self, state):
        pass

    def diagnostics(self):
        return {}


class KeepsInModule(Stateless):
    def learn(self, domain):
        KEPT.append((domain.features(), domain.labels))

    def predict(self, batch):
        return nearest(batch.features, KEPT)


class KeepsInClass(Stateless):
    kept: list = []  # noqa: RUF012 - shared by all instances: the point

    def learn(self, domain):
        self.kept.append((domain.features(), domain.labels))

    def predict(self, batch):
        return nearest(batch.features, self.kept)


class KeepsInFiles(Stateless):
    """Leaves images in its working folder and where temporary files go."""

    def places(self):
        return [Path("kept.pt"), Path(tempfile.gettempdir()) / "fsdil-kept.pt"]

    def learn(self, domain):
        for place in self.places():
            torch.save({"images": domain.features(), "labels": domain.labels}, place)

    def predict(self, batch):
        found = [torch.load(p, weights_only=True) for p in self.places() if p.exists()]
        return nearest(batch.features, [(each["images"], each["labels"]) for each in found])


class AdaptsWhilePredicting(Means):
    """Counts what it predicts in its state: what comes of test images must not be kept."""

    def __init__(self, context):
        super().__init__(context)
        self.seen = torch.zeros((), dtype=torch.long)

    def predict(self, batch):
        self.seen += len(batch)
        return super().predict(batch)

    def state_dict(self):
        return {"sums": self.sums, "seen": self.seen}

    def load_state_dict(self, state):
        super().load_state_dict(state)
        self.seen = state["seen"].clone()

    def diagnostics(self):
        return {"seen": int(self.seen)}


class RebuildsTheOrder(Means):
    """Works out from the seed which image stands where, and with it the class of each."""

    seen = 0

    def predict(self, batch):
        sizes = [10, 11, 12, 13]
        steps = [3 * sum(sizes[: t + 1]) for t in range(4)]
        quarters = [step // 4 + 1 for step in steps]  # the batches of a sealed run
        t = min(range(8), key=lambda i: abs([*steps, *quarters][i] - len(batch))) % 4
        begin = 0 if len(batch) == steps[t] else self.seen
        self.seen = begin + len(batch)
        labels = np.concatenate([np.repeat(np.arange(3), size) for size in sizes[: t + 1]])
        order = numpy_generator(self.context.seed, "test order", t).permutation(steps[t])
        return torch.from_numpy(labels[order[begin : self.seen]])


class RemembersTheOracle(RouterMethod, Means):
    """Keeps the true domains that the oracle's pass hands over, for the next time."""

    true: dict = {}  # noqa: RUF012

    def predict_domain(self, batch):
        return torch.tensor([self.true.get(row.numpy().tobytes(), 0) for row in batch.features])

    def predict_in_domain(self, batch, domains):
        for row, domain in zip(batch.features, domains, strict=True):
            self.true[row.numpy().tobytes()] = int(domain)
        return (batch.features @ self.sums.T).argmax(1)


class LooksAround(Means):
    """Reports what it can find when it learns."""

    def learn(self, domain):
        super().learn(domain)
        try:
            load_stream("toy-1shot")
            stream = "had"
        except PluginError as error:
            stream = error.message
        self.found = {
            "stream": stream,
            "files": [path.name for path in Path().iterdir()],
            "ids": list(domain._samples.ids[:2]),
            "environment": [os.environ.get("FSDIL_CACHE"), os.environ.get("FSDIL_DATA")],
            "folder": str(Path.cwd()),
        }

    def diagnostics(self):
        return self.found


class AsksForMore(Means):
    """Asks the harness for the images of the next domain."""

    def learn(self, domain):
        harness = domain._pictures._harness
        question = {"domain": domain.index + 1, "positions": [0], "seeds": None}
        self.stolen = harness.answer(harness.ask("views", **question))


class AsksForOthers(Means):
    """Asks the harness for an image that was not drawn."""

    def learn(self, domain):
        harness = domain._pictures._harness
        harness.answer(harness.ask("views", domain=domain.index, positions=[-1], seeds=None))


class Exits(Means):
    def learn(self, domain):
        print("about to leave")
        os._exit(3)


class IsKilled(Means):
    """Dies in its second domain unless the environment says otherwise."""

    def predict(self, batch):
        if len(batch) > 8 and "SEALED_LIVE" not in os.environ:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().predict(batch)


class Waits(Means):
    """Says which process it is, then waits, in the domain that the environment names."""

    def learn(self, domain):
        super().learn(domain)
        if os.environ.get("SEALED_WAIT_IN") == str(domain.index):
            Path("mark.tmp").write_text(str(os.getpid()))
            Path("mark.tmp").rename("mark")
            time.sleep(120)


class LooksAtEverything(Means):
    """Honest: learns from all kinds of views, texts and chance, also of earlier domains."""

    inputs = frozenset({"images", "features"})

    def learn(self, domain):
        super().learn(domain)
        texts = self.context.backbone.encode_text([f"a {name} thing" for name in CLASSES])
        self.sums += 0.1 * texts + 0.01 * torch.rand(())
        views = [each.batches(5, epochs=3) for each in (*domain.earlier, domain)]
        for batches in zip(*views, strict=False):  # one of them ends before the others
            for batch in batches:
                embedded = self.context.backbone.encode_image(batch.images)
                self.sums.index_add_(0, batch.labels, 0.1 * embedded)
        self.sums[0] += domain.images().mean()
        next(domain.batches(4, augment=False))

    def predict(self, batch):
        embedded = self.context.backbone.encode_image(batch.images)
        return ((batch.features + embedded) @ self.sums.T).argmax(1)


METHODS = [
    KeepsInModule, KeepsInClass, KeepsInFiles, AdaptsWhilePredicting, RebuildsTheOrder,
    RemembersTheOracle, LooksAround, AsksForMore, AsksForOthers, Exits, IsKilled, Waits,
]  # fmt: skip


@hookimpl
def fsdil_methods():
    everything = MethodInfo("everything", "all views", LooksAtEverything, exemplar_free=False)
    return [MethodInfo(m.__name__.lower(), m.__name__, m) for m in METHODS] + [everything]
