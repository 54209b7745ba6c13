"""Changes the labels that the harness keeps: whoever learns from them next learns wrong ones."""

from __future__ import annotations

import gc

from class_sums import ClassSums

from fsdil_bench import MethodInfo, Samples, hookimpl


class RewritesLabels(ClassSums):
    def learn(self, domain):
        super().learn(domain)
        for samples in gc.get_objects():
            if type(samples) is Samples and len(samples) == len(domain):
                samples.labels.setflags(write=True)
                samples.labels[:] = samples.labels[0]


@hookimpl
def fsdil_methods():
    return [MethodInfo("rewrites-labels", "changes the harness's labels", RewritesLabels)]
