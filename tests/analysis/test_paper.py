"""The paper's numbers, and the verdicts on measured ones."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from math import sqrt
from types import SimpleNamespace

import pytest
from fsdil_scenarios.published import cddb_hard, domainnet
from fsdil_scenarios.published.descriptors import BACKBONE

from fsdil_bench.analysis import paper
from fsdil_bench.analysis.boards import make_sheets
from fsdil_bench.analysis.grouping import rows_of_all_boards
from fsdil_bench.analysis.paper.names import (
    LEAD,
    NAMES,
    ONLY_BY_AUTHORS,
    our_name,
    runnable_name,
    usual_name,
)
from fsdil_bench.analysis.paper.reproduction import reproductions
from fsdil_bench.analysis.paper.setting import SETTINGS
from fsdil_bench.plugins.registry import load_registry
from fsdil_bench.report.leaderboards.paper_lines import make_paper_lines

CELLS = [cell for table in paper.tables() for cell in table.cells]


def test_no_number_is_missing():
    methods = [cell for cell in CELLS if cell.label != LEAD]
    assert {table.name: len(table.cells) for table in paper.tables()} == {
        "cddb-hard": 96,
        "core50": 96,
        "domainnet": 96,
        "ablations": 48,
        "five-shot": 28,
    }
    assert (len(CELLS), len(methods)) == (364, 336)
    assert sum(cell.mean is not None for cell in methods) == 334
    assert sum(cell.std is not None for cell in methods) == 314
    assert set(
        Counter((c.table, c.dataset, c.shots, c.label, c.metric) for c in CELLS).values()
    ) == {1}


@pytest.mark.parametrize(
    ("dataset", "shots", "method", "metric", "mean", "std"),
    [
        ("cddb-hard", 1, "dytox", "AA*", 58.79, 0.48),
        ("cddb-hard", 2, "cvlc", "FA*", 82.36, 2.71),
        ("cddb-hard", 8, "pgo-ben", "AA*", 84.22, 0.21),
        ("core50", 1, "cvlc", "AA*", 95.74, 0.13),
        ("core50", 4, "l2p", "FA*", 77.98, 1.33),
        ("core50", 8, "avalanche-lwf", "AA*", 67.62, 0.91),
        ("core50", 2, "cvlc-prompt", "FA*", 92.59, 0.23),
        ("domainnet", 4, "dytox", "AA*", 35.59, 1.10),
        ("domainnet", 1, "s-prompts", "AA*", 62.28, 0.32),
        ("domainnet", 8, "inflora", "FA*", 58.93, 0.65),
        ("core50", 5, "cvlc", "Last", 96.04, 0.23),
        ("domainnet", 5, "fshil", "Avg", 52.92, None),
    ],
)
def test_numbers_by_our_names(dataset, shots, method, metric, mean, std):
    found = paper.reported(dataset, shots, method, metric)
    assert (found.mean, found.std) == (mean, std)


def test_what_the_paper_does_not_report_is_none():
    assert paper.reported("domainnet", 8, "cp-prompt", "AA*") is None  # a dash
    assert paper.reported("core50", 3, "cvlc", "AA*") is None
    assert paper.reported("drawn", 1, "cvlc", "AA*") is None
    assert paper.reported("core50", 1, "ncm", "AA*") is None
    assert paper.reported("core50", 1, "cvlc", "Last") is None
    assert paper.reported("core50", 1, "", "AA*") is None  # the row of differences


def test_printed_leads_follow_from_the_printed_numbers():
    """Wrong digits would show here; one lead is misprinted in the paper itself."""
    wrong = []
    for lead in (cell for cell in CELLS if cell.label == LEAD):
        place = (lead.table, lead.dataset, lead.shots, lead.metric)
        rows = {
            cell.label: cell.mean
            for cell in CELLS
            if (cell.table, cell.dataset, cell.shots, cell.metric) == place
            and cell.label != LEAD
            and cell.mean is not None
        }
        own = rows.pop("CVLC")
        if abs(own - max(rows.values()) - lead.mean) > 0.005:
            wrong.append(place)
    assert wrong == [("five-shot", "core50", 5, "Avg")]


def test_the_ablations_repeat_the_main_table():
    main = {
        (c.shots, c.metric): (c.mean, c.std)
        for c in CELLS
        if c.table == "core50" and c.method == "cvlc"
    }
    again = {
        (c.shots, c.metric): (c.mean, c.std)
        for c in CELLS
        if c.table == "ablations" and c.method == "cvlc"
    }
    assert main == again
    assert paper.reported("core50", 1, "cvlc", "AA*").table == "core50"


def test_our_names_are_unique_and_the_registered_ones_exist():
    ours = [name for names in NAMES.values() for name in names]
    assert len(set(ours)) == len(ours)
    registered = set(load_registry().methods)
    ablations = {name for name in ours if name.startswith("cvlc")}
    assert len(ablations) == 6
    assert ablations <= registered


def test_every_method_of_the_paper_is_here_or_can_be_run_by_its_authors_alone():
    labels = {cell.label for cell in CELLS} - {LEAD}
    compared = {label for label in labels if not label.startswith("CVLC")}
    assert len(compared) == 15
    registered = load_registry().methods
    for label in labels:
        if name := runnable_name(label):
            assert name in registered, label
        else:
            answer = ONLY_BY_AUTHORS[label]
            assert answer.why
            # What is near is never taken for the original.
            assert answer.nearest in registered
            assert usual_name(answer.nearest) == answer.nearest
            assert our_name(label) not in registered
    assert set(ONLY_BY_AUTHORS) == {"PGO-BEn", "FSHIL"}


def test_tables_say_what_to_run(call):
    _, out, _ = call("paper", "--table", "cddb-hard", "--metric", "AA*", "--markdown")
    rows = {line.split("|")[1].strip(): line.split("|")[2].strip() for line in out.splitlines()
            if line.startswith("|")}  # fmt: skip
    assert rows["DyTox"] == "dytox"
    assert rows["S-Prompt"] == "s-prompts"
    assert rows["PGO-BEn"] == "–"
    assert "PGO-BEn: nobody but its authors can run it" in out
    assert "FSHIL" not in out  # not in this table
    _, out, _ = call("paper", "--table", "five-shot", "--markdown")
    assert "FSHIL: nobody but its authors" in out
    assert "fshil-lite" in out


def test_the_settings_are_those_of_the_scenarios():
    assert SETTINGS["cddb-hard"].order == tuple(cddb_hard.TRAINING)
    assert SETTINGS["domainnet"].order == domainnet.DOMAINS
    infos = {name: load_registry().scenario(name) for name in SETTINGS}
    for name, setting in SETTINGS.items():
        assert sorted(setting.order) == sorted(infos[name].domains)
        assert setting.classes == infos[name].classes
    assert paper.setting.BACKBONE == BACKBONE


# --- verdicts ---


def test_the_interval_of_the_difference():
    number = paper.reported("core50", 1, "cvlc", "AA*")  # 95.74 ± 0.13 over three seeds
    theirs = 4.302652729911275 * 0.13 * sqrt(3 / 2) / sqrt(3) + 0.005
    margin = sqrt(theirs**2 + 0.3**2)
    inside = paper.verdict(number, 95.74 - margin + 0.001, 95.0, 95.74 - margin + 0.301)
    outside = paper.verdict(number, 95.74 - margin - 0.001, 95.0, 95.74 - margin + 0.299)
    assert inside.case == paper.Case.REPRODUCED
    assert outside.case == paper.Case.NOT_REPRODUCED
    assert inside.margin == pytest.approx(margin, abs=1e-4)
    assert outside.difference == pytest.approx(-margin - 0.001)
    assert "lower" in outside.reason


def test_a_result_well_above_the_paper_is_no_reproduction():
    number = paper.reported("core50", 1, "dualprompt", "AA*")
    found = paper.verdict(number, 90.0, 89.0, 91.0)
    assert found.case == paper.Case.NOT_REPRODUCED
    assert "higher" in found.reason


def test_five_seeds_and_no_deviation():
    five = paper.reported("cddb-hard", 1, "cvlc", "AA*")  # 87.32 ± 0.82
    margin = 2.7764451051977987 * 0.82 / 2 + 0.005
    assert paper.verdict(five, 87.32, 87.32, 87.32).margin == pytest.approx(margin, abs=1e-4)
    bare = paper.reported("core50", 5, "asp", "Avg")
    assert paper.verdict(bare, bare.mean, bare.mean, bare.mean).margin == pytest.approx(0.005)


def test_the_other_cases():
    number = paper.reported("core50", 1, "cvlc", "AA*")
    assert paper.verdict(number, None).case == paper.Case.NOT_RUN
    other = paper.verdict(number, 95.74, 95.0, 96.0, why_not=["backbone tiny-clip"])
    assert str(other) == "not comparable: backbone tiny-clip"
    assert paper.verdict(number, 95.74).case == paper.Case.NOT_COMPARABLE  # no interval


# --- what differs ---


def a_record(**changes):
    """A run in the paper's setting for `cddb-hard-1shot`, with changes by their place."""
    spec = {
        "scenario": "cddb-hard-1shot",
        "backbone": BACKBONE,
        "precision": "fp32",
        "order": list(cddb_hard.TRAINING),
        "base_limit": None,
        "config": {"mode": "authors", "lr": 0.1},
    }
    scenario = {
        "transform": {"preset": "cddb"},
        "classes": ["real image", "fake image"],
        "domains": [{"test": n} for n in (2000, 800, 2063, 400, 90)],
    }
    method = {"exemplar_free": True}
    for place in (spec, scenario, method):
        place.update({key: value for key, value in changes.items() if key in place})
    scenario |= {k: v for k, v in changes.items() if k == "smaller_than_published"}
    return SimpleNamespace(spec=spec, scenario=scenario, method=method)


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"scenario": "cddb-hard-1shot@balanced"}, "@balanced"),
        ({"scenario": "cddb-hard-2shot"}, "2 shots"),
        ({"backbone": "tiny-clip"}, "tiny-clip"),
        ({"precision": "bf16"}, "bf16"),
        ({"transform": {"preset": "clip"}}, "transform clip"),
        ({"order": ["gaugan", "wild"]}, "gaugan,wild"),
        ({"base_limit": 20}, "20 base images"),
        ({"classes": ["a", "b", "c"]}, "3 of 2 classes"),
        ({"domains": [{"test": 1}] * 5}, "5 of 5353 test images"),
        ({"smaller_than_published": {"san/0_real": "1 of 130"}}, "missing"),
        ({"exemplar_free": False}, "old images"),
    ],
)
def test_every_difference_is_named(changes, word):
    number = paper.reported("cddb-hard", 1, "cvlc", "AA*")
    assert paper.what_differs(a_record(), number) == []
    assert paper.what_differs(a_record(precision="tf32"), number) == []
    (found,) = paper.what_differs(a_record(**changes), number)
    assert word in found


