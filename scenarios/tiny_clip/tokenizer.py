"""Text to token ids for tiny-clip: whole words where they are known, letters where not.

`vocabulary.json` lists the tokens in the order of their ids: padding, start, the words of the
pre-training captions, single characters, the same characters with a continuation mark, and the
end token last, because open_clip reads a text's embedding where the token id is highest.
A word outside the vocabulary is spelled ("yurt" becomes `y +u +r +t`), accents are dropped, and
a character of another script is spelled as its code point, so that no text is ever refused.
"""

from __future__ import annotations

import json
import re
import string
import unicodedata
from collections.abc import Collection, Iterable
from pathlib import Path

import torch

PADDING, START, END = "<pad>", "<start>", "<end>"
CONTINUATION = "+"
CONTEXT_LENGTH = 32
VOCABULARY_FILE = Path(__file__).with_name("vocabulary.json")
_CHARACTERS = string.ascii_lowercase + string.digits
_PUNCTUATION = ".,;:!?'\"()-/&#"


def build_vocabulary(texts: Iterable[str]) -> list[str]:
    """Special tokens, every word of `texts`, and characters for spelling unknown words."""
    words = {word for text in texts for word in split_words(text)}
    characters = [*_CHARACTERS, *_PUNCTUATION]
    continuations = [CONTINUATION + character for character in _CHARACTERS]
    return [PADDING, START, *sorted(words - set(characters)), *characters, *continuations, END]


def split_words(text: str) -> list[str]:
    """Lower-case words and single punctuation marks, without accents and underscores."""
    decomposed = unicodedata.normalize("NFKD", text).lower()
    plain = "".join(c for c in decomposed if not unicodedata.combining(c))
    return re.findall(r"[^\W_]+|[^\w\s]", plain)


class Tokenizer:
    """Callable like open_clip's tokenizers: texts in, a (texts, context_length) tensor out."""

    def __init__(self, vocabulary: list[str]) -> None:
        self.vocabulary = vocabulary
        self._ids = {token: index for index, token in enumerate(vocabulary)}

    @classmethod
    def load(cls, path: Path = VOCABULARY_FILE) -> Tokenizer:
        """The tokenizer of a stored vocabulary."""
        return cls(json.loads(path.read_text(encoding="utf-8")))

    def __call__(
        self, texts: str | list[str], context_length: int = CONTEXT_LENGTH
    ) -> torch.LongTensor:
        """Ids between start and end token, padded with 0; what does not fit is cut off."""
        texts = [texts] if isinstance(texts, str) else texts
        return self.pack([self.pieces(text) for text in texts], context_length)

    def pack(
        self, pieces: list[list[str]], context_length: int = CONTEXT_LENGTH
    ) -> torch.LongTensor:
        """Ids of texts that are already split into tokens."""
        tokens = torch.zeros(len(pieces), context_length, dtype=torch.long)
        for row, text in zip(tokens, pieces, strict=True):
            kept = [START, *text[: context_length - 2], END]
            row[: len(kept)] = torch.tensor([self._ids[piece] for piece in kept])
        return tokens  # type: ignore[return-value]

    def pieces(self, text: str, spelled: Collection[str] = ()) -> list[str]:
        """The tokens of a text; words in `spelled` are spelled even if they are known."""
        pieces: list[str] = []
        for word in split_words(text):
            if word in self._ids and word not in spelled:
                pieces.append(word)
            else:
                pieces.extend(_spell(word))
        return pieces

    def decode(self, tokens: Iterable[int]) -> str:
        """The text that token ids stand for, without special tokens."""
        words = [self.vocabulary[int(token)] for token in tokens]
        words = [word for word in words if word not in (PADDING, START, END)]
        return " ".join(words).replace(" " + CONTINUATION, "")


def _spell(word: str) -> list[str]:
    known = "".join(c if c in _CHARACTERS else format(ord(c), "x") for c in word)
    return [known[0], *(CONTINUATION + character for character in known[1:])]
