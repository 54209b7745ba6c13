"""Real pictures under real towers in three files: config, image tower and text tower."""

from __future__ import annotations

from pathlib import Path

import pytest
import real_images
from pacs_folder import ASSETS, CLASSES, PACS, part_of_pacs

import fsdil_bench

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(
        not (
            ASSETS and PACS.is_dir() and (real_images.weights() / real_images.TEXT_TOWER).is_dir()
        ),
        reason="FSDIL_TEST_ASSETS names no folder with data/pacs and weights of both towers",
    ),
]


def test_photographs_and_sketches_are_nearest_to_their_names(tmp_path):
    """Fourteen test images of each domain; the names alone, which is what the tower learned."""
    backbone = real_images.write_towers(tmp_path / "towers")
    data = part_of_pacs(tmp_path / "pacs", CLASSES, 3, ["photo", "sketch"])
    record = fsdil_bench.run(
        "zero-shot", "folder-1shot", data=data, base="photo", backbone=backbone,
        config={"templates": ("{}",)}, scenario_options={"test_fraction": 0.6}, out=tmp_path,
    )  # fmt: skip
    print(record.matrix)
    assert [domain["test"] for domain in record.scenario["domains"]] == [14, 14]
    assert record.matrix[-1][0] == 100
    assert record.matrix[-1][1] > 70
    names = (real_images.CONFIG, real_images.IMAGE, real_images.TEXT)
    assert record.spec["backbone"] == "{}:{}+{}".format(*names)
    assert [side["from"] for side in record.method["backbone"].values()] == list(names)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("pictures", "each", "tested", "measured"),
    [("pacs", 61, 1680, 97.4), ("emoji", 14, 1092, 57.4)],
)
def test_zero_shot_agrees_with_what_was_measured_without_the_harness(
    pictures, each, tested, measured, tmp_path
):
    """Plain names on 60 images of a class and domain of PACS, and on 14 of the emoji.

    Which 60 and 14 were measured is not known, and a scenario keeps one image of each to train on,
    so this is about other images: the standard errors are 0.4 and 1.5 points.
    """
    backbone = real_images.write_towers(tmp_path / "towers")
    data = real_images.part_of(Path(ASSETS) / "data" / pictures, tmp_path / pictures, each)
    record = fsdil_bench.run(
        "zero-shot", "folder-1shot", data=data, backbone=backbone, config={"templates": ("{}",)},
        scenario_options={"test_fraction": 0.99}, out=tmp_path,
    )  # fmt: skip
    print(record.metrics, record.matrix[-1])
    assert sum(record.test_counts) == tested
    assert record.metrics["Last"] == pytest.approx(measured, abs=1.5)


def test_the_script_says_what_is_missing(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr("sys.argv", ["real_images.py", "--out", str(tmp_path / "towers")])
    monkeypatch.setenv("FSDIL_TEST_ASSETS", str(tmp_path))
    with pytest.raises(SystemExit):
        real_images.main()
    assert f"no folder {tmp_path}/weights" in capsys.readouterr().err
    monkeypatch.delenv("FSDIL_TEST_ASSETS")
    with pytest.raises(SystemExit):
        real_images.main()
    assert "FSDIL_TEST_ASSETS" in capsys.readouterr().err
    assert not (tmp_path / "towers").exists()
