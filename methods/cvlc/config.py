"""The options of CVLC, its two modes, and presets for the data sets of the paper.

The paper and the released code differ in places. Mode `paper` follows the paper where it is
explicit and plausible, mode `authors` follows the released code with its quirks. Each such place
is an option of its own. Its value `none` means "as the mode says", so every quirk can be set alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from fsdil_bench import option

from ..embedded import on_embedded_worlds

TEMPLATES = ("{}", "{} ..", "This is a good {} ..", "It is about the {} ..")
SINGLE_TEMPLATE = ("{} ..",)


@dataclass(frozen=True)
class Config:
    """Options of cvlc; the defaults are the values for CORe50."""

    mode: Literal["paper", "authors"] = option(
        "paper", "follow the paper, or the released code with its quirks"
    )
    # What is trained in the towers
    adapter: Literal["dcp", "lora", "prompt", "none"] = option(
        "dcp", "what is trained in the blocks: coalescent projections, LoRA, prompts or nothing"
    )
    shared_blocks: int = option(
        8, "number of first blocks whose additions all domains share", minimum=0
    )
    rank_vision: int = option(3, "rank of LoRA in the image tower", minimum=1)
    rank_text: int = option(4, "rank of LoRA in the text tower", minimum=1)
    prompt_length: int = option(8, "prompt tokens per block", minimum=1)
    # Text
    text: bool = option(True, "use text prototypes; without them only images decide")
    templates: tuple[str, ...] = option(
        TEMPLATES, "sentences with {} for the class name; a JSON list"
    )
    synonyms: bool = option(True, "mix synonyms into the text prototypes if there are any")
    most_synonyms: int = option(10, "synonyms of a class that are used, at most", minimum=1)
    tau: float = option(1.0, "temperature of the synonyms' weights", minimum=1e-6)
    # Latent space reservation
    reservation: bool = option(True, "reserve latent space in the base domain")
    candidates: int = option(100, "mixtures of two classes drawn at every step", minimum=1)
    distinct_candidates: int = option(8, "candidates least similar to each other", minimum=1)
    pseudo_classes: int = option(4, "of these, the candidates farthest from all classes", minimum=1)
    pseudo_samples: int = option(10, "embeddings drawn from each pseudo-class", minimum=1)
    # Training
    base_epochs: int = option(4, "passes over the base domain", minimum=0)
    epochs: int = option(8, "passes over a few-shot domain", minimum=0)
    batch_size: int = option(64, "images per step", minimum=1)
    lr: float = option(1e-3, "learning rate of AdamW", minimum=0)
    power_lr: float = option(2e-4, "learning rate of the two exponents", minimum=0)
    weight_decay: float = option(2e-5, "weight decay of the temporary classifier", minimum=0)
    window: int = option(
        50, "steps in the average of the loss that decides when the learning rate drops", minimum=1
    )
    # Calibration, prototypes, domain identification
    vision_own: float = option(0.5, "initial weight of a domain's shift in image embeddings")
    text_common: float = option(0.5, "initial weight of the text shift in text embeddings")
    text_own: float = option(0.5, "initial weight of a domain's shift in text embeddings")
    gamma: float = option(10.0, "sharpness of the prototype correction", minimum=0)
    least_views: int = option(
        100, "views per class for the statistics of a few-shot domain", minimum=1
    )
    fuse_text_at_store: bool = option(
        True, "mix text into stored prototypes; it then counts twice in predictions"
    )
    # Where paper and code differ
    domain_rule: (
        Literal["gaussian", "class-pooled", "authors", "gaussian-logdet", "gaussian-common"] | None
    ) = option(
        None, "distance to a domain (paper: gaussian; authors: authors, covariance not inverted)"
    )
    domain_views: Literal["frozen", "mixed"] | None = option(
        None, "encoder of augmented views in domain statistics (paper: frozen; authors: mixed)"
    )
    domain_power: bool | None = option(
        None, "PowerNorm in domain statistics, never in queries (paper: no; authors: yes)"
    )
    similarity: Literal["l2", "raw", "authors"] | None = option(
        None, "norm when candidates are compared (paper: l2; authors: authors, of order -1)"
    )
    shift_std: float | None = option(
        None, "standard deviation of initial shifts (paper: 1e-3; authors: 0)", minimum=0
    )
    frozen_classifier: bool | None = option(
        None, "do not train the classifier from the third domain on (paper: no; authors: yes)"
    )
    drop_last: bool | None = option(
        None, "leave out the last, incomplete batch of base images (paper: no; authors: yes)"
    )

    def settled(self) -> Config:
        """The config with every `none` replaced by the value of the mode."""
        values = AUTHORS if self.mode == "authors" else PAPER
        return replace(self, **{k: v for k, v in values.items() if getattr(self, k) is None})


PAPER: dict[str, Any] = {
    "domain_rule": "gaussian",
    "domain_views": "frozen",
    "domain_power": False,
    "similarity": "l2",
    "shift_std": 1e-3,
    "frozen_classifier": False,
    "drop_last": False,
}
AUTHORS: dict[str, Any] = {
    "domain_rule": "authors",
    "domain_views": "mixed",
    "domain_power": True,
    "similarity": "authors",
    "shift_std": 0.0,
    "frozen_classifier": True,
    "drop_last": True,
}

#: What texts of many classes cost at every step is little beside the images of a large tower, but
#: under a small one it would be nine tenths of the work. These have most of their tokens in common.
_FEWER: dict[str, Any] = {"templates": ("{}", "{} .."), "most_synonyms": 3}

#: The texts for each data set.
TEXTS: dict[str, dict[str, Any]] = {
    "cddb-hard": {},
    "core50": {},
    "domainnet": {"templates": SINGLE_TEMPLATE, "synonyms": False},
    "drawn": _FEWER,
    "shelf": _FEWER,
    "forged": {},
}

#: Passes over the few shots on the embedded worlds: about as many images as others see in their
#: steps.
_EPOCHS = {"drawn": 8, "shelf": 4, "forged": 8}

#: The paper's table of hyper-parameters, and shorter training with fewer views on the embedded
#: worlds.
PRESETS: dict[str, dict[str, Any]] = {
    "cddb-hard": {"base_epochs": 5, "epochs": 8, "window": 100},
    "core50": {"base_epochs": 4, "epochs": 8, "window": 50},
    "domainnet": {
        "base_epochs": 2,
        "epochs": 5,
        "batch_size": 128,
        "window": 200,
        "candidates": 300,
        "distinct_candidates": 24,
        "pseudo_classes": 12,
        "vision_own": 0.25,
        "text_common": 0.3,
        "text_own": 0.3,
    },
    **on_embedded_worlds("base_epochs", window=50, least_views=16),
}
for _name, _texts in TEXTS.items():
    PRESETS[_name] |= _texts
for _name, _epochs in _EPOCHS.items():
    PRESETS[_name]["epochs"] = _epochs

#: On an embedded world, the paper's lengths of training for the data set that it is made after.
PAPER_TRAINING: dict[str, dict[str, Any]] = {
    "drawn": {"base_epochs": 2, "epochs": 5, "batch_size": 128, "window": 200},
    "shelf": {"base_epochs": 4, "epochs": 8, "window": 50},
    "forged": {"base_epochs": 5, "epochs": 8, "window": 100},
}
