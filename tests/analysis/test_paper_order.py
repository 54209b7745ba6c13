"""The order of methods here and in the paper: which are compared, and how."""

from __future__ import annotations

from fsdil_bench.analysis.paper import reported
from fsdil_bench.analysis.paper.order import order_agreement

NAMES = ["lwf", "ewc", "l2p", "dualprompt", "s-prompts", "coda-prompt", "cp-prompt", "cvlc"]


def as_reported(dataset, shots, metric="AA*"):
    return {name: reported(dataset, shots, name, metric).mean for name in NAMES}


def test_the_papers_own_numbers_agree_in_full():
    for dataset in ("domainnet", "core50", "cddb-hard"):
        names, found = order_agreement(as_reported(dataset, 4), dataset, 4)
        assert names == NAMES
        assert (found.tau, found.number) == (1, 8)
        turned = {name: -mean for name, mean in as_reported(dataset, 4).items()}
        assert order_agreement(turned, dataset, 4)[1].tau == -1


def test_it_is_the_table_with_the_same_shots_and_score():
    scores = as_reported("cddb-hard", 1)
    assert order_agreement(scores, "cddb-hard", 1)[1].tau == 1
    assert order_agreement(scores, "cddb-hard", 8)[1].tau < 1
    assert order_agreement(as_reported("cddb-hard", 8, "FA*"), "cddb-hard", 8, "FA*")[1].tau == 1


def test_methods_that_the_paper_has_not_are_left_out():
    extra = {"ranpac": 99.0, "dytox": 99.0, "cvlc-lora": 99.0, "pgo-like": 99.0}
    names, found = order_agreement(as_reported("core50", 1) | extra, "core50", 1)
    assert names == NAMES  # DyTox has another backbone there, and cvlc-lora another table
    assert found.tau == 1


def test_few_methods_have_no_order():
    few = {name: as_reported("core50", 1)[name] for name in NAMES[:4]}
    assert order_agreement(few, "core50", 1) == (NAMES[:4], None)
    assert order_agreement(as_reported("core50", 1), "core50", 3) == ([], None)
