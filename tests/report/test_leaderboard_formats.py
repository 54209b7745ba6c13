"""What records say is data in every format, and the formats agree with each other."""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsdil_bench.report.leaderboards import copy_records, latex, markdown, write_leaderboards
from fsdil_bench.report.leaderboards.commands import reproduce
from fsdil_bench.report.leaderboards.formatting import seed_list
from fsdil_bench.report.leaderboards.page import for_script

NASTY = "</script><img src=x onerror=alert(1)>|`x`\n*[a](javascript:b)* & \\_{} #1 100% $x$ ~^ \"'"


@pytest.fixture
def boards(made, tmp_path):
    """Boards of records given as a list of arguments of `make_record`."""

    def write(*runs):
        records = [made.make_record(tmp_path / "runs", **run) for run in runs]
        write_leaderboards(records, tmp_path / "out")
        return tmp_path / "out"

    return write


def some(**more):
    methods = {"good": 0.9, "alike": 0.895, "poor": 0.5}
    return [
        {"method": method, "scenario": f"made-{shots}shot", "seed": seed, "level": level} | more
        for method, level in methods.items()
        for shots in (1, 4)
        for seed in range(3)
    ]


def data_of(folder):
    page = (folder / "index.html").read_text(encoding="utf-8")
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    return json.loads(found[1])


# The formats agree


def test_all_formats_are_written(boards):
    names = sorted(path.name for path in boards(*some()).iterdir())
    kinds = [re.sub(r"_made-clip_[0-9a-f]{6}", "", name) for name in names]
    assert sorted(kinds) == sorted(
        ["README.md", "index.html", "leaderboards.json", "paper.md", "made.md", "made.tex",
         "made-1shot.md", "made-1shot.csv", "made-4shot.md", "made-4shot.csv"]
    )  # fmt: skip


def test_links_of_the_pages_lead_somewhere(boards):
    folder = boards(*some())
    for page in folder.glob("*.md"):
        for target in re.findall(r"\]\(([^)]+)\)", page.read_text()):
            assert (folder / target).is_file(), (page.name, target)


def test_every_format_says_the_same(boards):
    folder = boards(*some())
    table = {
        row["method"]: row
        for row in csv.DictReader(next(folder.glob("made-4shot*.csv")).open(encoding="utf-8"))
    }
    [board] = [
        board
        for board in json.loads((folder / "leaderboards.json").read_text())["boards"]
        if board["shots"] == 4
    ]
    sheet = next(folder.glob("made_*.md")).read_text()
    tex = next(folder.glob("made_*.tex")).read_text()
    [on_page] = data_of(folder)["sheets"]
    for row in board["rows"]:
        mean, std = row["scores"]["AA*"]["mean"], row["scores"]["AA*"]["std"]
        assert float(table[row["label"]]["AA*"]) == mean
        assert float(table[row["label"]]["AA* std"]) == std
        line = next(line for line in sheet.splitlines() if line.startswith(f"| {row['label']} "))
        assert f"{mean:.2f} ± {std:.2f}" in line.split("|")[4]
        line = next(line for line in tex.splitlines() if line.startswith(f"{row['label']} &"))
        assert f"{mean:.2f}" in line.split("&")[3]
        [found] = [each for each in on_page["rows"] if each["label"] == row["label"]]
        assert found["cells"]["4"]["scores"][0][:2] == [round(mean, 2), round(std, 2)]


def test_the_best_is_bold_and_the_second_underlined_in_latex(boards):
    keeps = {"method": "keeper", "level": 0.99, "exemplar_free": False, "scenario": "made-4shot"}
    tex = next(boards(*some(), keeps).glob("made_*.tex")).read_text()
    first = tex.split(r"\bottomrule")[0].splitlines()
    cell = {line.split(" &")[0]: line.split("&")[3] for line in first if line.count("&") == 4}
    assert r"\textbf{" in cell["good"]
    assert r"\underline{" in cell["alike"]
    assert "{\\footnotesize" in cell["poor"]
    assert not re.search("textbf|underline", cell["poor"] + cell[r"keeper$^\dagger$"])
    assert tex.count(r"\begin{tabular}") == tex.count(r"\end{tabular}") == 2
    columns = tex.split(r"\begin{tabular}{")[1].split("}")[0]
    rows = [line for line in first if line.endswith(r"\\") and "multicolumn" not in line]
    assert {line.count("&") + 1 for line in rows} == {len(columns)}


# The same bytes


def test_bytes_do_not_depend_on_hash_seeds_or_the_order_of_records(made, tmp_path):
    made.make_records(tmp_path / "runs", 60, seeds=3)
    code = (
        "import sys, random; from fsdil_bench import find_records, write_leaderboards\n"
        "records = find_records(sys.argv[1]); random.Random(int(sys.argv[3])).shuffle(records)\n"
        "write_leaderboards(records, sys.argv[2])"
    )
    for seed in ("1", "2"):
        subprocess.run(
            [sys.executable, "-c", code, str(tmp_path / "runs"), str(tmp_path / seed), seed],
            check=True, env=os.environ | {"PYTHONHASHSEED": seed},
        )  # fmt: skip
    one, two = (
        {path.name: path.read_bytes() for path in (tmp_path / seed).iterdir()} for seed in "12"
    )
    assert len(one) > 10
    assert one == two


# What records say is data


