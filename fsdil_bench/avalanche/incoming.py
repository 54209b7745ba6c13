"""Avalanche benchmarks as streams: an experience of the training stream becomes a domain.

    stream = stream_from_avalanche(RotatedMNIST(5, eval_transform=None), class_names)

A scenario plugin returns it. `incoming_images` says which forms of images are taken.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fsdil_bench.data.scenario import Domain, Samples, Stream
from fsdil_bench.data.shots import drawn_order
from fsdil_bench.errors import DataError, RequestError

from .bridge import require_avalanche
from .incoming_images import IncomingImages, Normalised

_SHOWN = 3  # classes in a message


def stream_from_avalanche(
    benchmark: Any,
    class_names: Sequence[str],
    *,
    domains: Sequence[str] = (),
    synonyms: Sequence[Sequence[str]] = (),
    groups: str = "",
    normalised: Normalised | None = None,
    test_share: float = 0.2,
) -> Stream:
    """An Avalanche benchmark whose experiences are domains with the same classes, as a stream.

    Experience i of the training stream and that of the test stream are one domain, called
    `domains[i]` ("experience-0" ... by default). A test stream of a single experience belongs to no
    domain: it becomes the unseen test set "test", and every domain is tested on `test_share` of its
    own training images, the same for every run. `class_names[c]` and `synonyms[c]` are those of the
    label c. `groups` names a data attribute of the data sets that tells which images belong
    together, for instance frames of a video.

    Images are read when they are needed, through the transforms of the group "eval". They may be
    pictures of PIL, arrays (height, width, channels) or tensors (channels, height, width), of uint8
    or of floats from 0 to 1. `normalised`, mean and standard deviation of a `Normalize` among the
    transforms, is undone. Keys are hashes of pixels, so all images are read once before a run.
    """
    require_avalanche()
    train, test = (_experiences(benchmark, f"{kind}_stream", groups) for kind in ("train", "test"))
    names = tuple(domains) or tuple(f"experience-{i}" for i in range(len(train)))
    _check_names(names, len(train), class_names, synonyms)
    _check_task_labels([*train, *test])
    for each in train:
        _check_classes(each, class_names)
    if len(test) not in (1, len(train)):
        raise DataError(
            f"the test stream has {len(test)} experiences, the training stream {len(train)}",
            "It must have as many, or a single one.",
        )
    if not 0 < test_share < 1:
        raise RequestError(f"test_share = {test_share} does not fit", "Give a number from 0 to 1.")
    common = len(test) == 1 < len(train)
    places = [f"{name}/train" for name in names]
    tests = ["test"] if common else [f"{name}/test" for name in names]
    sets = dict(zip([*places, *tests], [*train, *test], strict=True))
    load = IncomingImages({place: each.images for place, each in sets.items()}, normalised)
    samples = {place: _samples(place, each, load) for place, each in sets.items()}
    for place, each in sets.items():
        _check_first(samples[place], each, load)
    parts = (
        [_held_out(samples[place], test_share) for place in places]
        if common
        else [(samples[place], samples[own]) for place, own in zip(places, tests, strict=True)]
    )
    import avalanche

    return Stream(
        name="avalanche",
        class_names=tuple(class_names),
        synonyms=tuple(tuple(words) for words in synonyms),
        domains=tuple(Domain(name, *both) for name, both in zip(names, parts, strict=True)),
        unseen=(("test", samples["test"]),) if common else (),
        notes={"avalanche": avalanche.__version__},
    )


@dataclass(frozen=True)
class _Experience:
    """The data of one experience; `what` names it in messages."""

    what: str
    images: Any
    labels: np.ndarray
    task_labels: frozenset[int]
    groups: tuple[str, ...]


def _experiences(benchmark: Any, stream: str, groups: str) -> list[_Experience]:
    found = getattr(benchmark, stream, None)
    if not isinstance(found, Iterable):
        raise RequestError(
            f"{type(benchmark).__name__} has no {stream}",
            "Give a benchmark of Avalanche with a training stream and a test stream.",
        )
    kind = stream.removesuffix("_stream").replace("train", "training")
    read = [_experience(each, f"{kind} experience {i}", groups) for i, each in enumerate(found)]
    if not read:
        raise DataError(f"the {kind} stream has no experience", "Give it one for every domain.")
    return read


def _experience(experience: Any, what: str, groups: str) -> _Experience:
    dataset = experience.dataset
    targets = getattr(dataset, "targets", None)
    if targets is None:
        raise DataError(
            f"the data set of {what} has no `targets`",
            "Make it with as_classification_dataset of avalanche.benchmarks.utils.",
        )
    named: Any = ()
    if groups:
        named = getattr(dataset, groups, None)
        if named is None:
            raise RequestError(
                f"the data set of {what} has no data attribute '{groups}'",
                f"Add it: dataset.update_data_attribute('{groups}', [...]).",
            )
    return _Experience(
        what,
        dataset.eval(),
        np.array([int(label) for label in targets], dtype=np.int64),
        frozenset(int(label) for label in getattr(dataset, "targets_task_labels", ())),
        tuple(str(name) for name in named),
    )


def _samples(place: str, experience: _Experience, load: IncomingImages) -> Samples:
    ids = tuple(f"{place}/{number}" for number in range(len(experience.labels)))
    return Samples(ids, experience.labels, load, groups=experience.groups)


def _held_out(samples: Samples, share: float) -> tuple[Samples, Samples]:
    """Training and test images: of every class a share is held out, whole groups together."""
    held: set[int] = set()
    for members in drawn_order(samples, 0, "avalanche test"):
        own: dict[str, list[int]] = {}
        for i in members.tolist():
            own.setdefault(samples.groups[i] if samples.groups else samples.ids[i], []).append(i)
        taken = 0
        for group in own.values():
            if taken < max(1, math.floor(share * len(members))):
                held.update(group)
                taken += len(group)
    stay = [i for i in range(len(samples)) if i not in held]
    return samples.subset(stay), samples.subset(sorted(held))


def _check_names(
    names: Sequence[str], count: int, classes: Sequence[str], synonyms: Sequence[Sequence[str]]
) -> None:
    if len(names) != count or len(set(names)) < len(names):
        raise RequestError(
            f"there are {len(set(names))} different names for {count} domains",
            "Give `domains` one name for each experience of the training stream.",
        )
    if isinstance(classes, str) or len(set(classes)) < len(classes):
        raise RequestError("class_names names a class twice", "Give every label a name of its own.")
    if synonyms and len(synonyms) != len(classes):
        raise RequestError(
            f"there are synonyms for {len(synonyms)} classes and names for {len(classes)}",
            "Give `synonyms` one list, which may be empty, for each class.",
        )


def _check_task_labels(experiences: Iterable[_Experience]) -> None:
    found = sorted({label for each in experiences for label in each.task_labels})
    if len(found) > 1:
        raise DataError(
            f"the experiences have the task labels {', '.join(map(str, found))}",
            "At test time nobody says which domain an image is from: make the benchmark without "
            "task labels (return_task_id=False, task_labels=False).",
        )


def _check_classes(experience: _Experience, names: Sequence[str]) -> None:
    labels = experience.labels
    if len(labels) and not 0 <= labels.min() <= labels.max() < len(names):
        raise DataError(
            f"{experience.what} has labels from {labels.min()} to {labels.max()}, but there are "
            f"{len(names)} class names",
            "Name the class of every label, from 0 on.",
        )
    missing = [name for c, name in enumerate(names) if c not in set(labels.tolist())]
    if missing:
        more = f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
        raise DataError(
            f"{experience.what} has no image of {', '.join(missing[:_SHOWN])}{more}",
            "Every domain must have all classes. A benchmark whose experiences bring new classes "
            "(class-incremental) is no stream of domains.",
        )


def _check_first(samples: Samples, experience: _Experience, load: IncomingImages) -> None:
    """Refuse images of a form that is not taken, and transforms that draw, before a run begins."""
    if not len(samples):
        raise DataError(f"{experience.what} has no image", "Leave it out of the benchmark.")
    first = samples.ids[0]
    label = load.item(first)[1]
    if int(label) != int(samples.labels[0]):
        raise DataError(
            f"image '{first}' has the label {int(label)}, but {samples.labels[0]} in `targets`",
            "Give the data set the targets that its items have.",
        )
    if not load.look_at(first):
        raise DataError(
            f"image '{first}' is another one every time it is read",
            "Leave random transforms out of eval_transform: the harness augments the images.",
        )
