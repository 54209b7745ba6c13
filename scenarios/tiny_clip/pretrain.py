"""Pre-train tiny-clip from scratch on captions of drawn pictures.

    python -m fsdil_scenarios.tiny_clip.pretrain --out DIR [--pairs 300000] [--seed 0]

writes `weights.safetensors` and `report.json` to DIR. An interrupted run continues from its last
checkpoint when the same command is given again, and ends with the same weights.

Pictures come from two sources (`pictures.py`): drawn objects, most of them `real`, the near styles
rarer, hardly any `sketch` and no `quickdraw` at all; and marked things, which are none of the
shelf's individuals at none of its places. No picture is a forgery. So the model knows each of the
three embedded worlds about as well as CLIP knows the real one behind it: a benchmark needs domains
that its model does not know well yet.

This is not pre-training as it is done on the web. There, nobody knows which captions are true of
which pictures; here the facts behind the pictures say so, and the loss uses them twice:

* Every caption that is true of a picture counts as a positive. A step with captions reads some
  that name an object, and those of some of the step's own pictures, a few of which are wrong.
* Linear classifiers on the picture embedding learn the facts. At first, and in every second step,
  they are the only loss; in steps with captions they have half the weight. They are thrown away in
  the end. Without them, a model this small may stay at chance for very long.

Only the "pretrain" split is used for training; "validation" pictures show the progress; the
benchmark's own training and test pictures are never used.

On a CPU that other programs use as well, `GOMP_SPINCOUNT=1000` in the environment can double
the speed.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from open_clip.model import CLIP
from torch.nn import functional as F

from ..shelf.names import NAMES
from ..shelf.sessions import DOMAINS as SESSIONS
from .captions import STYLES, Caption, caption
from .facts import VALUES, Facts, facts_of
from .model import (
    CONFIG,
    IMAGE_SIZE,
    build_model,
    embed_pictures,
    save_weights,
    to_pixels,
)
from .pictures import Picture, draw_pictures, thing
from .profile import (
    CLASSES,
    accuracy,
    individuals,
    labels_of,
    plan_of,
    text_embeddings,
)
from .tokenizer import Tokenizer

#: Of all pictures: drawn objects by style, and marked things.
SHARES = {
    "real": 0.53,
    "painting": 0.08,
    "clipart": 0.13,
    "infograph": 0.085,
    "sketch": 0.005,
    "quickdraw": 0.0,
    "things": 0.17,
}
PEAK_RATE = 5e-4
WARM_UP_STEPS = 100
BATCH = 64
# At first only the picture tower learns: before it tells classes apart, captions are as good as
# noise to it. Later captions are read in some steps only, since they are learned far sooner.
PICTURES_ONLY_PAIRS = 40_000
CAPTIONS_EVERY = 2
CAPTIONS_OF_OBJECTS = 12
CAPTIONS_OF_PICTURES = 32
#: How often a caption says what there is to say.
SAID = {"style": 0.4, "colour": 0.8, "mark": 0.7, "mark_colour": 0.85}
WRONG_SHARE = 0.1  # of the captions of pictures
# Long and spelled captions come together, since the longest one of a step sets its cost.
LENGTHY_EVERY = 6 * CAPTIONS_EVERY
CLASSIFIER_WEIGHT = 0.5
LARGEST_SHIFT = 4
VALIDATION_PER_CLASS = 8


@dataclass(frozen=True)
class Settings:
    """What determines the weights of a run, apart from the code."""

    pairs: int
    images: int
    seed: int


@dataclass
class Progress:
    """How far a run has got."""

    pairs: int = 0
    steps: int = 0
    seconds: float = 0.0


def training_plan(images: int) -> list[Picture]:
    """About `images` pictures by their shares; every drawn class as often as the others."""

    def each(share: float) -> int:
        return max(1, round(images * share / len(CLASSES))) if share else 0

    plan = [picture for style in STYLES for picture in plan_of(style, each(SHARES[style]))]
    return plan + [thing("pretrain", index) for index in range(round(images * SHARES["things"]))]


def augment(pictures: np.ndarray, rng: np.random.Generator) -> torch.Tensor:
    """Pixels of pictures that are mirrored, shifted and lit at random."""
    count, size = pictures.shape[:2]
    offsets = rng.integers(-LARGEST_SHIFT, LARGEST_SHIFT + 1, (2, count, 1))
    rows, columns = np.clip(np.arange(size) + offsets, 0, size - 1)
    mirrored = rng.random((count, 1)) < 0.5
    columns = np.where(mirrored, columns[:, ::-1], columns)
    moved = pictures[np.arange(count)[:, None, None], rows[:, :, None], columns[:, None, :]]
    contrast = torch.from_numpy(rng.uniform(0.8, 1.2, (count, 1, 1, 1))).float()
    brightness = torch.from_numpy(rng.uniform(-0.4, 0.4, (count, 1, 1, 1))).float()
    return to_pixels(moved) * contrast + brightness


def step_captions(batch: list[Picture], lengthy: bool, rng: np.random.Generator) -> list[Caption]:
    """Captions of some objects, and of the first pictures, which say a part of what is true."""
    objects = rng.permutation(VALUES["object"])[:CAPTIONS_OF_OBJECTS]
    said = [(facts_of(object=str(name)), False) for name in objects]
    said += [(_part(picture, rng), True) for picture in batch[:CAPTIONS_OF_PICTURES]]
    captions = []
    for number, (facts, of_picture) in enumerate(said):
        long = lengthy and rng.random() < 0.5
        # Of a wrong caption another one is taken for the text.
        wrong = of_picture and rng.random() < WRONG_SHARE
        told = said[rng.integers(len(said))][0] if wrong else facts
        spelled = lengthy and not long and number < CAPTIONS_OF_OBJECTS
        made = caption(told, rng, long=long, spelled=spelled)
        captions.append(replace(made, says=facts))
    return captions


def _part(picture: Picture, rng: np.random.Generator) -> Facts:
    """What a caption says of the picture: always the object, and more at random."""
    kept = {
        name: value for name, value in sorted(picture.facts) if rng.random() < SAID.get(name, 1)
    }
    if "mark" not in kept:
        kept.pop("mark_colour", None)
    return facts_of(**kept)


def is_true(captions: list[Caption], batch: list[Picture]) -> torch.Tensor:
    """Which captions (columns) are true of which pictures (rows)."""
    return torch.tensor([[c.says <= p.facts for c in captions] for p in batch])


def classifier_labels(batch: list[Picture]) -> dict[str, torch.Tensor]:
    """The number of every picture's value in each respect; -1 where nothing is known."""
    return {
        of: torch.tensor([values.index(p.fact(of)) if p.fact(of) else -1 for p in batch])
        for of, values in VALUES.items()
    }


