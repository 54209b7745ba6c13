from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from PIL import Image

from fsdil_bench import cli

TOY = str(Path(__file__).parent.parent / "toy_plugin.py")


def toy(*arguments):
    return ["run", "--plugin", TOY, "-s", "toy-1shot", "-m", "toy-means", *arguments]


def test_run_show_leaderboard(call, tmp_path):
    code, out, err = call(*toy("--seeds", "0-1"))
    assert code == 0, err
    assert "mean ± std" in out
    assert out.count("record: ") == 2
    folder = out.split("record: ")[1].split()[0]

    code, out, err = call("show", folder)
    assert code == 0, err
    for expected in (
        "AA*",
        "over the stream",
        "largest sum",
        "peak memory",
        "provenance",
        "fsdil-bench",
        "d3",
    ):
        assert expected in out

    code, out, err = call("leaderboard", "runs", "--out", "boards")
    assert code == 0, err
    assert (tmp_path / "boards" / "README.md").exists()
    assert "toy-means" in next((tmp_path / "boards").glob("toy-1shot*.md")).read_text()


def test_incomplete_rows_can_be_left_out(call, tmp_path):
    assert call(*toy("--seeds", "0-1"))[0] == 0
    assert call(*toy("-q", "-m", "toy-router"))[0] == 0
    board = ("leaderboard", "runs", "--out", "boards", "--copy-records", "--complete-rows")
    code, _, err = call(*board)
    assert code == 0, err
    assert "in complete rows: 2 of 3 runs" in err
    kept = [file.parent.parent.name for file in (tmp_path / "boards").rglob("record.json")]
    assert kept == ["toy-means", "toy-means"]

    shutil.rmtree(next((tmp_path / "runs").rglob("toy-means/seed0-*")))
    code, _, err = call(*board)
    assert code == 2
    assert "no row has all seeds of its board" in err


def test_lists_may_have_commas_or_their_option_again(call):
    code, out, _ = call(*toy("--json", "-q", "--seeds", "0", "--seeds", "2-3", "--order", "d0,d1",
                             "--order", "d3"))  # fmt: skip
    assert code == 0
    assert [record["spec"]["seed"] for record in json.loads(out)] == [0, 2, 3]
    assert json.loads(out)[0]["spec"]["order"] == ["d0", "d1", "d3"]
    code, out, _ = call(
        "sweep", "--dry-run", "--on", "records", "--json", "-m", "ncm,slda", "-m", "ranpac",
        "-s", "drawn", "-s", "shelf", "--shots", "1", "--shots", "4", "--seeds", "0-1",
    )  # fmt: skip
    assert code == 0
    assert len(json.loads(out)["cells"]) == 3 * 2 * 2 * 2


def test_run_prints_matrix_and_scores(call):
    code, out, err = call(*toy())
    assert code == 0
    for expected in ("after learning", "AA*", "FA*", "Avg", "Last", "record: runs/toy-1shot"):
        assert expected in out
    assert "domain 4/4" in err


def test_json_is_for_programs(call):
    code, out, _ = call(*toy("--json", "-q"))
    record = json.loads(out)[0]
    assert code == 0
    assert record["spec"]["method"] == "toy-means"
    code, out, _ = call("show", "runs", "--json")
    assert json.loads(out)["run_id"] == record["run_id"]
    for kind in ("methods", "scenarios", "backbones", "plugins"):
        code, out, _ = call("list", kind, "--json", "--plugin", TOY)
        assert len(json.loads(out)) >= 2


def test_one_domain_says_that_fa_is_undefined(call):
    code, out, _ = call(*toy("--order", "d1"))
    assert code == 0
    assert "FA* is undefined" in out


def test_listing_one_method_shows_its_options(call):
    code, out, _ = call("list", "methods", "ncm")
    assert code == 0
    assert "text_mix" in out


def test_listing_shows_what_can_be_read(call):
    """A default of eighty sentences is cut short; JSON has all of it."""
    _, out, _ = call("list", "methods", "zero-shot-80")
    assert "79 more" in out
    _, out, _ = call("list", "methods", "zero-shot-80", "--json")
    assert len(json.loads(out)["options"]["templates"]["default"]) == 80


