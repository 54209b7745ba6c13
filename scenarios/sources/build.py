"""The stream of the `sources` scenario: domains from the option, over one set of classes."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from fsdil_bench import (
    DataError,
    Domain,
    RequestError,
    Samples,
    ScenarioRequest,
    Stream,
    drop_copies,
    numpy_generator,
)

from ..names import read_names, read_synonyms
from . import hub_sets, torchvision_sets
from .labelled import Labelled

SPLIT_VERSION = 1  # a different number makes different splits: results change
TEST_FRACTION = 0.3

_DOMAIN = re.compile(r"\w[\w .+-]*")
_EXAMPLE = (
    'For instance --scenario-set domains=\'{"a": "torchvision:MNIST", "b": "hf:owner/name"}\'.'
)


def build(request: ScenarioRequest) -> Stream:
    """The data sets that the option names, as domains."""
    data, options = request.data, request.options
    assert data is not None
    sources = [Source(name, where, data) for name, where in read_domains(options.domains).items()]
    classes = common_classes(sources)
    stream = Stream(
        name="sources",
        class_names=read_names(request.names, classes)
        if request.names
        else tuple(name.replace("_", " ") for name in classes),
        synonyms=read_synonyms(request.synonyms, classes) if request.synonyms else (),
        domains=tuple(_domain(source, classes) for source in sources),
        notes={"split": f"draw {SPLIT_VERSION}", "sources": {s.domain: s.where for s in sources}},
    )
    return drop_copies(stream) if options.drop_duplicates else stream


def read_domains(text: str) -> dict[str, str]:
    """The option `domains`: where each domain comes from."""
    if not text:
        raise RequestError("the scenario 'sources' needs the option domains", _EXAMPLE)
    try:
        domains = json.loads(text)
    except ValueError as error:
        raise RequestError(f"the option domains is not JSON: {error}", _EXAMPLE) from None
    if not isinstance(domains, dict) or not domains:
        raise RequestError("the option domains is not a JSON object with domains", _EXAMPLE)
    for name, where in domains.items():
        if not _DOMAIN.fullmatch(name):
            raise RequestError(
                f"'{name}' cannot be the name of a domain",
                "Use letters, digits, blanks and the marks . _ + - after the first character.",
            )
        if not isinstance(where, str) or not re.fullmatch(r"(torchvision|hf):.+", where):
            raise RequestError(
                f"the domain '{name}' comes from {json.dumps(where)}, which is neither "
                "torchvision:<class> nor hf:<owner>/<name>",
                _EXAMPLE,
            )
    return domains


@dataclass(frozen=True)
class Source:
    """Where a domain comes from; it is opened once per process."""

    domain: str
    where: str
    data: Path

    def parts(self) -> list[Labelled]:
        """Training and test part, or all images in one."""
        return _opened(self)

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of its labels, if it has any."""
        return self.parts()[0].classes


@lru_cache(maxsize=32)
def _opened(source: Source) -> list[Labelled]:
    kind, _, name = source.where.partition(":")
    if kind == "hf":
        return hub_sets.open_parts(name, source.data)
    return torchvision_sets.open_parts(name, source.domain, source.data)


@dataclass(frozen=True)
class Pictures:
    """Loads pictures by ids `<domain>/<part>/<number>`."""

    source: Source

    def __call__(self, sample_id: str) -> np.ndarray:
        """One picture as RGB."""
        _, part, number = sample_id.rsplit("/", 2)
        picture = self.source.parts()[int(part)].picture(int(number))
        return np.asarray(picture.convert("RGB"))


def common_classes(sources: list[Source]) -> tuple[str, ...]:
    """The classes of all domains: those that data sets name, or as many numbers."""
    naming = [source for source in sources if source.classes]
    if not naming:
        most = max(int(part.labels.max(initial=-1)) for s in sources for part in s.parts())
        return tuple(map(str, range(most + 1)))
    first = naming[0]
    for other in naming[1:]:
        different = sorted({_bare(c) for c in other.classes} ^ {_bare(c) for c in first.classes})
        if different:
            raise DataError(
                f"the domains '{first.domain}' and '{other.domain}' have different classes: "
                f"{', '.join(different[:5])}{' ...' if len(different) > 5 else ''}",
                "All domains must have the same classes: choose other data sets, or rename or "
                "remove classes in a tree of images.",
            )
    return first.classes


def _domain(source: Source, classes: tuple[str, ...]) -> Domain:
    place = {_bare(name): label for label, name in enumerate(classes)}
    own = source.classes
    new_label = np.array([place[_bare(c)] for c in own] if own else range(len(classes)))
    labels = []
    for part in source.parts():
        if len(part.labels) and not 0 <= part.labels.min() <= part.labels.max() < len(new_label):
            raise DataError(
                f"the domain '{source.domain}' has labels from {part.labels.min()} to "
                f"{part.labels.max()}, and there are {len(new_label)} classes",
                "Only data sets in which every image has one of the classes can be domains.",
            )
        labels.append(new_label[part.labels])
    if len(labels) == 2:
        chosen = [(0, np.arange(len(labels[0]))), (1, np.arange(len(labels[1])))]
    else:
        chosen = [(0, numbers) for numbers in _split(labels[0], source.domain)]
    return Domain(source.domain, *(_samples(source, p, labels[p], n) for p, n in chosen))


def _split(labels: np.ndarray, domain: str) -> tuple[np.ndarray, np.ndarray]:
    """Numbers for training and for testing, drawn in every class, the same for all runs."""
    tested = np.zeros(len(labels), bool)
    for label in np.unique(labels):
        numbers = np.flatnonzero(labels == label)
        count = min(max(1, round(TEST_FRACTION * len(numbers))), len(numbers) - 1)
        generator = numpy_generator(SPLIT_VERSION, "sources split", domain, int(label))
        tested[generator.permutation(numbers)[:count]] = True
    return np.flatnonzero(~tested), np.flatnonzero(tested)


def _samples(source: Source, part: int, labels: np.ndarray, numbers: np.ndarray) -> Samples:
    ids = tuple(f"{source.domain}/{part}/{number:06}" for number in numbers.tolist())
    return Samples(ids, labels[numbers], Pictures(source))


def _bare(name: str) -> str:
    return name.casefold().replace("_", " ").strip()
