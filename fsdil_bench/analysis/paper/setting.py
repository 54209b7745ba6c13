"""The setting of the paper's numbers, and what is different in a run.

Some differences hold for every run here and are accepted (docs/paper.md): class names and
synonyms are this project's own, the shots are drawn by seed, every seed learns its own base domain,
and CORe50's split is drawn once for all seeds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fsdil_bench.data.scenario import ScenarioId

from .results import Reported

if TYPE_CHECKING:
    from fsdil_bench.records.record import Record

BACKBONE = "ViT-B-16-quickgelu:openai"
#: The paper's own, that of its released code, comes first; fp32 can only be closer to the formulas.
PRECISIONS = ("tf32", "fp32")


@dataclass(frozen=True)
class Setting:
    """How the paper uses a data set; `tests` are the test images per domain, where known."""

    transform: str
    order: tuple[str, ...]
    classes: int
    tests: tuple[int, ...] = ()


#: The order of CORe50's sessions is, to our knowledge, that of run 0 of its official table.
SETTINGS = {
    "cddb-hard": Setting(
        "cddb",
        ("gaugan", "biggan", "wild", "whichfaceisreal", "san"),
        2,
        (2000, 800, 2063, 400, 90),
    ),
    "core50": Setting("core50", ("s8", "s3", "s2", "s7", "s1", "s5", "s4", "s6"), 50),
    "domainnet": Setting(
        "domainnet", ("real", "painting", "clipart", "sketch", "quickdraw", "infograph"), 306
    ),
}


def what_differs(
    record: Record, reported: Reported, defaults: Mapping[str, Any] | None = None
) -> list[str]:
    """In what a run differs from the setting of a number of the paper; if in nothing, they compare.

    `defaults` are the method's default options on this data set. Where they are given, options that
    were changed are named too. CVLC's `mode` may be either one: both claim the number.
    """
    spec, scenario = record.spec, record.scenario
    setting = SETTINGS[reported.dataset]
    identity = ScenarioId.parse(spec["scenario"])
    order, sizes = tuple(spec["order"]), tuple(domain["test"] for domain in scenario["domains"])
    found = [
        (identity.dataset != reported.dataset, f"data set {identity.dataset}"),
        (identity.shots != reported.shots, f"{identity.shots} shots"),
        (bool(identity.variant), f"variant @{identity.variant}"),
        (
            reported.backbone != "CLIP",
            f"the paper's number is of another backbone, {reported.backbone}",
        ),
        (spec["backbone"] != BACKBONE, f"backbone {spec['backbone']}"),
        (spec["precision"] not in PRECISIONS, f"precision {spec['precision']}"),
        (
            scenario["transform"]["preset"] != setting.transform,
            f"transform {scenario['transform']['preset']}",
        ),
        (order != setting.order, f"domains {_order(order)} (the paper: {_order(setting.order)})"),
        (spec["base_limit"] is not None, f"at most {spec['base_limit']} base images per class"),
        (
            len(scenario["classes"]) != setting.classes,
            f"{len(scenario['classes'])} of {setting.classes} classes",
        ),
        (
            order == setting.order and setting.tests not in ((), sizes),
            f"{sum(sizes)} of {sum(setting.tests)} test images",
        ),
        ("smaller_than_published" in scenario, "training images are missing"),
        (not record.method["exemplar_free"], "old images are kept"),
    ]
    return [what for differs, what in found if differs] + _changed_options(spec["config"], defaults)


def _changed_options(config: Mapping[str, Any], defaults: Mapping[str, Any] | None) -> list[str]:
    if defaults is None:
        return []
    changed = [key for key in config if key != "mode" and config[key] != defaults.get(key)]
    return [f"option {key}={config[key]}" for key in changed]


def _order(names: tuple[str, ...]) -> str:
    return ",".join(names)
