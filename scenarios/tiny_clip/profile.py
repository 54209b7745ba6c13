"""How good tiny-clip is in the three embedded worlds, and how much a few shots could add.

    python -m fsdil_scenarios.tiny_clip.profile [--weights FILE]

Three tables, all on pictures that no scenario shows. `drawn`: for every style, zero-shot accuracy
with "a photo of a NAME", and the accuracy of a linear classifier on frozen picture embeddings after
eight shots per class, started from zero and from the class embeddings. `shelf`: for every session,
zero-shot accuracy and that of a classifier that learned the base session. `forged`: for every
maker, zero-shot accuracy and that of classifiers that learned the base maker, or that maker.

The model was chosen by these figures, never by what a method gets; the test splits stay untouched.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from open_clip.model import CLIP
from torch.nn import functional as F

from ..drawn.world import CLASSES as OBJECTS
from ..drawn.world import DOMAINS as STYLES
from ..forged.makers import MAKERS
from ..forged.profile import pictures_of, transfer
from ..names import class_texts
from ..shelf.individuals import INDIVIDUALS
from ..shelf.names import NAMES
from ..shelf.sessions import DOMAINS as SESSIONS
from ..shelf.splits import FRAMES, random_split
from ..shelf.world import draw as draw_frame
from .model import IMAGE_SIZE, WEIGHTS_FILE, embed_pictures, load_model
from .pictures import Picture, draw_pictures, drawn_object, scaled
from .tokenizer import Tokenizer

CLASSES = list(OBJECTS)
SHOTS = 8
PENALTY = 0.1  # of the probe; chosen on the validation split, too, where 0.01 overfits
# Shots and test pictures of the probe share a split, but no index.
FIRST_SHOT = 1000
TEMPLATE = "a photo of a {}"


def plan_of(style: str, per_class: int, first: int = 0) -> list[Picture]:
    """`per_class` pictures of every class in one style, class after class."""
    return [drawn_object(name, style, first + i) for name in CLASSES for i in range(per_class)]


def labels_of(plan: list[Picture]) -> torch.Tensor:
    """Class numbers of planned pictures."""
    return torch.tensor([CLASSES.index(picture.fact("object")) for picture in plan])


def individuals(sessions: Sequence[str], frames: int) -> tuple[np.ndarray, torch.Tensor]:
    """Pictures of all individuals from videos that no scenario has, and who is on them."""
    apart = FRAMES // frames
    shown = [(s, w, f * apart) for s in sessions for w in range(len(NAMES)) for f in range(frames)]
    pictures = [scaled(draw_frame(w, s, f, split="profile"), IMAGE_SIZE) for s, w, f in shown]
    return np.stack(pictures), torch.tensor([who for _, who, _ in shown])


@torch.inference_mode()
def text_embeddings(model: CLIP, names: Sequence[str], template: str = TEMPLATE) -> torch.Tensor:
    """Unit embeddings of names within a template."""
    tokens = Tokenizer.load()([template.format(name) for name in names])
    return model.encode_text(tokens, normalize=True).clone()


def accuracy(embeddings: torch.Tensor, classifier: torch.Tensor, labels: torch.Tensor) -> float:
    """Share of embeddings that are nearest to the classifier's row of their class."""
    return float(((embeddings @ classifier.T).argmax(1) == labels).float().mean())


