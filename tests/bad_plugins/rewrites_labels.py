"""Changes the labels that the harness keeps: whoever learns from them next learns wrong ones."""

from __future__ import annotations

from class_sums import ClassSums

from fsdil_bench import MethodInfo, hookimpl


class RewritesLabels(ClassSums):
    def learn(self, domain):
        super().learn(domain)
        labels = domain._samples.labels
        labels.setflags(write=True)
        labels[:] = labels[0]


@hookimpl
def fsdil_methods():
    return [MethodInfo("rewrites-labels", "changes the harness's labels", RewritesLabels)]