def test_listing_says_what_is_kept(call):
    _, out, _ = call("list", "methods", "--json")
    rows = {row["method"]: row for row in json.loads(out)}
    assert [rows[name]["exemplar_free"] for name in ("ncm", "joint")] == [True, False]
    assert [rows[name]["keeps_features"] for name in ("ncm", "tip-adapter")] == [False, True]
    _, out, _ = call("list", "methods")
    lines = {line.split()[0]: line.split() for line in out.splitlines() if line.split()}
    assert "keeps" in lines["joint"]
    assert "features" in lines["tip-adapter"]
    assert not {"keeps", "features"} & set(lines["ncm"][-3:])


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (["run", "-m", "nmc", "-s", "drawn-1shot"], 2, ["'nmc'", "Did you mean 'ncm'"]),
        (["run", "-m", "ncm", "-s", "drown-1shot"], 2, ["'drown'", "'drawn'"]),
        (["run", "-m", "ncm", "-s", "drawn"], 2, ["'drawn' is not a scenario", "drawn-1shot"]),
        (["run", "-m", "ncm", "-s", "drawn-1shot@x"], 2, ["no variant 'x'"]),
        (["run", "-m", "ncm", "-s", "drawn-1shot", "-b", "tinyclip"], 2, ["'tiny-clip'"]),
        (["run", "-m", "ncm", "-s", "drawn-1shot", "--set", "mod=x"], 2, ["'mod'", "mode"]),
        (["run", "-m", "ncm", "-s", "drawn-1shot", "--set", "mode=x"], 2, ["one of running"]),
        (["run", "-m", "ncm", "-s", "drawn-1shot", "--set", "mode"], 2, ["key=value"]),
        (["run", "-m", "ncm", "-s", "drawn-200shot"], 2, ["painting", "cup", "200 are needed"]),
        (["run", "-m", "ncm", "-s", "drawn-1shot", "--order", "real,oil"], 2, ["'oil'", "clipart"]),
        (["run", "-m", "ncm", "-s", "drawn-1shot", "--seeds", "a"], 2, ["0,1,2 or 0-2"]),
        (["run", "-m", "ncm", "-s", "drawn-1shot", "--device", "tpu9"], 2, ["'tpu9'"]),
        (["run", "-m", "ncm", "-s", "drawn-1shot", "--precision", "bf16", "--device", "cpu"], 2,
         ["bf16"]),
        (["run", "-m", "ncm", "-s", "folder-1shot"], 2, ["--data"]),
        (["run", "-m", "ncm", "-s", "folder-1shot", "--data", "nowhere"], 2, ["'nowhere'"]),
        (["run", "-m", "ncm"], 2, ["--scenario"]),
        (["run", "--plugin", "gone.py", "-m", "ncm", "-s", "drawn-1shot"], 2, ["'gone.py'"]),
        (["show", "nowhere"], 2, ["'nowhere'"]),
        (["leaderboard", "nowhere"], 2, ["'nowhere'"]),
        (["list", "method"], 2, ["method"]),
    ],
)  # fmt: skip
def test_bad_input_gets_one_clear_message(call, tmp_path, arguments, code, expected):
    got, _, err = call(*arguments)
    assert got == code, err
    for text in expected:
        assert text in err
    assert "Traceback" not in err
    assert not list(tmp_path.rglob("record.json"))


@pytest.mark.parametrize(
    "method",
    ["toy-raisesinbuild", "toy-raisesinlearn", "toy-raisesinpredict", "toy-returnslogits"],
)
def test_failing_methods_exit_with_one_message(call, tmp_path, method):
    code, _, err = call("run", "--plugin", TOY, "-s", "toy-1shot", "-m", method, "-q")
    assert code == 1
    assert err.startswith("error: ")
    assert method in err
    assert "Traceback" not in err
    code, _, err = call("leaderboard", "runs")
    assert code != 0
    assert "no complete run" in err