def embed_texts(model: CLIP, tokens: torch.Tensor) -> torch.Tensor:
    """What `encode_text` returns, without the padding after the longest text.

    The text tower is causal, so that padding costs time and changes nothing.
    """
    ends = tokens.argmax(1)
    length = int(ends.max()) + 1
    x = model.token_embedding(tokens[:, :length]) + model.positional_embedding[:length]
    x = model.transformer(x, attn_mask=model.attn_mask[:length, :length])
    x = model.ln_final(x[torch.arange(len(x)), ends]) @ model.text_projection
    return F.normalize(x, dim=-1)


def multi_positive_loss(logits: torch.Tensor, positive: torch.Tensor) -> torch.Tensor:
    """Cross-entropy from every row to all its positives in equal parts; empty rows are left out."""
    rows = positive.any(1)
    targets = positive[rows].float()
    return F.cross_entropy(logits[rows], targets / targets.sum(1, keepdim=True))


def _start_picture_tower(model: CLIP) -> None:
    """Initial weights from which the picture tower learns sooner than from open_clip's own."""
    # Far larger than usual, or the places of patches are learned too late.
    torch.nn.init.normal_(model.visual.positional_embedding, std=0.5)
    # Every block adds little at first, as open_clip has it in the text tower only.
    with torch.no_grad():
        for block in model.visual.transformer.resblocks:
            block.attn.out_proj.weight.mul_(0.3)
            block.mlp.c_proj.weight.mul_(0.3)


