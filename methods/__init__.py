"""The built-in methods, as descriptors: nothing here imports torch.

Each method is a file of this folder that says which paper and which equation it implements; it uses
only what `fsdil_bench` offers to everyone.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fsdil_bench import MethodInfo, hookimpl

from .frozen.imagenet_templates import IMAGENET_TEMPLATES

CVLC = MethodInfo(
    "cvlc",
    "continual vision-language consolidation: adapted towers, calibrated prototypes, a router",
    "fsdil_methods.cvlc.method:CVLC",
    paper="CVLC, 2026",
    needs_text=True,
)

# The paper's ablations are the same method under other options.
ABLATIONS: list[tuple[str, str, dict[str, Any]]] = [
    ("cvlc-lora", "CVLC with LoRA instead of coalescent projections", {"adapter": "lora"}),
    ("cvlc-prompt", "CVLC with deep prompts instead of projections", {"adapter": "prompt"}),
    ("cvlc-no-lsr", "CVLC without latent space reservation", {"reservation": False}),
    ("cvlc-all-specific", "CVLC without blocks that domains share", {"shared_blocks": 0}),
    (
        "cvlc-single-template",
        "CVLC with one template and no synonyms",
        {"templates": ("{} ..",), "synonyms": False},
    ),
    ("cvlc-no-text", "CVLC without its text side, for image towers alone", {"text": False}),
]

# Methods that train additions to the image tower; with head=text they also use class names.
PROMPTED = [
    MethodInfo(
        "l2p",
        "a pool of prompts, of which every image picks some",
        "fsdil_methods.prompts.l2p:L2P",
        paper="Wang et al., 2022 (CVPR)",
    ),
    MethodInfo(
        "dualprompt",
        "prefixes for all domains and for each, found by a key",
        "fsdil_methods.prompts.dualprompt:DualPrompt",
        paper="Wang et al., 2022 (ECCV)",
    ),
    MethodInfo(
        "coda-prompt",
        "prefixes as weighted sums of components, more of them for every domain",
        "fsdil_methods.prompts.coda_prompt:CODAPrompt",
        paper="Smith et al., 2023",
    ),
    MethodInfo(
        "inflora",
        "low-rank updates in directions that earlier domains have left free",
        "fsdil_methods.towers.inflora:InfLoRA",
        paper="Liang and Li, 2024",
    ),
]

# Strategies of Avalanche, which is not installed unless asked for.
AVALANCHE = [
    MethodInfo(
        f"avalanche-{name}",
        f"{summary} (extra: avalanche)",
        f"fsdil_methods.avalanche:{factory}",
        paper=paper,
        exemplar_free=name != "replay",
    )
    for name, summary, factory, paper in [
        ("naive", "fine-tuning of tower and head by Avalanche", "NaiveMethod", ""),
        ("ewc", "elastic weight consolidation", "EWCMethod", "Kirkpatrick et al., 2017"),
        ("lwf", "learning without forgetting", "LwFMethod", "Li and Hoiem, 2016"),
        (
            "replay",
            "replay of images it keeps",
            "ReplayMethod",
            "Chaudhry et al., 2019",
        ),
    ]
]

# What else is said to work without old images: prompts, weights that are held in place, a cache.
BASELINES = [
    MethodInfo(
        "zero-shot-80",
        "CLIP's text classifier with the 80 templates of its ImageNet evaluation",
        "fsdil_methods.frozen.zero_shot:ZeroShot",
        paper="Radford et al., 2021",
        needs_text=True,
        overrides={"templates": IMAGENET_TEMPLATES},
    ),
    MethodInfo(
        "tip-adapter",
        "CLIP's text classifier and a cache of training features",
        "fsdil_methods.frozen.tip_adapter:TipAdapter",
        paper="Zhang et al., 2022",
        needs_text=True,
        keeps_features=True,
    ),
    MethodInfo(
        "tip-adapter-f",
        "CLIP's text classifier and a cache of features, fine-tuned in their domain",
        "fsdil_methods.frozen.tip_adapter:TipAdapter",
        paper="Zhang et al., 2022",
        needs_text=True,
        keeps_features=True,
        overrides={"finetune": True},
    ),
    MethodInfo(
        "coop",
        "learned context before the class names, trained on one domain after another",
        "fsdil_methods.prompts.coop:CoOp",
        paper="Zhou et al., 2022",
        needs_text=True,
    ),
    MethodInfo(
        "coop-domains",
        "learned context before the class names for every domain, and a router",
        "fsdil_methods.prompts.coop:CoOpDomains",
        paper="Zhou et al., 2022",
        needs_text=True,
        keeps_features=True,
    ),
    MethodInfo(
        "s-prompts",
        "image and text prompts for every domain, and a router",
        "fsdil_methods.prompts.s_prompts:SPrompts",
        paper="Wang et al., 2022",
        needs_text=True,
        keeps_features=True,
    ),
    MethodInfo(
        "cp-prompt",
        "S-Prompts with a common prompt that is handed on and prefixes in the blocks",
        "fsdil_methods.prompts.cp_prompt:CPPrompt",
        paper="Feng et al., 2024",
        needs_text=True,
        keeps_features=True,
    ),
    MethodInfo(
        "lwf",
        "learning without forgetting: the previous model teaches on the new images",
        "fsdil_methods.towers.lwf:LwF",
        paper="Li and Hoiem, 2016",
        needs_text=True,
    ),
    MethodInfo(
        "ewc",
        "elastic weight consolidation with the Fisher information of single images",
        "fsdil_methods.towers.ewc:EWC",
        paper="Kirkpatrick et al., 2017",
        needs_text=True,
    ),
    MethodInfo(
        "wise-ft",
        "fine-tuned weights averaged with CLIP's own",
        "fsdil_methods.towers.wise_ft:WiseFT",
        paper="Wortsman et al., 2022",
        needs_text=True,
    ),
    MethodInfo(
        "wise-ft-streaming",
        "weights averaged, after every domain, with those before it",
        "fsdil_methods.towers.wise_ft:WiseFT",
        paper="Wortsman et al., 2022",
        needs_text=True,
        overrides={"mode": "streaming"},
    ),
]


@hookimpl
def fsdil_methods() -> list[MethodInfo]:
    """Offer the built-in methods."""
    return [
        CVLC,
        *(
            replace(
                CVLC,
                name=name,
                summary=summary,
                overrides=overrides,
                needs_text=overrides.get("text", True),
            )
            for name, summary, overrides in ABLATIONS
        ),
        MethodInfo(
            "zero-shot",
            "CLIP's text classifier, no training",
            "fsdil_methods.frozen.zero_shot:ZeroShot",
            paper="Radford et al., 2021",
            needs_text=True,
        ),
        MethodInfo(
            "ncm",
            "nearest class mean of frozen features",
            "fsdil_methods.frozen.ncm:NearestClassMean",
            paper="Mensink et al., 2013",
        ),
        MethodInfo(
            "ncm-text",
            "nearest class mean, each mean mixed half and half with its class name",
            "fsdil_methods.frozen.ncm:NearestClassMean",
            paper="Mensink et al., 2013",
            needs_text=True,
            overrides={"text_mix": 0.5},
        ),
        MethodInfo(
            "slda",
            "streaming linear discriminant analysis of frozen features",
            "fsdil_methods.frozen.slda:StreamingLDA",
            paper="Hayes and Kanan, 2020",
        ),
        MethodInfo(
            "ranpac",
            "ridge regression on a random projection of frozen features",
            "fsdil_methods.frozen.ranpac:RanPAC",
            paper="McDonnell et al., 2023",
        ),
        MethodInfo(
            "linear-probe",
            "logistic regression on frozen features, then a few steps per domain",
            "fsdil_methods.frozen.linear_probe:LinearProbe",
            paper="Radford et al., 2021",
        ),
        MethodInfo(
            "finetune",
            "the image tower fine-tuned on one domain after another: the forgetting floor",
            "fsdil_methods.towers.finetune:FineTune",
            needs_text=True,
        ),
        MethodInfo(
            "base-only",
            "the image tower fine-tuned on the base domain alone",
            "fsdil_methods.towers.finetune:FineTune",
            needs_text=True,
            overrides={"domains": "base"},
        ),
        MethodInfo(
            "joint",
            "the image tower fine-tuned anew on all domains seen so far: the few-shot ceiling",
            "fsdil_methods.towers.joint:Joint",
            needs_text=True,
            exemplar_free=False,
        ),
        *BASELINES,
        *PROMPTED,
        *AVALANCHE,
    ]
