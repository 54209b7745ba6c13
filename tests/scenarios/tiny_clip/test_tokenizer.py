import json
from pathlib import Path

import fsdil_scenarios.tiny_clip
import pytest
import torch
from fsdil_scenarios.tiny_clip.captions import HELD_OUT, all_texts
from fsdil_scenarios.tiny_clip.tokenizer import (
    CONTEXT_LENGTH,
    VOCABULARY_FILE,
    Tokenizer,
    build_vocabulary,
)

TOKENIZER = Tokenizer.load()
END = len(TOKENIZER.vocabulary) - 1


def test_stored_vocabulary_is_that_of_the_captions() -> None:
    stored = json.loads(VOCABULARY_FILE.read_text())
    assert stored == build_vocabulary(all_texts()), "run fsdil_scenarios.tiny_clip.captions"
    assert len(set(stored)) == len(stored)


def test_vocabulary_fits_the_model() -> None:
    folder = Path(next(iter(fsdil_scenarios.tiny_clip.__path__)))
    text = json.loads((folder / "model.json").read_text())["model_cfg"]["text_cfg"]
    assert text["vocab_size"] == len(TOKENIZER.vocabulary)
    assert text["context_length"] == CONTEXT_LENGTH


def test_shape_padding_start_and_end() -> None:
    tokens = TOKENIZER(["a photo of a cup", ""])
    assert tokens.shape == (2, 32)
    assert tokens.dtype == torch.long
    assert tokens[:, 0].tolist() == [1, 1]
    assert tokens.argmax(1).tolist() == [6, 1]
    assert tokens.max(1).values.tolist() == [END, END]
    assert tokens[0, 7:].tolist() == [0] * 25


def test_one_text_is_a_batch_of_one() -> None:
    assert torch.equal(TOKENIZER("a cup"), TOKENIZER(["a cup"]))


def test_long_texts_are_cut_but_keep_the_end() -> None:
    tokens = TOKENIZER("cup " * 100, context_length=10)
    assert tokens.shape == (1, 10)
    assert tokens[0, -1] == END
    assert (tokens == END).sum() == 1


def test_case_accents_and_underscores_do_not_matter() -> None:
    assert torch.equal(TOKENIZER("Sailing_BOAT"), TOKENIZER("sailing boat"))
    assert torch.equal(TOKENIZER("café"), TOKENIZER("cafe"))


def test_unknown_words_are_spelled() -> None:
    assert TOKENIZER.pieces("yurt") == ["y", "+u", "+r", "+t"]
    assert TOKENIZER.pieces("cup") == ["cup"]
    assert TOKENIZER.pieces("a cup", spelled={"cup"}) == ["a", "c", "+u", "+p"]


@pytest.mark.parametrize("text", ["茶碗", "ключ", "naïve €5 😀", "a\tb\n", "²½", "__", "x²y"])
def test_any_text_tokenises(text: str) -> None:
    tokens = TOKENIZER(text)
    assert (tokens[0] == END).sum() == 1


def test_texts_of_other_scripts_stay_different() -> None:
    assert not torch.equal(TOKENIZER("茶碗"), TOKENIZER("家"))


def test_decode_reads_back() -> None:
    assert TOKENIZER.decode(TOKENIZER("A photo of a yurt")[0]) == "a photo of a yurt"


def test_words_of_held_out_synonyms_only_are_not_in_the_vocabulary() -> None:
    words = {word for text in all_texts() for word in text.split()}
    held_out = {word for phrases in HELD_OUT.values() for word in " ".join(phrases).split()}
    assert not (held_out - words) & set(TOKENIZER.vocabulary)