def linear_probe(
    embeddings: torch.Tensor,
    labels: torch.Tensor,
    start: torch.Tensor,
    scale: float,
    penalty: float = PENALTY,
) -> torch.Tensor:
    """Logistic regression whose weight decay pulls towards `start` instead of zero."""
    change = torch.zeros_like(start, requires_grad=True)
    optimiser = torch.optim.LBFGS([change], max_iter=200, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimiser.zero_grad()
        logits = scale * embeddings @ (start + change).T
        value = F.cross_entropy(logits, labels) + penalty * change.square().sum()
        value.backward()
        return value

    optimiser.step(loss)
    return (start + change).detach()


def print_drawn(model: CLIP, per_class: int, workers: int) -> None:
    """One line per style, as soon as its pictures are drawn and embedded."""
    names = text_embeddings(model, CLASSES)
    scale = float(model.logit_scale.detach().exp())
    print(f"{'drawn':<12}{'zero-shot':>12}{f'{SHOTS} shots':>12}{'+ names':>12}")
    for style in STYLES:
        tests, shots = plan_of(style, per_class), plan_of(style, SHOTS, FIRST_SHOT)
        pictures = draw_pictures(tests + shots, "validation", IMAGE_SIZE, workers=workers)
        embeddings = embed_pictures(model, np.asarray(pictures)).clone()
        tested, shown = embeddings[: len(tests)], embeddings[len(tests) :]
        classifiers = [names]
        for start in (torch.zeros_like(names), names):
            classifiers.append(linear_probe(shown, labels_of(shots), start, scale))
        _print_row(style, [accuracy(tested, each, labels_of(tests)) for each in classifiers])


def print_shelf(model: CLIP) -> None:
    """One line per session: names alone, and a classifier that learned the base session."""
    names, scale = text_embeddings(model, NAMES), float(model.logit_scale.detach().exp())
    base = next(iter(SESSIONS))
    splits = [random_split(f"profile/{who:02}") for who in range(len(INDIVIDUALS))]
    parts = []
    for number in range(2):
        frames = [(who, f) for who, split in enumerate(splits) for f in split[number]]
        drawn = [scaled(draw_frame(w, base, f, split="profile"), IMAGE_SIZE) for w, f in frames]
        labels = torch.tensor([who for who, _ in frames])
        parts.append((embed_pictures(model, np.stack(drawn)).clone(), labels))
    probe = linear_probe(*parts[0], torch.zeros_like(names), scale, penalty=0.001)
    print(f"{'shelf':<12}{'zero-shot':>12}{f'on {base}':>12}")
    for session in SESSIONS:
        if session == base:
            seen, who = parts[1]
        else:
            pictures, who = individuals([session], frames=10)
            seen = embed_pictures(model, pictures).clone()
        _print_row(session, [accuracy(seen, names, who), accuracy(seen, probe, who)])


def print_forged(model: CLIP, learned: int = 300, asked: int = 300) -> None:
    """One line per maker: names alone, and classifiers that learned the base or that maker."""
    names = class_texts("cddb-hard", ("0_real", "1_fake"), None, None)[0]
    texts = text_embeddings(model, names)
    train, test, labels = [], [], []
    for maker in MAKERS:
        (shown, shown_labels), (tested, labels_asked) = (
            pictures_of(maker, 0, learned),
            pictures_of(maker, learned, asked),
        )
        labels = [shown_labels, labels_asked]
        train.append(embed_pictures(model, shown).clone())
        test.append(embed_pictures(model, tested).clone())
    table = transfer(train, test, labels, 1e-3)
    print(f"{'forged':<12}{'zero-shot':>12}{'on weaver':>12}{'on itself':>12}")
    for number, maker in enumerate(MAKERS):
        zero = accuracy(test[number], texts, labels[1])
        _print_row(maker, [zero, table[0, number] / 100, table[number, number] / 100])


def _print_row(name: str, figures: list[float]) -> None:
    print(f"{name:<12}" + "".join(f"{100 * figure:>12.1f}" for figure in figures), flush=True)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description="Print the validation profile of tiny-clip.")
    parser.add_argument("--weights", type=Path, default=WEIGHTS_FILE)
    parser.add_argument("--per-class", type=int, default=40, help="drawn pictures of every class")
    parser.add_argument("--workers", type=int, default=2, help="processes that draw")
    arguments = parser.parse_args()
    model = load_model(arguments.weights)
    print_drawn(model, arguments.per_class, arguments.workers)
    print_shelf(model)
    print_forged(model)


if __name__ == "__main__":
    main()
