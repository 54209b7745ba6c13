"""docs/results.md is what its script writes, and its numbers are those of the records."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from statistics import fmean, pstdev

import doc_blocks as docs
import pytest
from results_page import pictures
from results_page.boards import read_worlds
from results_page.pictures import draw
from results_page.sections import page

from fsdil_bench import find_records
from fsdil_bench.analysis.statistics import paired_difference
from fsdil_bench.report.leaderboards import write_leaderboards

PICTURES = docs.ROOT / "docs/pictures"


def test_the_page_is_current():
    text = page(read_worlds())
    assert (docs.ROOT / "docs/results.md").read_text(encoding="utf-8") == text, "run: make results"


def test_its_pictures_are_there_and_small():
    text = (docs.ROOT / "docs/results.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"\(pictures/([^)]*)\)", text))
    there = {file.name for file in PICTURES.glob("results-*")}
    assert shown == there, "run: make results"
    assert there
    assert sum((PICTURES / name).stat().st_size for name in there) < 400_000


# --- Made-up worlds ---

PAPER_METHODS = ("cvlc", "lwf", "ewc", "l2p", "dualprompt", "s-prompts")
LEVELS = {
    "zero-shot": 0.70, "finetune": 0.60, "joint": 0.90, "cvlc": 0.85, "cvlc-lora": 0.70,
    "cvlc-no-lsr": 0.85, "text-prototypes": 0.96, "lwf": 0.62, "ewc": 0.64, "l2p": 0.66,
    "dualprompt": 0.68, "s-prompts": 0.80,
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(made, tmp_path_factory):
    """Boards of two worlds: one with 1 and 8 shots, one with few methods, and a variant of it."""
    out = tmp_path_factory.mktemp("boards")
    runs = [("drawn-1shot", LEVELS), ("drawn-8shot", ["ewc", "cvlc", "cvlc-lora"]),
            ("shelf-4shot", ["cvlc", "lwf"]), ("shelf-4shot@validation", ["cvlc"])]  # fmt: skip
    for scenario, methods in runs:
        for name in methods:
            for seed in range(3):
                made.make_record(
                    out / "records", name, scenario, seed, level=LEVELS[name],
                    exemplar_free=name != "joint", router=name.startswith("cvlc"),
                )  # fmt: skip
    write_leaderboards(find_records(out / "records"), out)
    return out


@pytest.fixture(scope="module")
def worlds(folder):
    return read_worlds(folder)


@pytest.fixture(scope="module")
def text(worlds):
    return page(worlds)


def runs(folder, method, scenario="drawn-1shot"):
    found = [r for r in find_records(folder / "records") if r.spec["scenario"] == scenario]
    return [record for record in found if record.spec["method"] == method]


def section(text, title):
    return text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def cells(text, first):
    """The cells of the first row that begins so, by heading."""
    lines = text.splitlines()
    i = next(i for i, line in enumerate(lines) if line.startswith(f"| {first} |"))
    head = next(a for a, b in reversed([*pairwise(lines[: i + 1])]) if b.startswith("|:--"))
    split = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in (head, lines[i])]
    return dict(zip(*split, strict=True))


def shown(values, signs=True):
    mean = f"{fmean(values):+.1f}" if signs else f"{fmean(values):.1f}"
    return f"{mean} ± {pstdev(values):.1f}".replace("-", "−").replace("+0.0", "0.0")


def test_it_says_how_many_runs_it_is_made_from(text):
    assert "from 51 runs (45 on `drawn` and 6 on `shelf`)" in text
    assert "On `drawn` fewer methods ran with 8 shots: CVLC" in text
    assert "validation" not in text
    assert "forged" not in text


def test_distances_are_taken_seed_by_seed(folder, text):
    found = cells(section(text, "All methods"), "lwf")
    scores = {name: [r.metrics["AA*"] for r in runs(folder, name)] for name in ("lwf", *LEVELS)}
    assert found["AA\\*, 1 shot"] == shown(scores["lwf"], signs=False)
    for heading, other in (("− zero-shot", "zero-shot"), ("− joint", "joint")):
        gaps = [a - b for a, b in zip(scores["lwf"], scores[other], strict=True)]
        assert found[f"{heading}, 1 shot"] == shown(gaps)


def test_forgetting_is_that_of_the_matrices(folder, text):
    found = cells(section(text, "What forgetting costs"), "finetune")
    learned, end = [], []
    for record in runs(folder, "finetune"):
        size = len(record.matrix)
        learned.append(fmean(record.matrix[i][i] for i in range(size - 1)))
        end.append(fmean(record.matrix[size - 1][i] for i in range(size - 1)))
    assert found["learned, 1 shot"] == f"{fmean(learned):.1f}"
    assert found["end, 1 shot"] == f"{fmean(end):.1f}"
    assert found["lost, 1 shot"] == shown([a - b for a, b in zip(learned, end, strict=True)])
    floor, ceiling = (
        [r.metrics["FA*"] for r in runs(folder, name)] for name in ("finetune", "joint")
    )
    gap = shown([b - a for a, b in zip(floor, ceiling, strict=True)])
    assert f"is {fmean(floor):.1f} and that of joint {fmean(ceiling):.1f}: {gap} points" in text


def test_routing_is_told_minus_guessed(folder, text):
    found = cells(section(text, "What routing costs"), "cvlc")
    records = runs(folder, "cvlc")
    gains = [r.oracle_metrics["AA*"] - r.metrics["AA*"] for r in records]
    right = fmean(r.routing[-1] for r in records)
    assert found["drawn, 1 shot"] == f"{shown(gains)} ({right:.0f} %)"
    assert "zero-shot" not in section(text, "What routing costs")


def test_parts_are_paired_differences(folder, text):
    own = section(text, "Which parts of CVLC pay")
    paired = paired_difference(runs(folder, "cvlc"), runs(folder, "cvlc-lora"))
    interval = f"({paired.interval.low:+.1f} to {paired.interval.high:+.1f})"
    assert cells(own, "`cvlc-lora`")["1 shot"] == f"**{paired.difference:+.1f}** {interval}"
    assert cells(own, "`cvlc-no-lsr`")["1 shot"].startswith("0.0 (")
    assert cells(own, "`text-prototypes`")["1 shot"].startswith("**−")
    assert (
        "- **drawn, 1 shot**: Pay: coalescent projections instead of LoRA. Cost: all but the text"
        " prototypes. No significant difference for 1 of 3." in own
    )
    assert "shelf" not in own  # it has cvlc, and nothing to hold against it


def test_parts_are_compared_with_shots_that_few_methods_ran_with(folder, text):
    own = section(text, "Which parts of CVLC pay")
    more = (runs(folder, name, "drawn-8shot") for name in ("cvlc", "cvlc-lora"))
    found = cells(own, "`cvlc-lora`")["8 shots"]
    assert found.startswith(f"**{paired_difference(*more).difference:+.1f}** (")
    assert cells(own, "`cvlc-no-lsr`")["8 shots"] == "–"
    assert "- **drawn, 8 shots**: Pay: coalescent projections instead of LoRA." in own
    assert "8 shots" not in section(text, "In short")


def test_the_papers_order_is_kendalls_tau(folder, text):
    import pandas as pd
    from scipy.stats import kendalltau

    table = pd.read_csv(docs.ROOT / "fsdil_bench/analysis/paper/results.csv")
    table = table[(table.table == "domainnet") & (table.shots == 1) & (table.metric == "AA*")]
    spelt = ["CVLC", "LwF*", "EwC*", "L2P*", "DualPrompt*", "S-Prompt"]
    theirs = [float(table[table.method == name]["mean"].iloc[0]) for name in spelt]
    ours = [fmean(r.metrics["AA*"] for r in runs(folder, name)) for name in PAPER_METHODS]
    expected = kendalltau(ours, theirs, method="exact")
    own = section(text, "Does the paper's order appear?")
    found = cells(own, "drawn")
    assert found["tau"] == f"{expected.statistic:.2f}".replace("-", "−")
    assert found["p"] == f"{expected.pvalue:.2g}"
    assert found["methods"] == "6"
    said = "The paper's order appears" if expected.pvalue <= 0.05 else "cannot be distinguished"
    assert said in own
    assert "| shelf |" not in own  # two methods have no order to speak of


def test_boards_say_what_they_can_tell(folder, text):
    own = section(text, "What the boards can tell")
    boards = json.loads((folder / "leaderboards.json").read_text(encoding="utf-8"))["boards"]
    [board] = [each for each in boards if each["scenario"] == "drawn-1shot"]
    found = cells(own, "drawn")
    assert found["methods"] == "11"  # joint does not compete
    assert found["runs"] == "36"
    assert found["visible difference"] == f"{board['smallest_difference']['AA*']:.2f}"
    assert 50 < int(found["pairs that differ"].removesuffix(" %")) < 100
    assert cells(own.partition("| drawn |")[0] + "| shelf |" + own.partition("| shelf |")[2],
                 "shelf")["pairs that differ"] == "100 %"  # fmt: skip


def test_the_short_list_names_the_best_and_cvlcs_place(text):
    own = section(text, "In short")
    assert "- **drawn, 1 shot**: text-prototypes is best (" in own
    assert "4 of 10 methods have a higher mean than zero-shot" in own
    assert "cvlc is number 2 of 11" in own
    assert "joint, the ceiling, has " in own


def test_what_is_not_there_is_left_out(worlds):
    few = page(worlds[1:])
    assert "## Which parts" not in few
    assert "## Does the paper's order" not in few
    assert "− joint" not in few
    assert "zero-shot (" not in section(few, "In short")


def test_boards_without_their_records_are_refused(folder, tmp_path):
    (tmp_path / "records").mkdir()
    (tmp_path / "leaderboards.json").write_text((folder / "leaderboards.json").read_text())
    with pytest.raises(SystemExit, match="make boards"):
        read_worlds(tmp_path)


def test_pictures_are_drawn_for_every_world(worlds, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(pictures, "PICTURES", tmp_path)
    files = draw(worlds[0])
    assert {file.name for file in files} == {
        f"results-drawn-{kind}.svg" for kind in ("shots", "cost", "forgetting")
    }
    for file in files:
        assert ">cvlc<" in file.read_text(encoding="utf-8")
