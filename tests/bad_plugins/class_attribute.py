"""Keeps training features in a list of its class, outside of the state that is checked."""

from __future__ import annotations

from class_sums import ClassSums

from fsdil_bench import MethodInfo, hookimpl


class ClassAttribute(ClassSums):
    seen: list = []  # noqa: RUF012 - that it is shared is the point

    def learn(self, domain):
        super().learn(domain)
        self.seen.append(domain.features().half().numpy())


@hookimpl
def fsdil_methods():
    return [MethodInfo("class-attribute", "hides features in its class", ClassAttribute)]