def test_debug_shows_the_traceback(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    arguments = ["run", "--plugin", TOY, "-s", "toy-1shot", "-m", "toy-raisesinlearn", "--debug"]
    result = subprocess.run(
        [sys.executable, "-m", "fsdil_bench", *arguments], capture_output=True, text=True
    )
    assert result.returncode != 0
    assert "Traceback" in result.stderr


def test_a_broken_plugin_is_one_warning_line(call, tmp_path):
    (tmp_path / "bad.py").write_text("raise RuntimeError('bad day')")
    code, out, err = call("list", "methods", "--plugin", "bad.py")
    assert code == 0
    assert err.count("\n") == 1
    assert "bad day" in err
    assert "zero-shot" in out
    code, out, err = call("list", "plugins", "--plugin", "bad.py")
    assert "broken" in out
    assert "bad day" in out


def write_tree(root, domains=("a", "b"), classes=("x", "y"), images=4):
    for d, domain in enumerate(domains):
        for c, name in enumerate(classes):
            for i in range(images):
                path = root / domain / name / f"{i}.png"
                path.parent.mkdir(parents=True, exist_ok=True)
                Image.new("RGB", (20, 30), (60 * d, 120 * c, 10 * i)).save(path)
    return root


def folder_run(root):
    return ["run", "--plugin", TOY, "-m", "toy-means", "-s", "folder-1shot", "--data", root,
            "-b", "toy-clip", "-q"]  # fmt: skip


def test_folder_scenario_end_to_end(call, tmp_path):
    code, out, err = call(*folder_run(write_tree(tmp_path / "tree")), "--base", "b")
    assert code == 0, err
    assert out.index(" b") < out.index(" a ")


def test_folder_with_a_corrupt_image(call, tmp_path):
    root = write_tree(tmp_path / "tree")
    for path in (root / "b" / "y").iterdir():
        path.write_bytes(path.read_bytes()[:40])
    code, _, err = call(*folder_run(root))
    assert code == 2
    assert "b/y/" in err
    assert "cannot be read" in err
    assert not list(tmp_path.rglob("record.json"))


def test_folder_with_a_missing_class(call, tmp_path):
    root = write_tree(tmp_path / "tree")
    for path in (root / "b" / "y").iterdir():
        path.unlink()
    code, _, err = call(*folder_run(root))
    assert code == 2
    assert "domain 'b' has 0 images of class 'y'" in err


def test_folder_that_is_empty(call, tmp_path):
    (tmp_path / "tree").mkdir()
    code, _, err = call(*folder_run(tmp_path / "tree"))
    assert code == 2
    assert "has no domain folders" in err


def test_help_on_every_level():
    listings = [f"list {kind}" for kind in ("methods", "scenarios", "backbones", "plugins")]
    for path in ["", "run", "list", *listings, "show", "leaderboard", "new-method", "new-scenario"]:
        result = CliRunner().invoke(cli.cli, [*path.split(), "--help"])
        assert result.exit_code == 0
        assert "Example" in result.output


def test_version():
    result = CliRunner().invoke(cli.cli, ["--version"])
    assert "fsdil-bench, version" in result.output


def test_module_and_script_are_the_same():
    script = Path(sys.executable).with_name("fsdil-bench")
    environment = os.environ | {"NO_COLOR": "1"}
    outputs = [
        subprocess.run([*head, "list", "methods"], capture_output=True, text=True, env=environment)
        for head in ([str(script)], [sys.executable, "-m", "fsdil_bench"])
    ]
    assert outputs[0].stdout == outputs[1].stdout
    assert "zero-shot" in outputs[0].stdout


def test_another_transform_and_number_of_workers(call):
    code, out, err = call(*toy("--transform", "core50", "--workers", "0", "--json", "-q"))
    assert code == 0, err
    assert json.loads(out)[0]["scenario"]["transform"]["preset"] == "core50"
    code, _, err = call(*toy("--transform", "cor50"))
    assert code == 2
    assert "unknown transform 'cor50'" in err
    assert "cddb, clip, core50, domainnet" in err
    assert call(*toy("--workers", "-1"))[0] == 2
    assert "cddb, clip, core50, domainnet" in " ".join(call("run", "--help")[1].split())
