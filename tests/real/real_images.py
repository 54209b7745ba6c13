"""What the sweeps of real images read: both towers of a CLIP ViT-B/16, and trees of images.

    FSDIL_TEST_ASSETS=ASSETS python tests/real/real_images.py --out real-images

writes OpenAI's image tower, which ASSETS has as int8, as float32 (345 MB), and copies the text
tower that was distilled for it, with the config of both, as `--backbone CONFIG.json:IMAGE+TEXT`
takes them. Beside them come trees of links to the images: all of them, and as many of each class
and domain as a processor can train on. None of it is part of the project.
"""

from __future__ import annotations

import argparse
import os
import shutil
from pathlib import Path

from safetensors.torch import save_file
from vit_b16_plugin import dequantise, weights

TEXT_TOWER = "distilled_text"
#: Boards are named after these files, so their names say what is in them.
CONFIG = "vit-b16-distilled-text.json"
IMAGE = "openai-visual.safetensors"
TEXT = "distilled-text.safetensors"


def write_towers(folder: Path) -> str:
    """Write all three files; returns the name of the backbone in them."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(weights() / TEXT_TOWER / "config.json", folder / CONFIG)
    shutil.copyfile(weights() / TEXT_TOWER / "text.safetensors", folder / TEXT)
    save_file(dequantise(), folder / IMAGE)
    return f"{folder / CONFIG}:{folder / IMAGE}+{folder / TEXT}"


def write_trees(assets: Path, folder: Path) -> None:
    """Link all images, and for towers the first ones of each class and domain.

    The small trees do not depend on any result: 20 images of a class of PACS (six of them to test
    on), and 14 of a class of emoji (four of them), which is what most makers have.
    """
    for name, each in (("pacs", 20), ("emoji", 14)):
        tree = (assets / "data" / name).resolve()
        (folder / name).symlink_to(tree)
        part_of(tree, folder / f"{name}-small", each)


def part_of(tree: Path, folder: Path, each: int) -> Path:
    """Link the first images of each class and domain."""
    for kind in sorted(path for path in tree.glob("*/*") if path.is_dir()):
        linked = folder / kind.relative_to(tree)
        linked.mkdir(parents=True)
        for file in sorted(kind.iterdir())[:each]:
            (linked / file.name).symlink_to(file.resolve())
    return folder


def main() -> None:
    """Write to the folder that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="written to DIR")
    folder = parser.parse_args().out
    if "FSDIL_TEST_ASSETS" not in os.environ:
        parser.error("FSDIL_TEST_ASSETS names no folder of weights")
    if not (weights() / TEXT_TOWER).is_dir():
        parser.error(f"there is no folder {weights() / TEXT_TOWER}")
    if folder.exists():
        parser.error(f"{folder} is there already: name another folder, or remove it")
    print(f"--backbone {write_towers(folder)}")
    write_trees(Path(os.environ["FSDIL_TEST_ASSETS"]), folder)
    print("--data", *(folder / name for name in ("pacs", "pacs-small", "emoji", "emoji-small")))


if __name__ == "__main__":
    main()
