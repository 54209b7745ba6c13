"""What a person would call each individual: a name and ten other descriptions, made by rules.

A description is put together from a word for the kind, a word for the colour and words for the
marks. Which words meet in which sentence differs from one individual to the next.
"""

from __future__ import annotations

import re

from .individuals import INDIVIDUALS, Individual

#: Three words for a kind, the usual one first, and two longer expressions.
NOUNS: dict[str, tuple[str, str, str, str, str]] = {
    "cup": ("cup", "mug", "beaker", "coffee mug", "tea mug"),
    "bottle": ("bottle", "flask", "flagon", "drinking bottle", "drink container"),
    "can": ("can", "tin", "canister", "drink can", "soda tin"),
    "ball": ("ball", "sphere", "orb", "toy ball", "rubber ball"),
    "teapot": ("teapot", "teakettle", "kettle", "tea jug", "tea maker"),
    "lamp": ("lamp", "light", "luminaire", "table light", "bedside light"),
    "hat": ("hat", "headwear", "headgear", "head covering", "brimmed headwear"),
    "car": ("car", "automobile", "motorcar", "toy car", "model car"),
    "book": ("book", "volume", "hardback", "bound book", "bound volume"),
    "umbrella": ("umbrella", "brolly", "parasol", "rain shield", "open umbrella"),
}

#: Two other words for a colour.
SHADES: dict[str, tuple[str, str]] = {
    "red": ("scarlet", "crimson"),
    "orange": ("tangerine", "amber"),
    "yellow": ("lemon", "gold"),
    "green": ("emerald", "jade"),
    "turquoise": ("teal", "aqua"),
    "blue": ("cobalt", "sapphire"),
    "purple": ("violet", "plum"),
    "pink": ("rose", "blush"),
    "brown": ("chestnut", "chocolate"),
    "white": ("ivory", "cream"),
    "grey": ("silver", "ash"),
    "black": ("ebony", "coal"),
}

#: For a mark of colour `{}`: what a thing is with, in two ways, and what it is, in two ways.
MARKS: dict[str, tuple[str, str, str, str]] = {
    "dots": ("{} dots", "{} polka dots", "{} dotted", "{} spotted"),
    "stripes": ("{} stripes", "upright {} stripes", "{} striped", "{} lined"),
    "rings": ("{} rings", "level {} stripes", "{} ringed", "{} hooped"),
    "band": ("a {} band", "a {} belt", "{} banded", "{} belted"),
    "check": ("{} checks", "{} squares", "{} checked", "{} chequered"),
    "zigzag": ("a {} zigzag", "jagged {} lines", "{} zigzagged", "{} zigzag"),
    "star": ("a {} star", "one {} star", "{} starred", "{} star-marked"),
    "heart": ("a {} heart", "one {} heart", "{} heart", "{} heart-marked"),
    "sticker": ("a {} sticker", "a {} label", "{} labelled", "{} tagged"),
}

#: At most six words each, the rule for the synonyms of all scenarios.
MARKED = (
    "{colour} {noun} with {other_mark}",
    "{marked} {colour} {long_noun}",
    "{shade} {noun} with {mark}",
    "{marked} {long_noun} in {colour}",
    "{otherwise_marked} {shade} {long_noun}",
    "{colour} {noun} bearing {mark}",
    "{otherwise_marked} {noun} in {shade}",
    "{bare_mark} on a {colour} {noun}",
    "{colour} and {mark_colour} {long_noun}",
    "{shade} {noun} bearing {other_mark}",
)
UNMARKED = (
    "{colour} {noun} without a pattern",
    "unmarked {shade} {long_noun}",
    "{long_noun} all in {colour}",
    "simple {colour} {noun}",
    "{noun} in plain {shade}",
    "{colour} {noun} with no marks",
    "solid {shade} {long_noun}",
    "undecorated {colour} {noun}",
    "{shade} {noun} without decoration",
    "{noun} in one {colour} tone",
)


def name(who: Individual) -> str:
    """The description that comes to mind first: "green cup with white dots"."""
    if who.mark == "plain":
        return f"plain {who.colour} {who.kind}"
    return _spelt(f"{who.colour} {who.kind} with {MARKS[who.mark][0].format(who.mark_colour)}")


def paraphrases(who: Individual, number: int) -> tuple[str, ...]:
    """Ten other descriptions of the individual of that number."""
    nouns, shades = NOUNS[who.kind], SHADES[who.colour]
    words = {"colour": who.colour, "mark_colour": who.mark_colour}
    if who.mark != "plain":
        keys = ("mark", "other_mark", "marked", "otherwise_marked")
        forms = (form.format(who.mark_colour) for form in MARKS[who.mark])
        words |= dict(zip(keys, forms, strict=True))
        words["bare_mark"] = words["mark"].removeprefix("a ")
    sentences = UNMARKED if who.mark == "plain" else MARKED
    return tuple(
        _spelt(
            sentence.format(
                noun=nouns[(number + place) % 3],
                long_noun=nouns[3 + (number + place // 2) % 2],
                shade=shades[(number + place // 2) % len(shades)],
                **words,
            )
        )
        for place, sentence in enumerate(sentences)
    )


def _spelt(text: str) -> str:
    """The text with "an" where a vowel follows."""
    return re.sub(r"\ba (?=[aeiou])", "an ", text)


NAMES: tuple[str, ...] = tuple(name(who) for who in INDIVIDUALS)
SYNONYMS: tuple[tuple[str, ...], ...] = tuple(
    paraphrases(who, number) for number, who in enumerate(INDIVIDUALS)
)
