"""Computes the order of test images from the seed and the digest in a published record."""

from __future__ import annotations

import json
import os

import numpy as np
import torch
from cheats import Weak, stronger

from fsdil_bench import MethodInfo, hookimpl, numpy_generator

EXPECTED = {
    "ordinary": "works",
    "sealed": "lost",
    "check": "documented",
    "verify": "detected",
    "board": "-",
}

worked = stronger


class Cheat(Weak):
    def predict(self, batch):
        # What a cheater would write down: the digest stands in every published record, and anybody
        # can list the labels of the test images.
        digest, labels = os.environ.get("PUBLISHED_DIGEST", ""), json.loads(LABELS)
        for t in (0, 1):
            known = np.concatenate(labels[: t + 1])
            if len(known) == len(batch):
                draw = numpy_generator(self.context.seed, "test order", t, digest)
                return torch.from_numpy(known[draw.permutation(len(known))])
        return super().predict(batch)


LABELS = os.environ.get("PUBLISHED_LABELS", "[[], []]")


@hookimpl
def fsdil_methods():
    return [MethodInfo("cheat", "cheats", Cheat)]
