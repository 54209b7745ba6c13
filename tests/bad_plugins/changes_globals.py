"""Sets torch's default dtype, an environment variable and a class attribute, and leaves them so."""

from __future__ import annotations

import os

import torch
from class_sums import ClassSums

from fsdil_bench import MethodInfo, hookimpl


class ChangesGlobals(ClassSums):
    domains = 0

    def learn(self, domain):
        super().learn(domain)
        torch.set_default_dtype(torch.float64)
        os.environ["CHANGES_GLOBALS"] = "yes"
        type(self).domains = domain.index + 1


@hookimpl
def fsdil_methods():
    return [MethodInfo("changes-globals", "leaves traces in the process", ChangesGlobals)]