def test_options_and_other_backbones_of_the_paper():
    number = paper.reported("cddb-hard", 1, "cvlc", "AA*")
    usual = {"mode": "paper", "lr": 0.001}
    assert paper.what_differs(a_record(), number, usual) == ["option lr=0.1"]
    (found,) = paper.what_differs(a_record(), paper.reported("cddb-hard", 1, "dytox", "AA*"))
    assert "ViT" in found


# --- beside measured ones ---


def as_in_the_paper(record, **changes):
    """A toy run that passes for one of CVLC in the paper's setting on CORe50."""
    setting = SETTINGS["core50"]
    spec = {
        "scenario": "core50-1shot",
        "method": "cvlc",
        "backbone": BACKBONE,
        "order": list(setting.order),
        "config": {},
    }
    scenario = {"transform": {"preset": "core50"}, "classes": [str(i) for i in range(50)]}
    return replace(record, spec=record.spec | spec | changes, scenario=record.scenario | scenario)


@pytest.fixture
def measured(toy_run):
    return [toy_run(seed=seed) for seed in range(3)]


def reproduced(records):
    return reproductions(rows_of_all_boards(records))


def only(found, metric):
    (cell,) = [
        each
        for each in found
        if each.seeds and each.reported.table == "core50" and each.reported.metric == metric
    ]
    return cell


