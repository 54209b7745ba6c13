"""The built-in methods, as one table of descriptors. Nothing here imports torch.

The folders say what a method trains: nothing but a classifier on features (`frozen`), the image
tower or additions to it (`towers`), prompts (`prompts`); `cvlc` is the method of the paper. Each
method is a file that says which paper and which equation it implements. It uses only what
`fsdil_bench` offers to everyone.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fsdil_bench import MethodInfo, hookimpl

from .cvlc.config import PAPER_TRAINING
from .frozen.imagenet_templates import IMAGENET_TEMPLATES

_CVLC = ("cvlc.method:CVLC", "CVLC, 2026")


#: What `fsdil-bench tune` chose for each method on the embedded worlds.
_CHOSEN: dict[str, dict[str, Any]] = json.loads(
    Path(__file__).with_name("chosen.json").read_text(encoding="utf-8")
)


def _method(name: str, factory: str, paper: str, summary: str, **more: Any) -> MethodInfo:
    """A row of the table; `factory` is file and class in this folder."""
    presets = _CHOSEN.get(name, {})
    return MethodInfo(
        name, summary, f"fsdil_methods.{factory}", paper, **{"presets": presets, **more}
    )


# fmt: off
METHODS = [
    # The paper's ablations are the same class with different options.
    _method("cvlc", *_CVLC,
            "continual vision-language consolidation: "
            "adapted towers, calibrated prototypes, a router",
            needs_text=True),
    _method("cvlc-paper", *_CVLC, "CVLC as long and as fast as in the paper on every data set",
            needs_text=True, presets=PAPER_TRAINING),
    _method("cvlc-lora", *_CVLC, "CVLC with LoRA instead of coalescent projections",
            needs_text=True, overrides={"adapter": "lora"}),
    _method("cvlc-prompt", *_CVLC, "CVLC with deep prompts instead of coalescent projections",
            needs_text=True, overrides={"adapter": "prompt"}),
    _method("cvlc-no-lsr", *_CVLC, "CVLC without latent space reservation",
            needs_text=True, overrides={"reservation": False}),
    _method("cvlc-all-specific", *_CVLC, "CVLC without blocks that domains share",
            needs_text=True, overrides={"shared_blocks": 0}),
    _method("cvlc-single-template", *_CVLC, "CVLC with one template and no synonyms",
            needs_text=True, overrides={"templates": ("{} ..",), "synonyms": False}),
    _method("cvlc-no-text", *_CVLC, "CVLC without text, for backbones without a text tower",
            overrides={"text": False}),
    # What CVLC is made of, one part after the other.
    _method("text-prototypes", "cvlc.untrained_text:TextPrototypes", "CVLC, 2026",
            "CVLC's text prototypes alone: templates and weighted synonyms, no training",
            needs_text=True),
    _method("fused-prototypes", "cvlc.untrained_prototypes:FusedPrototypes", "CVLC, 2026",
            "CVLC's prototypes from images and text and its router, no training",
            needs_text=True),
    _method("cvlc-frozen", *_CVLC, "CVLC with frozen towers: only calibration and classifier",
            needs_text=True, overrides={"adapter": "none"}),

    _method("zero-shot", "frozen.zero_shot:ZeroShot", "Radford et al., 2021",
            "CLIP's text classifier, no training",
            needs_text=True),
    _method("zero-shot-80", "frozen.zero_shot:ZeroShot", "Radford et al., 2021",
            "CLIP's text classifier with the 80 templates of its ImageNet evaluation",
            needs_text=True, overrides={"templates": IMAGENET_TEMPLATES}),
    _method("ncm", "frozen.ncm:NearestClassMean", "Mensink et al., 2013",
            "nearest class mean of frozen features"),
    _method("ncm-text", "frozen.ncm:NearestClassMean", "Mensink et al., 2013",
            "nearest class mean, each mean mixed half and half with its class name",
            needs_text=True, overrides={"text_mix": 0.5}),
    _method("slda", "frozen.slda:StreamingLDA", "Hayes and Kanan, 2020",
            "streaming linear discriminant analysis of frozen features"),
    _method("ranpac", "frozen.ranpac:RanPAC", "McDonnell et al., 2023",
            "ridge regression on a random projection of frozen features"),
    _method("linear-probe", "frozen.linear_probe:LinearProbe", "Radford et al., 2021",
            "logistic regression on frozen features, then a few steps per domain"),
    _method("tip-adapter", "frozen.tip_adapter:TipAdapter", "Zhang et al., 2022",
            "CLIP's text classifier and a cache of training features",
            needs_text=True, keeps_features=True),
    _method("tip-adapter-f", "frozen.tip_adapter:TipAdapter", "Zhang et al., 2022",
            "CLIP's text classifier and a cache of features, fine-tuned in their domain",
            needs_text=True, keeps_features=True, overrides={"finetune": True}),
    _method("slda-text", "frozen.slda:StreamingLDA", "Hayes and Kanan, 2020",
            "streaming linear discriminant analysis mixed with CLIP's text classifier",
            needs_text=True, overrides={"fuse": 0.8}),
    _method("rail", "frozen.rail:RAIL", "Xu et al., 2024",
            "recursive ridge regression on a random projection, mixed with the text classifier",
            needs_text=True),
    _method("rail-dual", "frozen.rail_dual:DualRAIL", "Xu et al., 2024",
            "kernel ridge regression on features it keeps, mixed with the text classifier",
            needs_text=True, keeps_features=True),
    _method("hycal", "frozen.hycal:HyCal", "HyCal, 2026",
            "class means of every domain, compared by cosine or Mahalanobis distance",
            needs_text=True, keeps_features=True),
    _method("rapf", "frozen.rapf:RAPF", "Huang et al., 2024",
            "a linear adapter of features, with replay from Gaussians and fusion of adapters",
            needs_text=True, keeps_features=True),
    _method("dualcp-lite", "frozen.dualcp:DualCPLite", "after Wang et al., 2025",
            "features mapped to coarse and fine prototypes from class names, which stay fixed",
            needs_text=True),

    _method("finetune", "towers.finetune:FineTune", "",
            "the image tower fine-tuned on one domain after another: the forgetting floor",
            needs_text=True),
    _method("base-only", "towers.finetune:FineTune", "",
            "the image tower fine-tuned on the base domain only",
            needs_text=True, overrides={"domains": "base"}),
    _method("joint", "towers.joint:Joint", "",
            "the image tower fine-tuned again on all domains seen so far: the few-shot ceiling",
            needs_text=True, exemplar_free=False),
    _method("lwf", "towers.lwf:LwF", "Li and Hoiem, 2016",
            "learning without forgetting: the previous model teaches on the new images",
            needs_text=True),
    _method("ewc", "towers.ewc:EWC", "Kirkpatrick et al., 2017",
            "elastic weight consolidation with the Fisher information of single images",
            needs_text=True),
    _method("wise-ft", "towers.wise_ft:WiseFT", "Wortsman et al., 2022",
            "fine-tuned weights averaged with CLIP's own",
            needs_text=True),
    _method("wise-ft-streaming", "towers.wise_ft:WiseFT", "Wortsman et al., 2022",
            "weights averaged after every domain with the weights before it",
            needs_text=True, overrides={"mode": "streaming"}),
    _method("inflora", "towers.inflora:InfLoRA", "Liang and Li, 2024",
            "low-rank updates in directions that earlier domains have left free"),
    _method("duct", "towers.duct:DUCT", "Zhou et al., 2025",
            "what domains change in the image tower added up, and rows that follow",
            needs_text=True, keeps_features=True),
    _method("duct-text", "towers.duct:DUCT", "Zhou et al., 2025",
            "what domains change in the image tower added up, under the text classifier",
            needs_text=True, overrides={"head": "text"}),
    _method("conec-lora", "towers.conec_lora:ConecLoRA", "Paeedeh et al., 2025",
            "low-rank updates of every domain, tied to the last ones in the lower blocks, a router",
            keeps_features=True),

    # l2p, dualprompt, coda-prompt, inflora and conec-lora need text only with head=text.
    _method("coop", "prompts.coop:CoOp", "Zhou et al., 2022",
            "learned context before the class names, trained on one domain after another",
            needs_text=True),
    _method("coop-domains", "prompts.coop:CoOpDomains", "Zhou et al., 2022",
            "learned context before the class names for every domain, and a router",
            needs_text=True, keeps_features=True),
    _method("s-prompts", "prompts.s_prompts:SPrompts", "Wang et al., 2022",
            "image and text prompts for every domain, and a router",
            needs_text=True, keeps_features=True),
    _method("cp-prompt", "prompts.cp_prompt:CPPrompt", "Feng et al., 2024",
            "S-Prompts with prefixes, and a common prompt passed from domain to domain",
            needs_text=True, keeps_features=True),
    _method("soyo", "prompts.s_prompts:SPrompts", "Wang et al., 2025",
            "S-Prompts with a router that is trained on features drawn from earlier domains",
            needs_text=True, overrides={"router": "selector"}),
    _method("l2p", "prompts.l2p:L2P", "Wang et al., 2022 (CVPR)",
            "a pool of prompts from which every image picks some"),
    _method("dualprompt", "prompts.dualprompt:DualPrompt", "Wang et al., 2022 (ECCV)",
            "prefixes for all domains, and for each domain, found by a key"),
    _method("coda-prompt", "prompts.coda_prompt:CODAPrompt", "Smith et al., 2023",
            "prefixes as weighted sums of components; every domain adds some"),

    # Methods of the paper's tables that were made for other settings; see their files.
    _method("asp", "prompts.asp:ASP", "Liu et al., 2024",
            "invariant prompts and prompts made for each image, then class prototypes"),
    _method("app", "towers.app:App", "Wang et al., 2024",
            "a gently fine-tuned tower, then one trained row per class and domain"),
    _method("sec-prompt", "prompts.sec_prompt:SECPrompt", "Liu and Yang, 2025",
            "a pool of prompts that tell classes apart, and one that augments few shots"),
    _method("icon", "towers.icon:ICON", "Park et al., 2024",
            "adapters with orthogonal shifts, and more output nodes for classes that need them"),
    _method("dytox", "towers.dytox:DyTox", "Douillard et al., 2022",
            "a token and a head for every domain, which read CLIP's tower; without its memory"),
    _method("dytox-replay", "towers.dytox:DyToxReplay", "Douillard et al., 2022",
            "a token and a head for every domain, and a memory of images",
            exemplar_free=False),
    _method("fshil-lite", "towers.fshil_lite:FSHILLite", "after FSHIL, 2026",
            "prototypes that grow, and experts for domains that look new; details are guesses",
            keeps_features=True),
    _method("pgo-like", "prompts.pgo_like:PGOLike", "",
            "deep prompts of every domain, kept apart, and zero-shot: a guess, not PGO-BEn",
            needs_text=True, keeps_features=True),

    # Strategies of Avalanche, which is installed only on request.
    _method("avalanche-naive", "avalanche:NaiveMethod", "",
            "fine-tuning of tower and head by Avalanche (extra: avalanche)"),
    _method("avalanche-ewc", "avalanche:EWCMethod", "Kirkpatrick et al., 2017",
            "elastic weight consolidation (extra: avalanche)"),
    _method("avalanche-lwf", "avalanche:LwFMethod", "Li and Hoiem, 2016",
            "learning without forgetting (extra: avalanche)"),
    _method("avalanche-replay", "avalanche:ReplayMethod", "Chaudhry et al., 2019",
            "replay of images it keeps (extra: avalanche)",
            exemplar_free=False),
]
# fmt: on


@hookimpl
def fsdil_methods() -> list[MethodInfo]:
    """Offer the built-in methods."""
    return METHODS
