"""Small trees in the layouts of the published data sets: real names and lists, tiny images."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import scipy.io
from PIL import Image

from fsdil_bench import Samples

CORE50_TRAIN = (1, 2, 4, 5, 6, 8, 9, 11)
CDDB_DOMAINS = ("gaugan", "biggan", "wild", "whichfaceisreal", "san")
DOMAINNET_DOMAINS = ("real", "painting", "clipart", "sketch", "quickdraw", "infograph")
DOMAINNET_CLASSES = ("aircraft_carrier", "cello", "cell_phone", "fan", "The_Mona_Lisa", "t-shirt")
PACS_DOMAINS = ("photo", "art_painting", "cartoon", "sketch")
PACS_CLASSES = ("dog", "elephant", "giraffe", "guitar", "horse", "house", "person")
VLCS_DOMAINS = ("VOC2007", "LabelMe", "SUN09", "Caltech101")
VLCS_CLASSES = ("bird", "car", "chair", "dog", "person")
OFFICE_HOME_DOMAINS = ("Real World", "Product", "Clipart", "Art")
_THINGS = """
Alarm_Clock Backpack Batteries Bed Bike Bottle Bucket Calculator Calendar Candles Chair Clipboards
Computer Couch Curtains Desk_Lamp Drill Eraser Exit_Sign Fan File_Cabinet Flipflops Flowers Folder
Fork Glasses Hammer Helmet Kettle Keyboard Knives Lamp_Shade Laptop Marker Monitor Mop Mouse Mug
Notebook Oven Pan Paper_Clip Pen Pencil Postit_Notes Printer Push_Pin Radio Refrigerator Ruler
Scissors Screwdriver Shelf Sink Sneakers Soda Speaker Spoon TV Table Telephone ToothBrush Toys
Trash_Can Webcam
"""
OFFICE_HOME_CLASSES = tuple(_THINGS.split())


def choice(samples: Samples) -> str:
    """A short hash of which images were chosen, in which order, as which class."""
    text = "\n".join(f"{i} {y}" for i, y in zip(samples.ids, samples.labels, strict=True))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@cache
def image(number: int, kind: str = "PNG") -> bytes:
    """A plain 16x16 image in one of a few colours, encoded once."""
    buffer = io.BytesIO()
    colour = (40 * number % 256, 90 * number % 256, 150 * number % 256)
    Image.new("RGB", (16, 16), colour).save(buffer, kind)
    return buffer.getvalue()


def write(path: Path, number: int) -> None:
    """An image file whose look depends on `number`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(image(number % 20, "JPEG" if path.suffix == ".jpg" else "PNG"))


def core50(root: Path, frames: int = 6, sessions: Iterable[int] = range(1, 12)) -> Path:
    """All 50 objects in the given sessions."""
    for s in sessions:
        for o in range(1, 51):
            folder = root / "core50_128x128" / f"s{s}" / f"o{o}"
            folder.mkdir(parents=True)
            for f in range(frames):
                (folder / f"C_{s:02}_{o:02}_{f:03}.png").write_bytes(image((o + f) % 20))
    return root


def cddb(
    root: Path,
    train: Mapping[str, tuple[int, int]],
    val: tuple[int, int] = (3, 2),
    categories: Mapping[str, Sequence[str]] | None = None,
) -> Path:
    """`train` is the number of real and fake images; some domains have folders of categories."""
    for domain in CDDB_DOMAINS:
        for part, counts in (("train", train[domain]), ("val", val)):
            for name, count in zip(("0_real", "1_fake"), counts, strict=True):
                inner = (categories or {}).get(domain, [""])
                for i in range(count):
                    path = root / domain / part / inner[i % len(inner)] / name / f"{i:05}.png"
                    write(path, i + len(name))
    return root


def domainnet(
    root: Path,
    classes: Sequence[str] = DOMAINNET_CLASSES,
    train: int = 8,
    test: int = 2,
    few: Mapping[tuple[str, str], tuple[int, int]] | None = None,
    lists: str = ".",
    label_of: Mapping[str, int] | None = None,
) -> Path:
    """`few` gives single classes of single domains other numbers of training and test images."""
    labels = label_of or {name: label for label, name in enumerate(classes)}
    (root / lists).mkdir(parents=True, exist_ok=True)
    for domain in DOMAINNET_DOMAINS:
        lines: dict[str, list[str]] = {"train": [], "test": []}
        for number, name in enumerate(classes, 1):
            counts = (few or {}).get((domain, name), (train, test))
            for i in range(sum(counts)):
                kind = "png" if domain == "quickdraw" else "jpg"
                path = f"{domain}/{name}/{domain}_{number:03}_{i:06}.{kind}"
                write(root / path, number + i)
                lines["train" if i < counts[0] else "test"].append(f"{path} {labels[name]}\n")
        for part in lines:
            (root / lists / f"{domain}_{part}.txt").write_text("".join(lines[part]))
    return root


