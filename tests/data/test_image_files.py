from __future__ import annotations

import os
import shutil
import warnings

import numpy as np
import pytest
from PIL import Image

from fsdil_bench import (
    DataError,
    file_samples,
    image_names,
    is_image_name,
    missing_files,
    read_image,
    starts_like_an_image,
)
from fsdil_bench.data import image_files


@pytest.fixture
def folder(tmp_path):
    for name in ("b.png", "a.JPG", "c.webp"):
        path = tmp_path / "dogs" / name
        path.parent.mkdir(exist_ok=True)
        Image.new("RGB", (4, 3), (9, 0, 0)).save(path, "PNG")
    for name in ("notes.txt", ".hidden.png"):
        (tmp_path / "dogs" / name).write_text("no image")
    return tmp_path


def test_image_names_are_sorted_and_leave_out_the_rest(folder):
    assert image_names(folder / "dogs") == ["a.JPG", "b.png", "c.webp"]
    assert image_names(folder / "cats") == []
    assert image_names(folder / "dogs" / "b.png") == []


@pytest.mark.parametrize(("name", "counts"), [("x.jpeg", True), (".x.png", False), ("png", False)])
def test_is_image_name(name, counts):
    assert is_image_name(name) is counts


@pytest.fixture
def settled(folder):
    """The tree, not touched for a while."""
    os.utime(folder / "dogs", ns=(10**18, 10**18))
    return folder


def test_complete_folders_are_listed_once(settled, monkeypatch):
    listed = []
    plain = image_files._names
    monkeypatch.setattr(image_files, "_names", lambda f: listed.append(f) or plain(f))
    paths = ["dogs/a.JPG", "dogs/b.png"]
    assert missing_files(settled, paths) == missing_files(settled, paths) == []
    assert len(listed) == 1
    assert missing_files(settled, [*paths, "dogs/x.png"]) == ["dogs/x.png"]  # another question
    assert len(listed) == 2
    (settled / "dogs" / "b.png").unlink()  # which changes the folder's time
    assert missing_files(settled, paths) == ["dogs/b.png"]


def test_what_changed_a_moment_ago_is_not_remembered(folder):
    paths = ["dogs/a.JPG"]
    assert missing_files(folder, paths) == []
    times = (folder / "dogs").stat().st_mtime_ns
    (folder / "dogs" / "a.JPG").unlink()
    os.utime(folder / "dogs", ns=(times, times))  # as a coarse clock would show it
    assert missing_files(folder, paths) == paths


def test_missing_files_come_in_the_order_asked_for(folder):
    paths = ["dogs/z.png", "dogs/b.png", "cats/a.png", "dogs/a.JPG", "dogs/d.png"]
    assert missing_files(folder, paths) == ["dogs/z.png", "cats/a.png", "dogs/d.png"]


def test_images_are_rgb_and_transparency_is_white(tmp_path):
    Image.new("RGBA", (2, 2), (0, 0, 0, 0)).save(tmp_path / "a.png")
    Image.new("L", (2, 2), 7).save(tmp_path / "b.png")
    assert (read_image(tmp_path, "a.png") == 255).all()
    assert (read_image(tmp_path, "b.png") == 7).all()
    assert read_image(tmp_path, "b.png").shape == (2, 2, 3)


@pytest.mark.parametrize("mode", ["RGBA", "LA"])
def test_black_on_transparent_stays_a_picture(tmp_path, mode):
    """What is drawn is dark, what is not is white, and a soft edge is grey."""
    alpha = Image.fromarray(np.array([[0, 64, 128, 255]], np.uint8))
    black = Image.new("RGBA", (4, 1))
    black.putalpha(alpha)
    black.convert(mode).save(tmp_path / "a.png")
    assert read_image(tmp_path, "a.png").tolist() == [[[g] * 3 for g in (255, 191, 127, 0)]]


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "BMP", "GIF", "TIFF", "PPM", "WEBP"])
def test_first_bytes_tell_an_image(tmp_path, kind):
    Image.new("RGB", (4, 4)).save(tmp_path / "image", kind)
    assert starts_like_an_image(tmp_path / "image")


@pytest.mark.parametrize("content", [b"", b"<html>404 not found</html>", b"\0" * 20])
def test_first_bytes_tell_what_is_no_image(tmp_path, content):
    (tmp_path / "file.png").write_bytes(content)
    assert not starts_like_an_image(tmp_path / "file.png")


def test_samples_of_files(folder):
    samples = file_samples(folder / "dogs", ["b.png", "a.JPG"], [1, 0], prefix="pets/")
    assert samples.ids == ("pets/b.png", "pets/a.JPG")
    assert samples.labels.tolist() == [1, 0]
    assert np.array_equal(samples.load("pets/a.JPG"), read_image(folder, "dogs/a.JPG"))


