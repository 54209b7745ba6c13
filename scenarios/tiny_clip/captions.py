"""Seeded captions of pictures: what tiny-clip reads during pre-training.

A caption calls the object by its class name or by a *known* synonym. Four of the ten synonyms of
every drawn class are held out of all captions (`HELD_OUT`, a seeded choice), and so are about half
of the words that the shelf's paraphrases use: a model that had read every synonym as often as the
name could not tell a benchmark anything about synonyms. Captions may also say the style, the
colour or the marks, and in some the object is spelled letter by letter, so that the
tokenizer's fallback for unknown words is trained, too. As on the web, some captions are wrong.
Run as a script, the module writes the vocabulary of its captions to `vocabulary.json`.

"A photo of a ..." is used for pictures in every style, as on the web and in prompts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..shelf.names import MARKS, NOUNS, SHADES
from .facts import Facts
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


def _known_nouns() -> dict[str, list[str]]:
    """Words for kinds of things: of the five that the shelf uses, at most three."""
    return {
        kind: [noun for noun in (words[1], words[3]) if noun not in HELD_OUT.get(kind, ())]
        for kind, words in NOUNS.items()
    }


KNOWN_NOUNS = _known_nouns()
KNOWN_SHADES = {colour: shades[0] for colour, shades in SHADES.items()}
#: What a thing is with, and what it is, by its mark; the shelf has another expression of either.
KNOWN_MARKS = {mark: (forms[0], forms[2]) for mark, forms in MARKS.items()}

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
    """A text, what it says, and the words of it to be spelled letter by letter."""

    text: str
    says: Facts
    spelled: frozenset[str] = frozenset()


def caption(
    facts: Facts, rng: np.random.Generator, *, long: bool = False, spelled: bool = False
) -> Caption:
    """A random caption that says all of `facts`, among them what the object is.

    `spelled` has the name spelled; a long caption may then be too long for the context.
    """
    said = dict(facts)
    name = _name(said, rng)
    words = frozenset(split_words(name)) if spelled else frozenset()
    described = _described(name, said, rng)
    style = said.get("style")
    if style is None:
        text = _pick(LONG if long else SHORT, rng).format(described)
    else:
        template = _pick(LONG_OF_MANNER if long else SHORT_OF_MANNER, rng)
        text = template.format(described, style=_pick(STYLES[style], rng))
    return Caption(text, facts, words)


def _name(said: dict[str, str], rng: np.random.Generator) -> str:
    """The object's name or a known synonym; things with marks have names of their own."""
    name = said["object"]
    things = "colour" in said or "mark" in said or name not in KNOWN
    known = KNOWN_NOUNS[name] if things else KNOWN[name]
    return name if not known or rng.random() < NAME_SHARE else _pick(known, rng)


def _described(name: str, said: dict[str, str], rng: np.random.Generator) -> str:
    """The name with all else that is said of the object."""
    colour, mark = said.get("colour", ""), said.get("mark", "")
    if colour and rng.random() > NAME_SHARE:
        colour = KNOWN_SHADES[colour]
    if mark == "plain":
        plain = rng.random() < 0.7
        name = f"plain {colour} {name}" if plain else f"{colour} {name} without a pattern"
    elif mark:
        having, being = (f.format(said.get("mark_colour", "")) for f in KNOWN_MARKS[mark])
        forms = [f"{colour} {name} with {having}", f"{being} {colour} {name}"]
        name = _pick([forms[0], *forms], rng)
    elif colour:
        name = f"{colour} {name}"
    return " ".join(name.split())


def all_texts() -> Iterator[str]:
    """What captions are made of, and so every word that the vocabulary needs."""
    for templates in (SHORT, SHORT_OF_MANNER, LONG, LONG_OF_MANNER):
        yield from (template.format("", style="") for template in templates)
    for words in STYLES.values():
        yield from words
    for name, known in (*KNOWN.items(), *KNOWN_NOUNS.items()):
        yield from (name, *known)
    for colour, shade in KNOWN_SHADES.items():
        yield from (colour, shade)
    for forms in KNOWN_MARKS.values():
        yield from (form.format("") for form in forms)
    yield "plain without a pattern"


def _pick(options: list[str], rng: np.random.Generator) -> str:
    return options[rng.integers(len(options))]


if __name__ == "__main__":
    VOCABULARY_FILE.write_text(json.dumps(build_vocabulary(all_texts()), indent=0) + "\n")