def pacs(root: Path, per_class: int = 10, lists: str | None = None) -> Path:
    """With `lists`, the official lists lie in that folder: every fifth image is for testing."""
    for domain in PACS_DOMAINS:
        parts: dict[str, list[str]] = {"train": [], "crossval": [], "test": []}
        for label, name in enumerate(PACS_CLASSES, 1):
            for i in range(per_class):
                path = f"{domain}/{name}/pic_{i:03}.{'png' if domain == 'sketch' else 'jpg'}"
                write(root / path, label + i)
                line = f"{path} {label}\n"
                parts["test"].append(line)  # as published: all images, also those for training
                parts["crossval" if i % 5 == 4 else "train"].append(line)
        if lists is not None:
            (root / lists).mkdir(parents=True, exist_ok=True)
            for part, text in parts.items():
                (root / lists / f"{domain}_{part}_kfold.txt").write_text("".join(text))
    return root


def office_home(root: Path, per_class: int = 4, real_world: str = "Real World") -> Path:
    """All 65 classes in four domains."""
    for domain in (real_world, *OFFICE_HOME_DOMAINS[1:]):
        for number, name in enumerate(OFFICE_HOME_CLASSES):
            for i in range(per_class):
                write(root / domain / name / f"{i + 1:05}.jpg", number + i)
    return root


def vlcs(root: Path, per_class: int = 4) -> Path:
    """All five classes in four domains."""
    for domain in VLCS_DOMAINS:
        for number, name in enumerate(VLCS_CLASSES):
            for i in range(per_class):
                write(root / domain / name / f"{domain}_{i:05}.jpg", number + i)
    return root


def imagenet_r(root: Path, classes: Sequence[str], counts: Mapping[str, Sequence[int]]) -> Path:
    """`counts` gives the numbers of images of every class by rendition."""
    for rendition, numbers in counts.items():
        for place, (name, count) in enumerate(zip(classes, numbers, strict=True)):
            for i in range(count):
                write(root / "imagenet-r" / name / f"{rendition}_{i}.jpg", place + i)
    return root


def imagenet_c(root: Path, classes: Sequence[str], per_class: int = 4, clean: bool = True) -> Path:
    """All corruptions at severity 3, and the clean images."""
    from fsdil_scenarios.published.imagenet_c import CORRUPTIONS

    for folder in (*(["val"] if clean else []), *(f"{name}/3" for name in CORRUPTIONS)):
        for number, name in enumerate(classes):
            for i in range(per_class):
                path = root / folder / name / f"ILSVRC2012_val_{number:04}{i:04}.JPEG"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(image((number + i) % 20, "JPEG"))
    return root


def digits(root: Path, train: int = 3, test: int = 1) -> Path:
    """`train` and `test` images of each digit in every data set, a noisy stroke each."""
    for folder in ("mnist", "mnist_m", "svhn", "usps"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    parts = (("train", train, "train", ""), ("test", test, "t10k", ".t"))
    for part, count, idx, end in parts:
        labels = np.arange(10 * count) % 10
        grey = np.random.default_rng(count).integers(0, 256, (10 * count, 28, 28), np.uint8)
        shape = np.array(grey.shape, ">u4").tobytes()
        for name, content in (
            (f"{idx}-images-idx3-ubyte.gz", b"\0\0\x08\x03" + shape + grey.tobytes()),
            (
                f"{idx}-labels-idx1-ubyte.gz",
                b"\0\0\x08\x01" + shape[:4] + labels.astype(np.uint8).tobytes(),
            ),
        ):
            (root / "mnist" / name).write_bytes(gzip.compress(content))
        for i in range(len(labels)):
            write(root / f"mnist_m/mnist_m_{part}/{i:08}.png", i)
        (root / f"mnist_m/mnist_m_{part}_labels.txt").write_text(
            "".join(f"{i:08}.png {label}\n" for i, label in enumerate(labels))
        )
        colour = np.repeat(grey[:, :, :, None], 3, 3).transpose(1, 2, 3, 0)
        scipy.io.savemat(
            root / f"svhn/{part}_32x32.mat",
            {
                "X": np.pad(colour, ((2, 2), (2, 2), (0, 0), (0, 0))),
                "y": np.where(labels, labels, 10)[:, None].astype(np.uint8),
            },
            do_compression=True,
        )
        ink = grey[:, :16, :16].reshape(-1, 256) / 127.5 - 1
        lines = [
            f"{label + 1} " + " ".join(f"{k}:{v:.4f}" for k, v in enumerate(row, 1))
            for label, row in zip(labels, ink, strict=True)
        ]
        (root / f"usps/usps{end}.bz2").write_bytes(bz2.compress("\n".join(lines).encode()))
    return root
