"""Small pictures of the test images that methods disagree on, as one picture per sheet.

They are made only for scenarios that need no data folder because they compute their pictures:
the images of other data sets may not be passed on.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fsdil_bench.analysis.boards import Sheet
from fsdil_bench.analysis.flips import most_disputed
from fsdil_bench.data.content_keys import Loader, load_picture
from fsdil_bench.data.scenario import Stream
from fsdil_bench.data.streams import load_stream
from fsdil_bench.errors import FsdilError
from fsdil_bench.plugins.registry import Registry

FOLDER = "thumbnails"
SIDE = 48  # pixels
COLUMNS = 20
MOST = 160  # 40 for each of the four boards that sheets usually have; about 60 KB


@dataclass(frozen=True)
class Thumbnails:
    """`images` are positions in the stream's order, `ids` the names of these images.

    `file` is a picture that shows them in the same order, `COLUMNS` in a line.
    """

    file: str
    images: list[int]
    ids: list[str]


def write_thumbnails(
    sheets: Sequence[Sheet], folder: Path, registry: Registry, tell: Callable[[str], None]
) -> dict[str, Thumbnails]:
    """Write the thumbnails of each sheet below `folder`; returns those that there are, by sheet.

    `tell` is called with the reason why a sheet has none.
    """
    found = {}
    for sheet in sheets:
        try:
            found[sheet.name] = _write(sheet, folder, _test_images(sheet, registry))
        except FsdilError as error:
            tell(f"no thumbnails for {sheet.key.title}: {error.message}")
    return found


def _test_images(sheet: Sheet, registry: Registry) -> Stream:
    """The stream of a sheet, if its test images are those of the records."""
    if registry.scenario(sheet.key.dataset).needs_data:
        raise FsdilError("its images may not be passed on")
    spec = sheet.first.spec
    stream = load_stream(
        spec["scenario"], registry=registry, seed=sheet.first.seed, order=tuple(spec["order"]),
        base_limit=spec["base_limit"], scenario_options=spec["scenario_options"],
    )  # fmt: skip
    recorded = [domain["test_sha256"] for domain in sheet.first.scenario["domains"]]
    if [domain.test.digest() for domain in stream.domains] != recorded:
        raise FsdilError("its test images differ here from those of the records")
    return stream


def _write(sheet: Sheet, folder: Path, stream: Stream) -> Thumbnails:
    images = most_disputed([[row.records for row in b.rows] for b in sheet.boards], MOST)
    if not images:
        raise FsdilError("no two methods disagree on an image")
    tests = [domain.test for domain in stream.domains]
    known = [(samples.load, each) for samples in tests for each in samples.ids]
    chosen = [known[position] for position in images]
    ids = [each for _, each in chosen]
    # Encoders differ from version to version: the same picture is not written again.
    digest = hashlib.blake2b("\n".join(ids).encode(), digest_size=3).hexdigest()
    path = folder / FOLDER / f"{sheet.name}-{digest}.webp"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        for old in path.parent.glob(f"{sheet.name}-*.webp"):
            old.unlink()
        path.write_bytes(_picture(chosen))
    return Thumbnails(f"{FOLDER}/{path.name}", images, ids)


def _picture(chosen: Sequence[tuple[Loader, str]]) -> bytes:
    from PIL import Image

    lines = -(-len(chosen) // COLUMNS)
    whole = Image.new("RGB", (COLUMNS * SIDE, lines * SIDE))
    for k, (load, sample_id) in enumerate(chosen):
        image = Image.fromarray(load_picture(load, sample_id))
        small = image.resize((SIDE, SIDE), Image.Resampling.LANCZOS)
        whole.paste(small, (k % COLUMNS * SIDE, k // COLUMNS * SIDE))
    file = io.BytesIO()
    whole.save(file, "WEBP", quality=60)
    return file.getvalue()
