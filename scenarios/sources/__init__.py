"""The `sources` scenario: data sets of torchvision and Hugging Face as domains, in one line.

    fsdil-bench run --method ncm --scenario sources-4shot --data ~/sets --scenario-set \\
        domains='{"written": "torchvision:MNIST", "mine": "hf:me/digits"}'

Domains come in the order of the option. Everything is read from the folder that `--data` names, and
nothing is fetched: torchvision looks for a data set where it would download it to, and
`hf:<owner>/<name>` is the folder of that name, as written by `save_to_disk`. Messages say how to
get what is missing.

All domains must have the same classes. A data set that does not name its classes (SVHN) has those
of the others, by number. Published training and test parts are used as they are; where there are no
two parts, three tenths of the images of every class, drawn once for all runs, are the test set.
"""

from __future__ import annotations

from dataclasses import dataclass

from fsdil_bench import ScenarioInfo, hookimpl, option

from ..published.descriptors import DROPPING


@hookimpl
def fsdil_scenarios() -> list[ScenarioInfo]:
    """Offer `sources`."""
    return [
        ScenarioInfo(
            "sources",
            "data sets of torchvision and Hugging Face as domains, named with --scenario-set",
            "fsdil_scenarios.sources.build:build",
            needs_data=True,
            options="fsdil_scenarios.sources:Options",
        )
    ]


@dataclass(frozen=True)
class Options:
    """What can be set with `--scenario-set`."""

    domains: str = option(
        "", 'the domains: {"<name>": "torchvision:<class>" or "hf:<owner>/<name>", ...}'
    )
    drop_duplicates: bool = option(False, DROPPING)
