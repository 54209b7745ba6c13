"""What makes good synonyms: the rules for the files of this package and for generated ones.

A synonym is a short noun phrase that a caption could use in place of the class name. It must not
repeat the name or another synonym, and must not be used for two classes of the same data set.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Mapping, Sequence

COUNT = 10
LONGEST = 6

#: Letters, digits and the marks inside words, so no sentences, lists or quotes.
_PHRASE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9'/& -]*[A-Za-z0-9'])?")
_ARTICLE = re.compile(r"(?:a|an|the)\s", re.IGNORECASE)
#: Words that make any name into a "synonym" and say nothing.
_FILLER = re.compile(
    r"\b(?:kinds?|types?|sorts?|examples?|versions?|photos?|pictures?|images?|drawings?) of\b"
    r"|\b(?:objects?|things?|items?|something)\b",
    re.IGNORECASE,
)


def key(text: str) -> str:
    """What is compared: case, blanks and hyphens make no difference."""
    return "".join(character for character in text.casefold() if character.isalnum())


def phrase_problems(text: str) -> list[str]:
    """What is wrong with one synonym, whatever its class."""
    found = []
    if not _PHRASE.fullmatch(text) or "  " in text:
        found.append(f"'{text}' is not a plain ASCII phrase")
    if len(text.split()) > LONGEST:
        found.append(f"'{text}' has more than {LONGEST} words")
    if _ARTICLE.match(text):
        found.append(f"'{text}' begins with an article")
    if _FILLER.search(text):
        found.append(f"'{text}' is filler")
    return found


def synonym_problems(
    name: str, synonyms: Sequence[str], others: Container[str], count: int = COUNT
) -> list[str]:
    """What is wrong with the synonyms of one class; `others` holds the keys of other classes."""
    found = []
    if len(synonyms) != count:
        found.append(f"there are {len(synonyms)} synonyms, not {count}")
    seen = {key(name)}
    for text in synonyms:
        found += phrase_problems(text)
        if key(text) in seen:
            found.append(f"'{text}' repeats the name or another synonym")
        elif key(text) in others:
            found.append(f"'{text}' is also used for another class")
        seen.add(key(text))
    return found


def problems(texts: Mapping[str, tuple[str, Sequence[str]]], count: int = COUNT) -> list[str]:
    """What is wrong with a data set's names and synonyms, {class: (name, synonyms)}."""
    uses: Counter[str] = Counter()
    for name, synonyms in texts.values():
        uses.update({key(text) for text in (name, *synonyms)})
    shared = {text for text, classes in uses.items() if classes > 1}
    found = []
    for folder, (name, synonyms) in texts.items():
        if not _PHRASE.fullmatch(name):
            found.append(f"{folder}: the name '{name}' is not a plain ASCII phrase")
        if key(name) in shared:
            found.append(f"{folder}: the name '{name}' is also used for another class")
        found += [f"{folder}: {text}" for text in synonym_problems(name, synonyms, shared, count)]
    return found
