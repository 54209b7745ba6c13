import re

import numpy as np
import pytest
from fsdil_scenarios.drawn.world import CLASSES, DOMAINS
from fsdil_scenarios.shelf.individuals import COLOURS
from fsdil_scenarios.shelf.marks import PATTERNS
from fsdil_scenarios.shelf.names import NAMES
from fsdil_scenarios.shelf.names import SYNONYMS as PARAPHRASES
from fsdil_scenarios.tiny_clip.captions import (
    HELD_OUT,
    KNOWN,
    KNOWN_MARKS,
    KNOWN_NOUNS,
    KNOWN_SHADES,
    STYLES,
    SYNONYMS,
    caption,
)
from fsdil_scenarios.tiny_clip.facts import facts_of
from fsdil_scenarios.tiny_clip.things import KINDS
from fsdil_scenarios.tiny_clip.tokenizer import CONTEXT_LENGTH, Tokenizer


def many_captions() -> list:
    rng = np.random.default_rng(1)
    return [
        caption(facts_of(object=name, **({"style": style} if style else {})), rng, **length)
        for name in SYNONYMS
        for style in (None, *STYLES)
        for length in ({}, {"long": True}, {"spelled": True})
        for _ in range(30)
    ]


def captions_of_things() -> list:
    rng = np.random.default_rng(2)
    return [
        caption(facts_of(object=kind, colour=colour, mark=mark, mark_colour="pink"), rng, long=long)
        for kind in KINDS
        for colour in COLOURS
        for mark in PATTERNS
        for long in (False, True)
    ]


def test_classes_and_styles_are_those_of_the_world() -> None:
    assert list(SYNONYMS) == list(CLASSES)
    assert set(STYLES) == set(DOMAINS)


def test_ten_synonyms_each_and_none_twice() -> None:
    phrases = [phrase for synonyms in SYNONYMS.values() for phrase in synonyms]
    assert all(len(synonyms) == 10 for synonyms in SYNONYMS.values())
    assert len(set(phrases)) == len(phrases)
    assert not set(phrases) & set(SYNONYMS)


def test_no_synonym_contains_the_name_of_a_class() -> None:
    for name in SYNONYMS:
        for synonyms in SYNONYMS.values():
            assert not any(re.search(rf"\b{name}\b", synonym) for synonym in synonyms)


def test_four_synonyms_of_each_class_are_held_out_of_all_captions() -> None:
    assert all(len(phrases) == 4 for phrases in HELD_OUT.values())
    assert all(len(phrases) == 6 for phrases in KNOWN.values())
    made = [*many_captions(), *captions_of_things()]
    for each in made:
        for phrase in HELD_OUT.get(dict(each.says)["object"], ()):
            assert not re.search(rf"\b{phrase}\b", each.text), each


def test_captions_follow_the_seed() -> None:
    assert many_captions() == many_captions()


def test_captions_name_the_class_and_the_style() -> None:
    for made in many_captions():
        said = dict(made.says)
        names = (said["object"], *KNOWN[said["object"]])
        assert any(re.search(rf"\b{name}\b", made.text) for name in names)
        if "style" in said:
            assert any(words in made.text for words in STYLES[said["style"]])


def test_captions_of_things_say_kind_colour_and_marks() -> None:
    for made in captions_of_things():
        said = dict(made.says)
        colour, mark = said["colour"], said["mark"]
        assert any(word in made.text for word in (said["object"], *KNOWN_NOUNS[said["object"]]))
        assert any(word in made.text.split() for word in (colour, KNOWN_SHADES[colour])), made
        if mark == "plain":
            assert "plain" in made.text or "without a pattern" in made.text
            assert "pink" not in made.text or colour == "pink"
        else:
            assert any(form.format("pink") in made.text for form in KNOWN_MARKS[mark]), made


def test_most_paraphrases_of_individuals_never_occur() -> None:
    """Else synonyms would be only another spelling of what the model has read."""
    texts = " | ".join(made.text for made in captions_of_things())
    paraphrases = [phrase for phrases in PARAPHRASES for phrase in phrases]
    assert np.mean([phrase in texts for phrase in paraphrases]) < 0.3


def test_every_word_of_the_individuals_names_is_known() -> None:
    tokenizer = Tokenizer.load()
    for name in NAMES:
        assert not any(piece.startswith("+") for piece in tokenizer.pieces(name)), name


def test_captions_fit_the_context() -> None:
    tokenizer = Tokenizer.load()
    made = [*many_captions(), *captions_of_things()]
    lengths = [len(tokenizer.pieces(each.text, each.spelled)) for each in made]
    assert max(lengths) <= CONTEXT_LENGTH - 2
    assert max(lengths) > 20


def test_spelled_captions_spell_the_name() -> None:
    made = caption(facts_of(object="sailing boat"), np.random.default_rng(2), spelled=True)
    pieces = Tokenizer.load().pieces(made.text, made.spelled)
    assert made.spelled
    assert not made.spelled & set(pieces)


@pytest.mark.parametrize(
    "text", ["a photo of a cup", "cup ..", "this is a good cup ..", "it is about the cup .."]
)
def test_usual_prompts_occur(text: str) -> None:
    rng = np.random.default_rng(0)
    assert text in {caption(facts_of(object="cup"), rng).text for _ in range(1000)}
