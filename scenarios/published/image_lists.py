"""Lists of images as data sets publish them: one `<path> <label>` per line."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fsdil_bench import DataError, missing_files

from .image_folders import remedy, shortened


@dataclass(frozen=True)
class ImageList:
    """A list that was read: paths, the folder of each, and their labels."""

    file: Path
    paths: list[str]
    folders: list[str]
    labels: list[int]

    def classes(self) -> set[tuple[str, int]]:
        """Every pair of class folder (without the domain's) and label that occurs."""
        pairs = set(zip(self.folders, self.labels, strict=True))
        return {(_last(folder), label) for folder, label in pairs}

    def of_classes(self, classes: Sequence[str]) -> tuple[list[str], list[int]]:
        """Paths and labels of the images of these classes, numbered in this order."""
        label_of = {name: label for label, name in enumerate(classes)}
        # Once per folder: a list has hundreds of folders, but a hundred thousand images.
        labels = {folder: label_of.get(_last(folder)) for folder in set(self.folders)}
        pairs = zip(self.paths, (labels[folder] for folder in self.folders), strict=True)
        chosen = [(path, label) for path, label in pairs if label is not None]
        return [path for path, _ in chosen], [label for _, label in chosen]


def read_list(file: Path, domain: str, skip: Collection[str] = ()) -> ImageList:
    """Read a list whose paths are `<domain>/<class>/<image>`, all but the paths to `skip`."""
    paths: list[str] = []
    labels: list[int] = []
    with file.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            path, _, label = line.rstrip().rpartition(" ")
            if path and label.isdecimal():
                if path not in skip:
                    paths.append(path)
                    labels.append(int(label))
            elif label:
                raise _malformed(file, number, line)
    folders = [path.rpartition("/")[0] for path in paths]
    for folder in set(folders):
        parts = folder.split("/")
        if len(parts) != 2 or parts[0] != domain or parts[1] in ("", ".", ".."):
            number = folders.index(folder)
            raise _malformed(file, number + 1, paths[number])
    return ImageList(file, paths, folders, labels)


def find_lists(
    places: Iterable[Path], names: Sequence[str], data_set: str, data: Path
) -> Path | None:
    """The first place with any of the lists, or None. It is an error if some are missing there."""
    for place in places:
        absent = [name for name in names if not (place / name).is_file()]
        if not absent:
            return place
        if len(absent) < len(names):
            raise DataError(
                f"'{place}' lacks {len(absent)} of the {len(names)} lists of {data_set}: "
                f"{shortened(absent)}",
                remedy(data_set, data),
            )
    return None


def class_labels(lists: Iterable[ImageList]) -> dict[str, int]:
    """The label of every class folder, in the order of the labels.

    Lists number their classes in one of three alphabetical orders: capitals may come first, and
    `_` and `-` may or may not count. Labels in none of these orders are an error, and so is a class
    with two labels or a label with two classes.
    """
    labels: dict[str, int] = {}
    names: dict[int, str] = {}
    files: list[Path] = []
    for each in lists:
        files.append(each.file)
        for name, label in each.classes():
            if labels.setdefault(name, label) != label or names.setdefault(label, name) != name:
                raise DataError(
                    f"'{each.file}' gives '{name}' the label {label}; another line says "
                    f"'{names[label]}' is {label} and '{name}' is {labels[name]}",
                    "The lists are not of one data set, or damaged: download them again.",
                )
    ordered = dict(sorted(labels.items(), key=lambda item: item[1]))
    if not any(list(ordered) == sorted(ordered, key=alphabet) for alphabet in _ALPHABETS):
        raise DataError(
            f"the labels in '{files[0]}' and the lists beside it do not follow the alphabetical "
            f"order of the folders: {_first_out_of_order(ordered)}",
            "The lists are not of one data set, or damaged: download them again.",
        )
    return ordered


def check_listed(root: Path, paths: Sequence[str], data_set: str, data: Path) -> None:
    """Refuse lists that name images that are not there, or an image twice."""
    absent = missing_files(root, paths)
    if absent:
        raise DataError(
            f"{len(absent)} of the {len(paths)} images that the lists name are not in '{root}': "
            f"{shortened(absent)}",
            remedy(data_set, data),
        )
    twice = len(paths) - len(set(paths))
    if twice:
        raise DataError(
            f"the lists of {data_set} in '{data}' name {twice} images more than once: for training "
            "and for testing, or twice for one of them",
            "The lists are damaged: download them again.",
        )


def _last(folder: str) -> str:
    return folder.rpartition("/")[2]


def _bare(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


_ALPHABETS = (str, str.lower, _bare)


def _first_out_of_order(labels: Mapping[str, int]) -> str:
    wanted = sorted(labels, key=str.lower)
    first = next(i for i, name in enumerate(labels) if name != wanted[i])
    name = list(labels)[first]
    return f"'{name}' has the label {labels[name]}, which should be that of '{wanted[first]}'"


def _malformed(file: Path, number: int, line: str) -> DataError:
    return DataError(
        f"'{file}', line {number}: {line.strip()!r} is not `<domain>/<class>/<image> <label>`",
        "The list is damaged: download it again.",
    )
