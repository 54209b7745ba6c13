"""The parts of CVLC as methods of their own, without training."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from fsdil_methods.cvlc.method import CVLC
from fsdil_methods.cvlc.untrained_prototypes import FusedPrototypes
from fsdil_methods.cvlc.untrained_text import TextPrototypes
from fsdil_methods.frozen.zero_shot import ZeroShot
from small_clip import ClipWorld
from tiny_world import CLASSES, copied, same

from fsdil_bench import Context, Method, RequestError

C = len(CLASSES)
SYNONYMS = (("fruit", "red ball"), ("ship", "ferry", "canoe"), ("kitten", "pet"), ())
TEMPLATES = ("{}", "this is a good {} ..")


def build(world: ClipWorld, kind: type[Method], **config: Any) -> Any:
    """A method that knows synonyms."""
    plain = world.method(kind, **config).context
    parts = plain.config, world.backbone, world.stream.class_names, SYNONYMS, world.seed
    return kind(Context(*parts))


def unit(x: np.ndarray) -> np.ndarray:
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def pn(x: np.ndarray) -> np.ndarray:
    return np.sign(x) * (np.abs(x) + 1e-8) ** 0.8


def plain_text(world: ClipWorld, share: float, power: bool, most: int = 10) -> np.ndarray:
    """Every class and synonym in a loop."""

    def embedded(word: str) -> np.ndarray:
        texts = [template.replace("{}", word) for template in TEMPLATES]
        e = world.backbone.encode_text(texts).double().numpy()
        return unit((pn(unit(e)) if power else e).mean(0))

    rows = []
    for name, words in zip(CLASSES, SYNONYMS, strict=True):
        own = embedded(name)
        if words:
            others = np.stack([embedded(word) for word in words[: min(most, 2)]])  # all have two
            weights = np.exp(others @ own)
            mean = weights @ others / weights.sum()
            own = unit(share * mean + (1 - share) * own)
        rows.append(own)
    return np.stack(rows)


@pytest.mark.parametrize(("share", "most"), [(0.5, 10), (0.2, 10), (0.5, 1)])
def test_text_prototypes(clip_world: ClipWorld, share: float, most: int) -> None:
    options: dict[str, Any] = {"synonym_share": share, "most_synonyms": most}
    method = build(clip_world, TextPrototypes, templates=TEMPLATES, **options)
    wanted = plain_text(clip_world, share, power=False, most=most)
    np.testing.assert_allclose(method.text, wanted, atol=1e-6)
    z = clip_world.test_batch().features.double().numpy()
    assert clip_world.predict(method) == (z @ wanted.T).argmax(1).tolist()


def test_one_template_without_synonyms_is_zero_shot(clip_world: ClipWorld) -> None:
    options = {"templates": ("a photo of a {}.",), "synonyms": False}
    text = build(clip_world, TextPrototypes, **options)
    assert clip_world.predict(text) == clip_world.predict(clip_world.method(ZeroShot))
    with pytest.raises(RequestError, match="no place for the class name"):
        build(clip_world, TextPrototypes, templates=("no name",))


def test_fused_prototypes(clip_world: ClipWorld) -> None:
    """Against the formula, domain by domain, from plain and augmented views."""
    method = build(clip_world, FusedPrototypes, templates=TEMPLATES, least_views=6)
    text, stored = plain_text(clip_world, 0.5, power=True), []
    for t in range(3):
        domain = clip_world.domain(t)
        method.learn(domain)
        again = clip_world.domain(t)
        views = [(again.features(), again.labels)] * (3 if t else 1)
        for batch in again.batches(64, shuffle=False, epochs=3 if t else 0):
            views.append((clip_world.backbone.encode_image(batch.images), batch.labels))
        z = pn(unit(torch.cat([v for v, _ in views]).double().numpy()))
        labels = torch.cat([y for _, y in views]).numpy()
        means = np.stack([z[labels == c].mean(0) for c in range(C)])
        stored.append(unit(0.5 * means + 0.5 * text))
        own = stored[t] if t == 0 else unit(0.5 * stored[t] + 0.5 * stored[0])
        np.testing.assert_allclose(method.classifier(t), unit(0.5 * own + 0.5 * text), atol=1e-5)


def test_untrained_cvlc_without_shift_is_the_same(clip_world: ClipWorld) -> None:
    """In the base domain, where no view is random."""
    cvlc = build(
        clip_world, CVLC, adapter="none", base_epochs=0, shift_std=0.0, templates=TEMPLATES,
        reservation=False,
    )  # fmt: skip
    fused = build(clip_world, FusedPrototypes, templates=TEMPLATES)
    for method in (cvlc, fused):
        method.learn(clip_world.domain(0))
    torch.testing.assert_close(fused.prototypes, cvlc.prototypes, atol=1e-5, rtol=0)
    for own, other in zip(fused.statistics, cvlc.statistics, strict=True):
        torch.testing.assert_close(own, other)
    assert clip_world.predict(fused) == clip_world.predict(cvlc)


@pytest.mark.parametrize("rule", ["gaussian", "gaussian-logdet", "gaussian-common", "class-pooled"])
def test_a_stopped_run_continues_identically(clip_world: ClipWorld, rule: str) -> None:
    options: dict[str, Any] = {"least_views": 4, "domain_rule": rule}
    whole, resumed = (build(clip_world, FusedPrototypes, **options) for _ in range(2))
    outcome = clip_world.run(whole, "whole")
    clip_world.run(build(clip_world, FusedPrototypes, **options), "stopped", domains=2)
    assert clip_world.run(resumed, "stopped").matrix == outcome.matrix
    assert same(copied(whole), copied(resumed))
    assert outcome.trained_parameters == [0, 0, 0]
    oracle = outcome.oracle_matrix
    assert [row[0] for row in oracle] == [oracle[0][0]] * 3


def test_frozen_cvlc_trains_no_block(clip_world: ClipWorld) -> None:
    method = build(
        clip_world, CVLC, adapter="none", base_epochs=1, epochs=1, least_views=2, candidates=8,
        pseudo_samples=2,
    )  # fmt: skip
    outcome = clip_world.run(method)
    size = clip_world.backbone.embed_dim
    # Ten scalars, the domain's shift, the text shift, the classifier and its scale.
    assert outcome.trained_parameters == [10 + 2 * size + C * size + 1] * 3
    assert not any("vision.blocks" in name or "text.blocks" in name for name in copied(method))
    raw = method._encode(clip_world.test_batch().images, method.weights.vision_adapters(2))
    torch.testing.assert_close(raw, clip_world.test_batch().features, atol=1e-5, rtol=0)


def test_frozen_cvlc_learns(clip_world: ClipWorld) -> None:
    methods = [
        build(clip_world, CVLC, adapter="none", base_epochs=epochs, reservation=False, lr=1e-2)
        for epochs in (0, 3)
    ]
    for method in methods:
        method.learn(clip_world.domain(0))
    states = [copied(method) for method in methods]
    assert not torch.equal(states[0]["prototypes"], states[1]["prototypes"])
    assert replace(methods[0].config, base_epochs=3) == methods[1].config
