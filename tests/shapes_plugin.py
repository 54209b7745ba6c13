"""A plugin file for the tests of `fsdil-bench data`: data sets served from SHAPES_URL.

It imports nothing heavy, so that a test can tell whether the harness does.
"""

from __future__ import annotations

import os

from fsdil_bench import BackboneInfo, DataSource, Download, ScenarioInfo, hookimpl

URL = os.environ.get("SHAPES_URL", "http://127.0.0.1:1")
IMAGES = [f"{d}/{c}/{i}.png" for d in ("ink", "chalk") for c in ("disc", "ring") for i in range(3)]


def verify(root):
    return [f"{path} is missing" for path in [*IMAGES, "names.txt"] if not (root / path).is_file()]


PUBLISHED = DataSource(
    homepage="https://example.org/shapes",
    license="CC BY 4.0",
    verify=verify,
    layout=("<domain>/<class>/<number>.png", "names.txt"),
    downloads=(
        Download(f"{URL}/shapes.zip", "shapes.zip", unpack="."),
        Download(f"{URL}/names.txt", "names.txt", size=10),
    ),
    size="1.2 GB",
)
SHARED = DataSource(**vars(PUBLISHED) | {"folder": "shapes"})


def verify_with_list(root):
    return verify(root) + ([] if (root / "own.txt").is_file() else ["own.txt is missing"])


OWN_LIST = (PUBLISHED.downloads[0], Download(f"{URL}/own.txt", "own.txt"))
WITH_LIST = DataSource(**vars(SHARED) | {"verify": verify_with_list, "downloads": OWN_LIST})
BY_HAND = DataSource(
    homepage="https://example.org/forms",
    license="research only",
    verify=verify,
    layout=PUBLISHED.layout,
    manual=("Ask at https://example.org/forms.", "Unpack what you get."),
    size="3 GB",
)


def never():
    raise RuntimeError("the backbone was looked for")


@hookimpl
def fsdil_scenarios():
    def scenario(name, source):
        return ScenarioInfo(
            name,
            "shapes in two manners",
            "fsdil_scenarios.folder:build",
            options="fsdil_scenarios.folder:Options",
            needs_data=True,
            source=source,
            default_backbone="never",
        )

    return [
        scenario("shapes", PUBLISHED),
        scenario("shapes-again", SHARED),
        scenario("shapes-lists", WITH_LIST),
        scenario("forms", BY_HAND),
        scenario("broken", "no_such_module:SOURCE"),
    ]


@hookimpl
def fsdil_backbones():
    return [BackboneInfo("never", "fails when it is built", never)]
