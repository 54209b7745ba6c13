"""DualCP-lite: fixed coarse and fine prototypes from class names, and a small map towards them.

After Wang et al., DualCP: Rehearsal-Free Domain-Incremental Learning via Dual-Level Concept
Prototype, AAAI 2025, of which only the idea is known here: class names are grouped, each class has
a coarse prototype (of its group) and a fine one (within its group) made of text features, the same
for all domains, and a calibrator from coarse to fine maps images to them under a dot-regression
loss. Everything below is a construction of this project and is not DualCP. With text embeddings w_c
in groups g, their mean w over all classes, and x = n(z - mean of base features)

    u_g = n( mean of w_c in g  -  w ),     v_c = n( w_c - mean of w in its group )
    a = n( x + A x + a_0 ),                b = n( x + B [x; a] + b_0 )
    loss  = 1/2 (u . a - 1)^2 + lam/2 (v . b - 1)^2 + 0.1 cross-entropy(10 score, y)
    score_c = u_g(c) . a + lam v_c . b
    prediction = argmax of (1 - share) softmax(s z . w_c) + share softmax(10 score)

A and B start at zero. The targets never change, which is all that protects earlier domains. With
`anchors` features drawn from the base domain's Gaussians (`resampling.py`) join each later step.

Choices: groups come from K-means on the text embeddings, as many as the square root of the number
of classes, or they are given; a class alone in its group takes n(w_c - w) as fine prototype; one
group has no coarse prototype. `prototypes=etf` takes the vertices of random simplices, which are as
far from each other as can be, instead of text. The cross-entropy is there because dot regression
pulls to the own prototype and pushes from no other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
import torch.nn.functional as F

from fsdil_bench import Batch, Context, Method, RequestError, State, TrainDomain, option

from ..embedded import on_embedded_worlds
from ..moments import class_means, moments
from ..prompts.kmeans_router import kmeans
from ..resampling import draw, factors, shrunk_within
from ..text_classifier import class_embeddings, templates_option
from .zero_shot_fusion import mixed

_SHARPNESS = 10.0  # of scores in the softmax
_PUSH = 0.1  # weight of the cross-entropy


@dataclass(frozen=True)
class Config:
    """Options of dualcp-lite."""

    groups: tuple[int, ...] = option((), "the group of every class; without it, from K-means")
    prototypes: Literal["text", "etf"] = option("text", "prototypes from text, or simplices")
    fine: float = option(1.0, "weight of the fine prototypes", minimum=0)
    share: float = option(
        0.5, "share of the prototypes; the rest is zero-shot", minimum=0, maximum=1
    )
    lr: float = option(1e-3, "learning rate of AdamW", minimum=0)
    batch_size: int = option(64, "features per step", minimum=1)
    base_epochs: int = option(5, "passes over the base domain", minimum=0)
    steps: int = option(100, "gradient steps for a few-shot domain", minimum=0)
    anchors: int = option(0, "features of the base domain drawn in a later step", minimum=0)
    templates: tuple[str, ...] = templates_option()


class DualCPLite(Method):
    """Images mapped to prototypes that no domain moves."""

    Config = Config
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "cddb-hard": {"base_epochs": 5},
        "core50": {"base_epochs": 5},
        "domainnet": {"base_epochs": 5},
        **on_embedded_worlds("base_epochs", "steps"),
    }
    inputs = frozenset({"features"})
    inert: ClassVar[dict[str, str]] = {
        "groups": "a value that fits depends on the number of classes",
        "batch_size": "a small slice has fewer images in a domain",
    }

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        size = context.backbone.embed_dim
        self.text = class_embeddings(context, context.config.templates)
        groups = self._groups().to(context.device)
        build = simplex_prototypes if context.config.prototypes == "etf" else text_prototypes
        coarse, fine = build(self.text, groups, context.generator("simplices"))
        self.weights: State = {
            "coarse_map": torch.zeros(size, size),
            "coarse_bias": torch.zeros(size),
            "fine_map": torch.zeros(size, 2 * size),
            "fine_bias": torch.zeros(size),
        }
        fixed = {"mean": torch.zeros(size), "groups": groups, "coarse": coarse, "fine": fine}
        self.fixed: State = {name: value.to(context.device) for name, value in fixed.items()}
        self.weights = {name: value.to(context.device) for name, value in self.weights.items()}
        self.anchors: State = {}

    def learn(self, domain: TrainDomain) -> None:
        """Continue training the two maps."""
        z, labels, config = domain.features(), domain.labels, self.context.config
        if domain.index == 0:
            self.fixed["mean"] = z.double().mean(0).float()
        self._train(domain, z, labels)
        if domain.index == 0 and config.anchors:
            own = moments(z, labels, len(self.text))
            self.anchors = {
                "anchor_means": class_means(own).float(),
                "anchor_covariance": shrunk_within(own).float(),
            }

    def predict(self, batch: Batch) -> torch.Tensor:
        """The class with the largest mixed score."""
        z, config = batch.features, self.context.config
        scores = (_SHARPNESS * self.scores(*self.mapped(z, self.weights))).softmax(1)
        scale = self.context.backbone.logit_scale
        return mixed(scores.double(), z.double(), self.text.double(), scale, config.share).argmax(1)

    def mapped(self, z: torch.Tensor, weights: State) -> tuple[torch.Tensor, torch.Tensor]:
        """a and b."""
        x = F.normalize(z - self.fixed["mean"], dim=1)
        a = F.normalize(x + F.linear(x, weights["coarse_map"], weights["coarse_bias"]), dim=1)
        both = torch.cat([x, a], 1)
        b = F.normalize(x + F.linear(both, weights["fine_map"], weights["fine_bias"]), dim=1)
        return a, b

    def scores(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """Of all classes, (n, C)."""
        coarse = self.fixed["coarse"][self.fixed["groups"]]
        return a @ coarse.T + self.context.config.fine * b @ self.fixed["fine"].T

    def regression(self, a: torch.Tensor, b: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """The dot-regression loss, (n,)."""
        fine = ((b * self.fixed["fine"][labels]).sum(1) - 1).square()
        loss = self.context.config.fine / 2 * fine
        if len(self.fixed["coarse"]) > 1:
            own = self.fixed["coarse"][self.fixed["groups"][labels]]
            loss = loss + ((a * own).sum(1) - 1).square() / 2
        return loss

    def state_dict(self) -> State:
        """The maps, the prototypes, and what is drawn from."""
        return self.weights | self.fixed | self.anchors

    def load_state_dict(self, state: State) -> None:
        """Load copies."""
        for part in (self.weights, self.fixed):
            part.update({name: state[name].clone() for name in part})
        self.anchors = {k: v.clone() for k, v in state.items() if k.startswith("anchor_")}

    def trained_parameters(self) -> int:
        """Both maps."""
        return sum(weight.numel() for weight in self.weights.values())

    def _train(self, domain: TrainDomain, z: torch.Tensor, labels: torch.Tensor) -> None:
        config, size = self.context.config, min(self.context.config.batch_size, len(z))
        steps = config.steps if domain.index else config.base_epochs * -(-len(z) // size)
        generator = self.context.generator("training", domain.index)
        weights = {name: w.clone().requires_grad_() for name, w in self.weights.items()}
        optimizer = torch.optim.AdamW(
            weights.values(), lr=config.lr, weight_decay=0.0, fused=self.context.fused
        )
        factor = factors(self.anchors["anchor_covariance"]) if self.anchors else None
        order = torch.randperm(0)
        with domain.training(steps) as advance:
            for _ in range(steps):
                if not len(order):
                    order = torch.randperm(len(z), generator=generator).to(z.device)
                rows, order = order[:size], order[size:]
                features, wanted = z[rows], labels[rows]
                if factor is not None:
                    few = torch.randint(len(self.text), (config.anchors,), generator=generator)
                    few = few.to(z.device)
                    old = draw(self.anchors["anchor_means"][few], factor, generator)
                    features, wanted = torch.cat([features, old]), torch.cat([wanted, few])
                a, b = self.mapped(features, weights)
                push = F.cross_entropy(_SHARPNESS * self.scores(a, b), wanted)
                loss = self.regression(a, b, wanted).mean() + _PUSH * push
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                advance()
        self.weights = {name: weight.detach() for name, weight in weights.items()}

    def _groups(self) -> torch.Tensor:
        """The group of every class, numbered from 0."""
        given, classes = self.context.config.groups, len(self.text)
        if given:
            if len(given) != classes:
                raise RequestError(
                    f"groups of {len(given)} classes, but there are {classes}",
                    "Give one number for every class, or none.",
                )
            return torch.tensor(given).unique(return_inverse=True)[1]
        count = max(1, round(classes**0.5))
        centres = kmeans(self.text, count, self.context.generator("groups"))
        nearest = torch.cdist(self.text.double(), centres.double()).argmin(1)
        return nearest.unique(return_inverse=True)[1]


def text_prototypes(
    text: torch.Tensor, groups: torch.Tensor, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """Coarse (G, d) and fine (C, d) unit prototypes from class names."""
    del generator
    members = F.one_hot(groups).to(text)
    centres, middle = (members.T @ text) / members.sum(0)[:, None], text.mean(0)
    coarse = F.normalize(centres - middle, dim=1)
    if len(centres) == 1:
        coarse = torch.zeros_like(coarse)
    alone = (members.sum(0) == 1)[groups]
    fine = torch.where(alone[:, None], text - middle, text - centres[groups])
    return coarse, F.normalize(fine, dim=1)


def simplex_prototypes(
    text: torch.Tensor, groups: torch.Tensor, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """The same from random simplices: one for the groups, one within each group."""
    count, size = int(groups.max()) + 1, text.shape[1]
    coarse = simplex(count, size, generator) if count > 1 else torch.zeros(1, size)
    fine = torch.zeros(len(text), size)
    for group in range(count):
        members = (groups == group).cpu()
        fine[members] = simplex(int(members.sum()), size, generator)
    return coarse.to(text), fine.to(text)


def simplex(count: int, size: int, generator: torch.Generator) -> torch.Tensor:
    """Unit vectors (n, d) with equal angles, cosine -1 / (n - 1); one is a random direction."""
    if count > size:
        raise RequestError(
            f"a simplex of {count} vertices does not fit into {size} dimensions",
            "Set prototypes=text.",
        )
    frame = torch.linalg.qr(torch.randn(size, count, generator=generator)).Q.T
    return F.normalize(frame - frame.mean(0), dim=1) if count > 1 else frame