def learning_rate(progress: Progress, settings: Settings) -> float:
    """A linear warm-up, a second one when captions start, then half a cosine down to zero."""
    steps = progress.steps + 1
    if progress.pairs >= PICTURES_ONLY_PAIRS:
        steps -= PICTURES_ONLY_PAIRS // BATCH
    warm_up = min(1.0, steps / WARM_UP_STEPS)
    return PEAK_RATE * warm_up * 0.5 * (1 + math.cos(math.pi * progress.pairs / settings.pairs))


class Trainer:
    """The model, the classifier to be thrown away and the optimiser of one run."""

    def __init__(self, settings: Settings, plan: list[Picture], pictures: np.ndarray) -> None:
        torch.manual_seed(settings.seed)
        self.settings, self.plan, self.pictures = settings, plan, pictures
        self.tokenizer = Tokenizer.load()
        self.progress = Progress()
        self.model = build_model()
        _start_picture_tower(self.model)
        width = CONFIG["model_cfg"]["embed_dim"]
        self.classifier = torch.nn.ModuleDict(
            {of: torch.nn.Linear(width, len(values)) for of, values in VALUES.items()}
        )
        parameters = [*self.model.parameters(), *self.classifier.parameters()]
        self.optimiser = torch.optim.AdamW(
            [
                {"params": [p for p in parameters if p.ndim > 1], "weight_decay": 0.1},
                {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0},
            ],
            betas=(0.9, 0.98),
        )

    def step(self) -> float:
        """One step of the optimiser; its random draws depend only on the seed and its number."""
        progress, started = self.progress, time.monotonic()
        rng = np.random.default_rng([self.settings.seed, progress.steps])
        chosen = rng.integers(len(self.plan), size=BATCH)
        batch = [self.plan[index] for index in chosen]
        seen = self.model.encode_image(augment(self.pictures[chosen], rng))
        loss = self._classifier_loss(seen, batch)
        if progress.pairs >= PICTURES_ONLY_PAIRS and progress.steps % CAPTIONS_EVERY == 0:
            loss = CLASSIFIER_WEIGHT * loss + self._caption_loss(seen, batch, rng)

        for group in self.optimiser.param_groups:
            group["lr"] = learning_rate(progress, self.settings)
        self.optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimiser.step()
        with torch.no_grad():
            self.model.logit_scale.clamp_(max=math.log(100))
        progress.pairs += len(batch)
        progress.steps += 1
        progress.seconds += time.monotonic() - started
        return float(loss.detach())

    def _classifier_loss(self, seen: torch.Tensor, batch: list[Picture]) -> torch.Tensor:
        """The mean over respects, each weighted by how many pictures have it."""
        losses = [
            F.cross_entropy(self.classifier[of](seen), labels, ignore_index=-1, reduction="sum")
            for of, labels in classifier_labels(batch).items()
        ]
        return torch.stack(losses).sum() / len(batch)

    def _caption_loss(
        self, seen: torch.Tensor, batch: list[Picture], rng: np.random.Generator
    ) -> torch.Tensor:
        captions = step_captions(batch, self.progress.steps % LENGTHY_EVERY == 0, rng)
        pieces = [self.tokenizer.pieces(c.text, c.spelled) for c in captions]
        read = embed_texts(self.model, self.tokenizer.pack(pieces))
        logits = self.model.logit_scale.exp() * F.normalize(seen, dim=-1) @ read.T
        positive = is_true(captions, batch)
        to_captions = multi_positive_loss(logits, positive)
        to_pictures = multi_positive_loss(logits.T, positive.T)
        return (to_captions + to_pictures) / 2

    def save(self, path: Path) -> None:
        """Write a checkpoint atomically: an interruption leaves the old or the new one."""
        state: dict[str, Any] = {
            "settings": asdict(self.settings),
            "progress": asdict(self.progress),
            "model": self.model.state_dict(),
            "classifier": self.classifier.state_dict(),
            "optimiser": self.optimiser.state_dict(),
        }
        unfinished = path.with_suffix(".unfinished")
        torch.save(state, unfinished)
        unfinished.replace(path)

    def load(self, path: Path) -> None:
        """Continue from a checkpoint of a run with the same settings."""
        state = torch.load(path, weights_only=True)
        if state["settings"] != asdict(self.settings):
            raise SystemExit(f"{path} belongs to a run with {state['settings']}: use another --out")
        self.progress = Progress(**state["progress"])
        self.model.load_state_dict(state["model"])
        self.classifier.load_state_dict(state["classifier"])
        self.optimiser.load_state_dict(state["optimiser"])


