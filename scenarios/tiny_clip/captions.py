"""Seeded captions of drawn pictures: what tiny-clip reads during pre-training.

A caption calls the object by its class name or by a *known* synonym. Four of the ten synonyms of
every class are held out of all captions (`HELD_OUT`, a seeded choice): a model that had read
every synonym as often as the name could not tell a benchmark anything about synonyms.
Some captions also say in which style the picture is drawn, and in some the object is spelled
letter by letter, so that the tokenizer's fallback for unknown words is trained, too.
Run as a script, the module writes the vocabulary of its captions to `vocabulary.json`.

"A photo of a ..." is used for pictures in every style, as on the web and in prompts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .tokenizer import VOCABULARY_FILE, build_vocabulary, split_words

SYNONYMS: dict[str, list[str]] = json.loads(
    (Path(__file__).parents[1] / "drawn" / "classes.json").read_text(encoding="utf-8")
)
HELD_OUT_PER_CLASS = 4
NAME_SHARE = 0.6  # the other captions use a known synonym


def _held_out() -> dict[str, list[str]]:
    """The choice depends on nothing but the list itself, so that it can be repeated."""
    choice = np.random.default_rng(0)
    return {
        name: [str(word) for word in choice.permutation(synonyms)[:HELD_OUT_PER_CLASS]]
        for name, synonyms in SYNONYMS.items()
    }


HELD_OUT = _held_out()
KNOWN = {
    name: [synonym for synonym in synonyms if synonym not in HELD_OUT[name]]
    for name, synonyms in SYNONYMS.items()
}

STYLES: dict[str, list[str]] = {
    "real": ["realistic picture", "lifelike picture", "natural image", "real world photo"],
    "painting": ["painting", "oil painting", "painted picture", "artwork"],
    "clipart": ["clipart", "clip art", "cartoon", "flat illustration"],
    "infograph": ["infograph", "infographic", "info graphic", "chart with an icon"],
    "sketch": ["sketch", "pencil sketch", "pencil drawing", "hatched drawing"],
    "quickdraw": ["quickdraw", "quick draw", "doodle", "hasty line drawing"],
}

SHORT = [
    "{}",
    "{} .",
    "{} ..",
    "a {}",
    "the {}",
    "one {}",
    "a photo of a {}",
    "a photo of a {} .",
    "a photo of the {}",
    "a photo of one {} .",
    "a photo of a small {}",
    "a photo of a large {}",
    "a picture of a {}",
    "an image of a {}",
    "a drawing of a {}",
    "an image showing a {} .",
    "this is a {}",
    "this is a good {} ..",
    "it is about the {} ..",
    "here is a {} !",
    "look at this {}",
    "there is a {} here",
    "a nice {} , nothing else",
]
SHORT_OF_MANNER = [
    "a {style} of a {}",
    "a {style} of the {} .",
    "{style} of a {}",
    "{} , {style}",
    "a {} as a {style}",
    "a {} in the style of a {style}",
    "this is a {style} of a {} ..",
]
LONG = [
    "in this picture we can see a {} that someone has put right in the middle of the image",
    "a photo of a {} , which is a kind of thing that most people know from home or outside",
    "what you can see here is nothing but a {} in front of a plain background .",
    "it is a picture about the {} , and there is no other thing in it that would matter",
    "if you ask me what this image shows , i would say that it is a {} ..",
    "this is a good picture of a {} , seen from the front and drawn by a computer .",
    "once again a {} , a bit larger or smaller and a bit more to the side than the others",
    "people use many words for it , but the most of them would call this thing a {} .",
]
LONG_OF_MANNER = [
    "in this {style} we can see a {} that someone has put right in the middle",
    "the object in the picture is a {} , and it was made in the style of a {style} ..",
    "a {style} that shows nothing but a {} , a bit to the side of the middle of the image",
    "this is a {} as you would find it in a {style} , and not in any other kind of picture",
]


@dataclass(frozen=True)
class Caption:
    """A text, what it says, and the words of it to be spelled letter by letter.

    It is true of pictures of the class, and if it names a style, of those in that style only.
    """

    text: str
    class_name: str
    style: str | None = None
    spelled: frozenset[str] = frozenset()


def caption(
    class_name: str,
    rng: np.random.Generator,
    *,
    style: str | None = None,
    long: bool = False,
    spelled: bool = False,
) -> Caption:
    """A random caption of a class, which names the style if one is given.

    `spelled` has the name spelled; a long caption may then be too long for the context.
    """
    name = class_name if rng.random() < NAME_SHARE else _pick(KNOWN[class_name], rng)
    words = frozenset(split_words(name)) if spelled else frozenset()
    if style is None:
        text = _pick(LONG if long else SHORT, rng).format(name)
    else:
        template = _pick(LONG_OF_MANNER if long else SHORT_OF_MANNER, rng)
        text = template.format(name, style=_pick(STYLES[style], rng))
    return Caption(text, class_name, style, words)


def all_texts() -> Iterator[str]:
    """What captions are made of, and so every word that the vocabulary needs."""
    for templates in (SHORT, SHORT_OF_MANNER, LONG, LONG_OF_MANNER):
        yield from (template.format("", style="") for template in templates)
    for style in STYLES.values():
        yield from style
    for name, known in KNOWN.items():
        yield from (name, *known)


def _pick(options: list[str], rng: np.random.Generator) -> str:
    return options[rng.integers(len(options))]


if __name__ == "__main__":
    VOCABULARY_FILE.write_text(json.dumps(build_vocabulary(all_texts()), indent=0) + "\n")
