"""What a person would call each individual: a name and ten other descriptions, made by rules.

A description is put together from a word for the kind, a word for the colour and words for the
marks. Which words meet in which sentence differs from one individual to the next.
"""

from __future__ import annotations

from .individuals import INDIVIDUALS, Individual

#: The usual word for a kind, then three others.
NOUNS: dict[str, tuple[str, str, str, str]] = {
    "cup": ("cup", "mug", "coffee mug", "beaker"),
    "bottle": ("bottle", "flask", "drinking bottle", "flagon"),
    "can": ("can", "tin", "drink can", "soda tin"),
    "ball": ("ball", "toy ball", "play ball", "rubber ball"),
    "teapot": ("teapot", "tea kettle", "pot for tea", "tea jug"),
    "lamp": ("lamp", "table light", "desk light", "bedside light"),
    "hat": ("hat", "headwear", "head covering", "headgear"),
    "car": ("car", "toy car", "automobile", "motorcar"),
    "book": ("book", "volume", "hardback", "bound book"),
    "umbrella": ("umbrella", "brolly", "parasol", "rain shield"),
}

#: Two other words for a colour.
SHADES: dict[str, tuple[str, str]] = {
    "red": ("scarlet", "crimson"),
    "orange": ("tangerine", "bright orange"),
    "yellow": ("lemon yellow", "golden"),
    "green": ("emerald", "leaf green"),
    "turquoise": ("teal", "aqua"),
    "blue": ("cobalt", "royal blue"),
    "purple": ("violet", "plum"),
    "pink": ("rose", "rosy"),
    "brown": ("chestnut", "chocolate"),
    "white": ("ivory", "snow white"),
    "grey": ("silver", "ash grey"),
    "black": ("ebony", "jet black"),
}

#: For a mark of colour `{}`: what a thing is with, in two ways, and what it is, in two ways.
MARKS: dict[str, tuple[str, str, str, str]] = {
    "dots": ("{} dots", "{} polka dots", "{} dotted", "{} spotted"),
    "stripes": ("{} stripes", "upright {} stripes", "{} striped", "{} lined"),
    "rings": ("{} rings", "level {} stripes", "{} ringed", "{} hooped"),
    "band": ("a {} band", "a broad {} belt", "{} banded", "{} belted"),
    "check": ("{} checks", "{} squares", "{} checked", "{} chequered"),
    "zigzag": ("a {} zigzag", "a jagged {} line", "{} zigzagged", "{} zigzag"),
    "star": ("a {} star", "a big {} star", "{} starred", "{} star"),
    "heart": ("a {} heart", "a big {} heart", "{} heart patterned", "{} heart"),
    "sticker": ("a {} sticker", "a square {} label", "{} labelled", "{} tagged"),
}

MARKED = (
    "{colour} {noun} with {other_mark}",
    "{marked} {colour} {noun}",
    "{shade} {noun} with {mark}",
    "{noun} in {colour} with {mark}",
    "{otherwise_marked} {shade} {noun}",
    "{colour} {noun} that has {mark}",
    "{noun} in {shade} with {other_mark}",
    "{bare_mark} on a {colour} {noun}",
    "{colour} and {mark_colour} {noun}",
    "{noun} with {mark} on {colour}",
)
UNMARKED = (
    "{colour} {noun} without a pattern",
    "unmarked {shade} {noun}",
    "{noun} all in {colour}",
    "simple {colour} {noun}",
    "{noun} in plain {shade}",
    "{colour} {noun} with nothing on it",
    "solid {shade} {noun}",
    "undecorated {colour} {noun}",
    "{shade} {noun} without marks",
    "{noun} in a single {colour} tone",
)


def name(who: Individual) -> str:
    """The description that comes to mind first: "green cup with white dots"."""
    if who.mark == "plain":
        return f"plain {who.colour} {who.kind}"
    return f"{who.colour} {who.kind} with {MARKS[who.mark][0].format(who.mark_colour)}"


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
        sentence.format(
            noun=nouns[(number + place) % len(nouns)],
            shade=shades[(number + place // 2) % len(shades)],
            **words,
        )
        for place, sentence in enumerate(sentences)
    )


NAMES: tuple[str, ...] = tuple(name(who) for who in INDIVIDUALS)
SYNONYMS: tuple[tuple[str, ...], ...] = tuple(
    paraphrases(who, number) for number, who in enumerate(INDIVIDUALS)
)
