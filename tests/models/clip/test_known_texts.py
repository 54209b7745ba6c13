"""Texts embedded elsewhere: what is looked up, what is answered by a name, what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
from safetensors.numpy import save_file

from fsdil_bench.errors import DataError, RequestError
from fsdil_bench.models.clip.known_texts import KnownTexts, holds_known_texts, read_known_texts

NAMES = ["dog", "hot dog", "bear", "Traffic  Light", "a drawing of a dog"]


@pytest.fixture
def known():
    return KnownTexts(NAMES, 3 * np.eye(5, 8), source="names.npz")


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ("dog", 0),
        ("a photo of a dog.", 0),
        ("A photo of a DOG.", 0),
        ("a dog, a brown dog", 0),
        ("a photo of a hot dog.", 1),
        ("a traffic light at night", 3),
        ("a drawing of a dog", 4),
        ("it is a drawing of a dog.", 4),
    ],
)
def test_what_a_text_is_answered_with(known, text, row):
    np.testing.assert_allclose(known.embed([text]), np.eye(5, 8)[[row]])


@pytest.mark.parametrize(
    "text", ["a photo of a cat.", "a bear and a dog", "dogs", "a bulldog", "a bear-cat", ""]
)
def test_an_unknown_text_shows_known_ones(known, text):
    with pytest.raises(RequestError, match=r"names\.npz") as caught:
        known.embed(["dog", text])
    assert "'hot dog'" in caught.value.remedy
    assert "--names" in caught.value.remedy


def test_a_class_is_not_answered_with_a_part_of_its_name(known):
    sentence = "a photo of a polar bear."
    np.testing.assert_allclose(known.embed([sentence]), np.eye(5, 8)[[2]])
    with pytest.raises(RequestError, match="polar bear"):
        known.embed([sentence], ["dog", "Polar Bear"])


def test_the_record_tells_which_texts_were_answered_by_a_name(known):
    known.embed(["dog", "a photo of a dog."])
    assert known.notes() == {"known": 5, "by_name": 1, "examples": {"a photo of a dog.": "dog"}}
    known.embed([f"dog {i}" for i in range(9)])
    assert known.notes()["by_name"] == 10
    assert len(known.notes()["examples"]) == 3


def test_both_files_hold_the_same(tmp_path):
    vectors = np.random.default_rng(0).normal(size=(2, 4)).astype(np.float16)
    names = ["dog", "straße"]
    np.savez(tmp_path / "t.npz", embeddings=vectors, texts=names, logit_scale=2.5)
    save_file(
        {"embeddings": vectors, "logit_scale": np.float32([2.5])},
        tmp_path / "t.safetensors",
        {"texts": json.dumps(names)},
    )
    expected = vectors.astype(np.float32)
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    for file in ("t.npz", "t.safetensors"):
        assert holds_known_texts(tmp_path / file)
        read = read_known_texts(tmp_path / file)
        np.testing.assert_allclose(read.embed(names), expected, rtol=1e-6)
        assert read.logit_scale == 2.5


def test_weights_are_not_taken_for_texts(tmp_path):
    save_file({"visual.proj": np.zeros((2, 2))}, tmp_path / "w.safetensors")
    (tmp_path / "odd.safetensors").write_bytes(b"odd")
    for file in ("w.safetensors", "odd.safetensors", "w.pt"):
        assert not holds_known_texts(tmp_path / file)


@pytest.mark.parametrize(
    "content",
    [
        {"embeddings": np.eye(2)},
        {"texts": ["a", "b"]},
        {"embeddings": np.eye(3), "texts": ["a", "b"]},
        {"embeddings": np.ones(2), "texts": ["a", "b"]},
        {"embeddings": np.zeros((2, 2)), "texts": ["a", "b"]},
        {"embeddings": np.full((2, 2), np.nan), "texts": ["a", "b"]},
        {"embeddings": np.eye(2), "texts": ["a", "A "]},
        {"embeddings": np.zeros((0, 2)), "texts": np.array([], str)},
        {"embeddings": np.eye(2), "texts": np.array(["a", "b"], object)},
    ],
)
def test_a_file_that_is_not_one_is_named(content, tmp_path):
    np.savez(tmp_path / "t.npz", **content)
    with pytest.raises(DataError, match=r"t\.npz"):
        read_known_texts(tmp_path / "t.npz")


def test_a_truncated_file_is_named(tmp_path):
    path = tmp_path / "t.npz"
    np.savez(path, embeddings=np.eye(2), texts=["a", "b"])
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(DataError, match=r"t\.npz"):
        read_known_texts(path)