@dataclass(frozen=True)
class Validation:
    """Pictures that show the progress of a run."""

    plan: list[Picture]
    drawn: np.ndarray
    things: np.ndarray
    whose: torch.Tensor

    @classmethod
    def load(cls, out: Path, workers: int) -> Validation:
        """Some pictures of every drawn style, and one of every individual in every session."""
        plan = [picture for style in STYLES for picture in plan_of(style, VALIDATION_PER_CLASS)]
        path = out / "validation.npy"
        drawn = draw_pictures(plan, "validation", IMAGE_SIZE, workers=workers, path=path)
        return cls(plan, drawn, *individuals(list(SESSIONS), frames=1))

    def figures(self, model: CLIP) -> dict[str, float]:
        """Accuracy of "a photo of a NAME" in every style and on the shelf, in per cent."""
        model.eval()
        seen, names = embed_pictures(model, self.drawn), text_embeddings(model, CLASSES)
        labels, found = labels_of(self.plan), {}
        for style in STYLES:
            rows = torch.tensor([picture.fact("style") == style for picture in self.plan])
            found[style] = round(100 * accuracy(seen[rows], names, labels[rows]), 1)
        seen, names = embed_pictures(model, self.things), text_embeddings(model, NAMES)
        found["shelf"] = round(100 * accuracy(seen, names, self.whose), 1)
        model.train()
        return found


def pretrain(
    out: Path,
    settings: Settings,
    *,
    workers: int = 2,
    validate_every: int = 10_000,
    checkpoint_seconds: float = 180.0,
) -> Path:
    """Run or continue a pre-training in the folder `out`; returns the file of weights."""
    out.mkdir(parents=True, exist_ok=True)
    plan = training_plan(settings.images)
    pictures = draw_pictures(
        plan, "pretrain", IMAGE_SIZE, workers=workers, path=out / "pretrain.npy"
    )
    validation = Validation.load(out, workers)
    trainer = Trainer(settings, plan, pictures)
    checkpoint = out / "checkpoint.pt"
    if checkpoint.exists():
        trainer.load(checkpoint)
    progress, saved = trainer.progress, time.monotonic()
    while progress.pairs < settings.pairs:
        before = progress.pairs // validate_every
        loss = trainer.step()
        if progress.pairs // validate_every > before:
            figures = validation.figures(trainer.model)
            line = "  ".join(f"{style} {figure:.0f}" for style, figure in figures.items())
            print(
                f"{progress.pairs} pairs, {progress.seconds:.0f} s, loss {loss:.2f}: {line}",
                flush=True,
            )
        if time.monotonic() - saved >= checkpoint_seconds:
            trainer.save(checkpoint)
            saved = time.monotonic()

    weights = out / "weights.safetensors"
    save_weights(trainer.model, weights)
    report = {
        "settings": asdict(settings),
        "shares": SHARES,
        "pictures": len(plan),
        "parameters": sum(p.numel() for p in trainer.model.parameters()),
        "steps": progress.steps,
        "pairs": progress.pairs,
        "training_seconds": round(progress.seconds),
        "torch": torch.__version__,
        "zero_shot_validation": validation.figures(trainer.model),
    }
    (out / "report.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    return weights


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description="Pre-train tiny-clip on drawn pictures.")
    parser.add_argument("--out", type=Path, required=True, help="folder of the run")
    parser.add_argument("--pairs", type=int, default=300_000, help="pictures seen in all")
    parser.add_argument("--images", type=int, default=50_000, help="different pictures to draw")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2, help="processes that draw")
    parser.add_argument("--threads", type=int, default=2, help="threads of torch")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    settings = Settings(arguments.pairs, arguments.images, arguments.seed)
    print("weights in", pretrain(arguments.out, settings, workers=arguments.workers))


if __name__ == "__main__":
    main()