PATHS = ["dogs/a.JPG", "dogs/b.png", "dogs/c.webp"]


def test_keys_follow_the_content(folder):
    before = tuple(file_samples(folder, PATHS, [0, 0, 0]).keys)
    Image.new("RGB", (40, 30), (9, 0, 0)).save(folder / "dogs" / "b.png")
    after = file_samples(folder, PATHS, [0, 0, 0])
    assert [a == b for a, b in zip(before, after.keys, strict=True)] == [True, False, True]
    assert tuple(after.subset([2, 1]).keys) == (after.keys[2], after.keys[1])
    assert tuple(after.keys[1:]) == tuple(after.keys)[1:]


def test_keys_are_the_same_in_a_copy_of_the_tree(folder, tmp_path_factory):
    copy = tmp_path_factory.mktemp("copy") / "elsewhere"
    shutil.copytree(folder, copy)
    os.utime(copy / "dogs" / "b.png", ns=(0, 12345))
    one, other = (file_samples(root, PATHS, [0, 0, 1]) for root in (folder, copy))
    assert list(one.keys) == list(other.keys)
    assert one.digest() == other.digest()


def test_nothing_is_read_before_a_key_is_asked_for(folder, monkeypatch):
    asked = []
    plain = image_files.content_hashes
    monkeypatch.setattr(
        image_files, "content_hashes", lambda r, paths: asked.append(list(paths)) or plain(r, paths)
    )
    samples = file_samples(folder, [*PATHS, "dogs/gone.png"], [0, 0, 1, 1])
    part = samples.subset([2, 0, 1])
    smaller = part.subset([0, 1])
    assert asked == []
    assert part.keys[1] == part.keys[2]
    assert asked == [["dogs/c.webp", "dogs/a.JPG", "dogs/b.png"]]  # all of them at once
    assert list(part.subset([1]).keys) == [part.keys[1]]
    assert len(asked) == 1  # known from the larger set
    assert list(smaller.keys) == list(part.keys)[:2]
    with pytest.raises(DataError, match=r"gone\.png' is gone"):
        samples.digest()


def test_an_empty_file_is_an_error(folder):
    (folder / "dogs" / "b.png").write_bytes(b"")
    with pytest.raises(DataError, match=r"b\.png' is empty"):
        file_samples(folder, PATHS, [0, 0, 0]).digest()


@pytest.mark.parametrize(
    ("least", "shape"), [(100, (100, 150, 3)), (101, (200, 300, 3)), (201, (400, 600, 3))]
)
def test_a_reduced_version_is_never_smaller_than_asked_for(tmp_path, least, shape):
    Image.new("RGB", (600, 400), (200, 100, 50)).save(tmp_path / "a.jpg")
    Image.new("RGB", (600, 400), (200, 100, 50)).save(tmp_path / "a.png")
    assert read_image(tmp_path, "a.jpg", least).shape == shape
    assert read_image(tmp_path, "a.png", least).shape == (400, 600, 3)
    assert file_samples(tmp_path, ["a.jpg"], [0]).load.reduced("a.jpg", least).shape == shape
    assert file_samples(tmp_path, ["a.jpg"], [0]).load("a.jpg").shape == (400, 600, 3)


def test_huge_pictures_are_read_without_a_word_or_refused_with_advice(tmp_path, monkeypatch):
    Image.new("RGB", (15, 10), (9, 9, 9)).save(tmp_path / "large.png")
    Image.new("RGB", (30, 20)).save(tmp_path / "huge.png")
    monkeypatch.setattr("PIL.Image.MAX_IMAGE_PIXELS", 100)  # twice that is refused
    image_files._accept_large_images.cache_clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (read_image(tmp_path, "large.png") == 9).all()
        with pytest.raises(DataError, match=r"huge\.png' has more than 200 pixels") as refused:
            read_image(tmp_path, "huge.png")
    image_files._accept_large_images.cache_clear()
    assert "smaller" in refused.value.remedy


@pytest.mark.parametrize("kind", ["jpg", "png"])
@pytest.mark.parametrize("part", [0.7, 0.02])
def test_a_file_that_was_cut_short_is_named_with_a_remedy(tmp_path, kind, part):
    noise = np.random.default_rng(0).integers(0, 256, (50, 60, 3), dtype=np.uint8)
    path = tmp_path / f"cut.{kind}"
    Image.fromarray(noise).save(path)
    content = path.read_bytes()
    path.write_bytes(content[: int(part * len(content))])
    with pytest.raises(DataError, match=rf"cannot be read: '{path}'") as refused:
        read_image(tmp_path, path.name)
    assert "download or unpack it again" in refused.value.remedy