def test_measured_numbers_beside_the_papers(measured):
    runs = [as_in_the_paper(record) for record in measured]
    found = reproduced(runs)
    cell = only(found, "AA*")
    mean = sum(record.metrics["AA*"] for record in measured) / 3
    assert (cell.reported.method, cell.reported.shots, cell.seeds) == ("cvlc", 1, 3)
    assert cell.mean == pytest.approx(mean)
    assert cell.low < mean < cell.high or cell.low == cell.high == mean
    assert cell.verdict.difference == pytest.approx(mean - 95.74)
    assert cell.verdict.case in (paper.Case.REPRODUCED, paper.Case.NOT_REPRODUCED)
    tables = [each.reported.table for each in found if each.seeds]
    assert sorted(tables) == ["ablations", "ablations", "core50", "core50"]
    assert sum(each.verdict.case == paper.Case.NOT_RUN for each in found) == 336 - 4


def test_one_seed_and_other_settings_are_not_comparable(measured):
    single = only(reproduced([as_in_the_paper(measured[0])]), "FA*")
    assert single.verdict.case == paper.Case.NOT_COMPARABLE
    other = only(reproduced([as_in_the_paper(r, precision="bf16") for r in measured]), "AA*")
    assert str(other.verdict) == "not comparable: precision bf16"
    mixed = [as_in_the_paper(r) for r in measured[:2]]
    mixed.append(as_in_the_paper(measured[2], precision="bf16"))
    both = [e for e in reproduced(mixed) if e.seeds and e.reported.table == "core50"]
    assert sorted(each.seeds for each in both) == [1, 1, 2, 2]  # AA* and FA* of two rows


