import re

import numpy as np
import pytest
from fsdil_scenarios.drawn.world import CLASSES, DOMAINS
from fsdil_scenarios.tiny_clip.captions import HELD_OUT, KNOWN, STYLES, SYNONYMS, caption
from fsdil_scenarios.tiny_clip.tokenizer import CONTEXT_LENGTH, Tokenizer


def many_captions() -> list:
    rng = np.random.default_rng(1)
    return [
        caption(name, rng, style=style, **length)
        for name in SYNONYMS
        for style in (None, *STYLES)
        for length in ({}, {"long": True}, {"spelled": True})
        for _ in range(30)
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
    for made in many_captions():
        for phrase in HELD_OUT[made.class_name]:
            assert not re.search(rf"\b{phrase}\b", made.text), made


def test_captions_follow_the_seed() -> None:
    assert many_captions() == many_captions()


def test_captions_name_the_class_and_the_style() -> None:
    for made in many_captions():
        names = (made.class_name, *KNOWN[made.class_name])
        assert any(re.search(rf"\b{name}\b", made.text) for name in names)
        if made.style is not None:
            assert any(words in made.text for words in STYLES[made.style])


def test_captions_fit_the_context() -> None:
    tokenizer = Tokenizer.load()
    lengths = [len(tokenizer.pieces(made.text, made.spelled)) for made in many_captions()]
    assert max(lengths) <= CONTEXT_LENGTH - 2
    assert max(lengths) > 20


def test_spelled_captions_spell_the_name() -> None:
    made = caption("sailing boat", np.random.default_rng(2), spelled=True)
    pieces = Tokenizer.load().pieces(made.text, made.spelled)
    assert made.spelled
    assert not made.spelled & set(pieces)


@pytest.mark.parametrize(
    "text", ["a photo of a cup", "cup ..", "this is a good cup ..", "it is about the cup .."]
)
def test_usual_prompts_occur(text: str) -> None:
    rng = np.random.default_rng(0)
    assert text in {caption("cup", rng).text for _ in range(1000)}
