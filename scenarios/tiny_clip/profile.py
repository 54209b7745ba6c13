"""How good tiny-clip is in every style, and how much a few shots could add.

    python -m fsdil_scenarios.tiny_clip.profile [--weights FILE]

For every style, on the validation split: zero-shot accuracy with "a photo of a NAME", and the
accuracy of a linear classifier on frozen picture embeddings after eight shots per class, started
from zero and from the class embeddings. A style is worth a benchmark if the probe gains on
zero-shot: that is the headroom. The model was chosen by these figures; the test split stays
untouched.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from open_clip.model import CLIP
from torch.nn import functional as F

from .captions import STYLES, SYNONYMS
from .model import IMAGE_SIZE, WEIGHTS_FILE, embed_pictures, load_model
from .pictures import Picture, draw_pictures
from .tokenizer import Tokenizer

CLASSES = list(SYNONYMS)
SHOTS = 8
PENALTY = 0.1  # of the probe; chosen on the validation split, too, where 0.01 overfits
# Shots and test pictures of the probe share a split, but no index.
FIRST_SHOT = 1000


def plan_of(style: str, per_class: int, first: int = 0) -> list[Picture]:
    """`per_class` pictures of every class in one style, class after class."""
    return [Picture(name, style, first + index) for name in CLASSES for index in range(per_class)]


def labels_of(plan: list[Picture]) -> torch.Tensor:
    """Class numbers of planned pictures."""
    return torch.tensor([CLASSES.index(picture.class_name) for picture in plan])


@torch.inference_mode()
def class_embeddings(model: CLIP, template: str = "a photo of a {}") -> torch.Tensor:
    """Unit embeddings of all class names within a template."""
    tokens = Tokenizer.load()([template.format(name) for name in CLASSES])
    return model.encode_text(tokens, normalize=True)


def accuracy(embeddings: torch.Tensor, classifier: torch.Tensor, labels: torch.Tensor) -> float:
    """Share of embeddings that are nearest to the classifier's row of their class."""
    return float(((embeddings @ classifier.T).argmax(1) == labels).float().mean())


def linear_probe(
    embeddings: torch.Tensor, labels: torch.Tensor, start: torch.Tensor, scale: float
) -> torch.Tensor:
    """Logistic regression whose weight decay pulls towards `start` instead of zero."""
    change = torch.zeros_like(start, requires_grad=True)
    optimiser = torch.optim.LBFGS([change], max_iter=200, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimiser.zero_grad()
        logits = scale * embeddings @ (start + change).T
        value = F.cross_entropy(logits, labels) + PENALTY * change.square().sum()
        value.backward()
        return value

    optimiser.step(loss)
    return (start + change).detach()


def print_profile(model: CLIP, per_class: int, workers: int) -> None:
    """Print one line per style as soon as its pictures are drawn and embedded."""
    names = class_embeddings(model).clone()
    scale = float(model.logit_scale.detach().exp())
    print(f"{'style':<12}{'zero-shot':>12}{f'{SHOTS} shots':>12}{'+ names':>12}")
    for style in STYLES:
        tests, shots = plan_of(style, per_class), plan_of(style, SHOTS, FIRST_SHOT)
        pictures = draw_pictures(tests + shots, "validation", IMAGE_SIZE, workers=workers)
        embeddings = embed_pictures(model, np.asarray(pictures)).clone()
        tested, shown = embeddings[: len(tests)], embeddings[len(tests) :]
        classifiers = [names]
        for start in (torch.zeros_like(names), names):
            classifiers.append(linear_probe(shown, labels_of(shots), start, scale))
        figures = [accuracy(tested, classifier, labels_of(tests)) for classifier in classifiers]
        print(f"{style:<12}" + "".join(f"{100 * figure:>12.1f}" for figure in figures), flush=True)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description="Print the validation profile of tiny-clip.")
    parser.add_argument("--weights", type=Path, default=WEIGHTS_FILE)
    parser.add_argument("--per-class", type=int, default=40, help="test pictures of every class")
    parser.add_argument("--workers", type=int, default=2, help="processes that draw")
    arguments = parser.parse_args()
    print_profile(load_model(arguments.weights), arguments.per_class, arguments.workers)


if __name__ == "__main__":
    main()