def test_options_that_were_set_are_found(measured):
    from fsdil_methods.cvlc.method import CVLC

    from fsdil_bench.plugins.options import as_dict, resolve

    config = as_dict(resolve(CVLC.Config, CVLC.presets["core50"], owner="cvlc", see=""))
    for change, expected in (({}, ""), ({"mode": "authors"}, ""), ({"epochs": 1}, "epochs=1")):
        runs = [as_in_the_paper(record, config=config | change) for record in measured]
        verdict = only(reproduced(runs), "AA*").verdict
        assert (verdict.case == paper.Case.NOT_COMPARABLE) == bool(expected)
        assert expected in verdict.reason


def test_boards_and_the_command_say_the_same(measured):
    """What was set is in a record's spec; the command that was typed may show less or more."""
    from fsdil_methods.cvlc.method import CVLC

    from fsdil_bench.plugins.options import as_dict, resolve

    config = as_dict(resolve(CVLC.Config, CVLC.presets["core50"], owner="cvlc", see=""))
    start = "fsdil-bench run --method cvlc --scenario core50-1shot"
    for change, command, expected in (
        ({"epochs": 1}, f"{start} --config mine.toml", "option epochs=1"),
        ({"epochs": 1}, "python my_script.py", "option epochs=1"),
        ({}, f"{start} --set epochs={config['epochs']}", ""),
    ):
        runs = [
            replace(
                as_in_the_paper(record, config=config | change),
                provenance=record.provenance | {"command": command},
            )
            for record in measured
        ]
        (row,) = [
            each
            for each in make_paper_lines(make_sheets(runs))
            if each.measured is not None and each.metric == "AA*"
        ]
        assert row.verdict == only(reproduced(runs), "AA*").verdict
        assert row.verdict.reason == expected or not expected
        assert (row.verdict.case == paper.Case.NOT_COMPARABLE) == bool(expected)


def test_options_of_a_method_that_is_not_here_cannot_be_checked(measured):
    runs = [as_in_the_paper(record, method="pgo-ben") for record in measured]
    found = [each for each in reproduced(runs) if each.seeds]
    assert found
    assert all("pgo-ben is not installed here" in each.verdict.reason for each in found)


def test_the_tables_are_printed(call):
    code, out, _ = call("paper")
    assert code == 0
    for text in ("95.74 ± 0.13", "PGO-BEn", "s-prompts", "five shots", "CVLC - best other"):
        assert text in out
    _, out, _ = call("paper", "--table", "core50", "--metric", "FA*", "--markdown")
    assert "| CVLC              | cvlc" in out
    assert "94.35 ± 0.07" in out
    assert "AA*" not in out.partition("###")[2]
    _, out, _ = call("paper", "--json")
    assert len(json.loads(out)) == 364
    _, out, _ = call("paper", "--dataset", "domainnet", "--metric", "Last", "--json")
    assert {(cell["table"], cell["metric"]) for cell in json.loads(out)} == {("five-shot", "Last")}


def test_wrong_requests_are_explained(call):
    for arguments, word in (
        (("--table", "cifar"), "ablations"),
        (("--dataset", "drawn"), "cddb-hard"),
        (("--table", "core50", "--metric", "Last"), "no such numbers"),
    ):
        code, _, err = call("paper", *arguments)
        assert code == 2
        assert word in err


def test_runs_beside_the_tables(call, measured, made, tmp_path):
    code, out, _ = call("paper", tmp_path / "runs")
    assert code == 0
    assert "336 not run" in out
    assert "3 of 3 runs are on data sets that the paper does not use" in out
    for seed in range(3):
        record = as_in_the_paper(made.make_record(tmp_path / "runs", seed=seed, domains=8))
        for domain, name in zip(record.scenario["domains"], record.spec["order"], strict=True):
            domain["name"] = name
        (record.folder / "record.json").write_text(record.hashed().to_json())
    code, out, _ = call("paper", tmp_path / "runs", "--table", "core50")
    assert code == 0
    assert "95.74 ± 0.13" in out
    assert "86 not run" in out
    _, out, _ = call("paper", tmp_path / "runs", "--json")
    cells = [cell for cell in json.loads(out) if cell["measured"]["seeds"]]
    assert {cell["reported"]["metric"] for cell in cells} == {"AA*", "FA*"}