def test_names_from_strangers_stay_text_in_markdown(boards):
    folder = boards(*some(), {"method": NASTY, "backbone": "made-clip", "level": 0.7})
    for page in folder.glob("*.md"):
        text = page.read_text(encoding="utf-8")
        assert "<img" not in text
        assert "</script" not in text
        for line in text.splitlines():
            if "onerror" not in line:
                continue
            assert line.startswith("| ")
            widths = {each.count("|") for each in text.splitlines() if each.startswith("|:-")}
            assert line.replace("\\|", "").count("|") in widths


def test_names_from_strangers_are_no_formulas(boards):
    folder = boards({"method": "=1+1"}, {"method": "fine"})
    with next(folder.glob("*.csv")).open(encoding="utf-8") as file:
        assert {line["method"] for line in csv.DictReader(file)} == {"'=1+1", "fine"}


def test_names_from_strangers_do_not_choose_file_names(boards, made, tmp_path):
    bad = made.make_record(tmp_path / "runs", method="../../up", backbone="../../etc/x:y|z")
    folder = tmp_path / "out"
    write_leaderboards([bad], folder)
    copy_records([bad], folder)
    for path in folder.rglob("*"):
        assert re.fullmatch(r"[A-Za-z0-9._+-]+", path.name)
        assert path.resolve().is_relative_to(folder.resolve())
    assert not (tmp_path / "up").exists()


def test_names_that_become_alike_keep_their_own_files(made, tmp_path):
    records = [made.make_record(tmp_path / "runs", backbone=name) for name in ("a:b", "a/b", "a-b")]
    write_leaderboards(records, tmp_path / "out")
    assert len(list((tmp_path / "out").glob("*.csv"))) == 3


@given(st.text(max_size=40))
def test_markdown_has_no_markup_of_others(text):
    escaped = markdown.escape(text)
    assert not re.search(r"[\x00-\x1f<>\u2028\u2029\u0085]", escaped)
    assert not re.search(r"(?<!\\)(?:\\\\)*[`*_\[\]|~]", escaped)
    assert "://" not in escaped


@given(st.text(max_size=40))
def test_latex_has_no_commands_of_others(text):
    escaped = latex.escape(text)
    for known in (*latex._SPECIAL.values(),):
        escaped = escaped.replace(known, "")
    assert not re.search(r"[\\{}$&#%_^~\x00-\x1f]", escaped)


@given(st.text(max_size=60))
def test_nothing_ends_the_pages_data(text):
    held = for_script(json.dumps({"x": text}))
    assert not re.search(r"[<>&]", held)
    assert json.loads(held) == {"x": text}


class Elements(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


def test_the_page_has_only_its_own_elements(boards):
    plain, nasty = Elements(), Elements()
    plain.feed((boards(*some()) / "index.html").read_text(encoding="utf-8"))
    folder = boards({"method": NASTY, "summary": NASTY, "config": {NASTY: NASTY}})
    nasty.feed((folder / "index.html").read_text(encoding="utf-8"))
    assert [tag for tag, _ in plain.found] == [tag for tag, _ in nasty.found]
    assert data_of(folder)["sheets"][0]["rows"][0]["summary"] == NASTY
    for tag, attributes in nasty.found:
        assert not [name for name in attributes if name.startswith("on")]
        assert "src" not in attributes
        assert tag not in ("link", "img", "iframe", "object")
        assert attributes.get("href", "#").startswith("#")


def test_the_policy_allows_this_script_and_this_style_alone(boards):
    page = (boards(*some()) / "index.html").read_text(encoding="utf-8")
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)[1]
    assert policy.startswith("default-src 'none';")
    for tag, kind in (("script", "script-src"), ("style", "style-src")):
        [text] = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind} 'sha256-{digest}';" in policy


def test_the_script_never_makes_markup_of_text():
    assets = latex.__file__.replace("latex.py", "assets")
    names = [name for name in os.listdir(assets) if name.endswith(".js")]  # noqa: PTH208
    assert len(names) > 5
    for name in names:
        with open(os.path.join(assets, name), encoding="utf-8") as file:  # noqa: PTH118, PTH123
            text = file.read()
        for bad in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(",
                    "DOMParser", "http:", "https:", "fetch(", "Function("):  # fmt: skip
            assert bad not in text.replace('"http://www.w3.org/2000/svg"', ""), (name, bad)


# How to get it again


def test_the_command_names_what_was_typed(made, tmp_path):
    command = "fsdil-bench run -m made -s made-1shot --set lr=0.5 --out /a/b --plugin /a/mine.py"
    config = {"lr": 0.5, "steps": 10}
    records = [
        made.make_record(tmp_path, seed=seed, config=config, command=command) for seed in (0, 1, 4)
    ]
    assert reproduce(records) == (
        "fsdil-bench run --method made --scenario made-1shot --seeds 0-1,4 --set lr=0.5"
        " --plugin mine.py"
    )


def test_the_command_names_everything_where_nobody_typed(made, tmp_path):
    record = made.make_record(tmp_path, config={"b": [1, 2], "a": None, "c": "x; rm"}, sealed=True)
    assert reproduce([record]) == (
        "fsdil-bench run --method made --scenario made-1shot --seeds 0 --backbone made-clip"
        " --precision fp32 --order 'domain 0,domain 1,domain 2,domain 3' --transform clip"
        " --set a=none --set 'b=[1, 2]' --set 'c=x; rm' --sealed"
    )


@given(st.sets(st.integers(0, 30), min_size=1))
def test_seed_lists_are_what_run_reads(seeds):
    from fsdil_bench.cli.run_options import parse_seeds

    assert parse_seeds(None, seed_list(list(seeds))) == sorted(seeds)
