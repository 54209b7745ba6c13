"""llms.txt is what the pages say, in the form of llmstxt.org."""

from __future__ import annotations

import re
import runpy

import doc_blocks as docs
import yaml

SCRIPT = runpy.run_path(str(docs.ROOT / "docs/make_llms.py"))
TEXT = (docs.ROOT / "llms.txt").read_text(encoding="utf-8")
LINKS = re.findall(r"^- \[([^\]]+)\]\(([^)]+)\): (.+)$", TEXT, re.MULTILINE)


def test_it_is_current():
    assert SCRIPT["llms_text"]() == TEXT, "run: python docs/make_llms.py"


def test_it_has_the_form():
    """A title, a summary as a quote, text without headings, sections that are lists of links."""
    lines = TEXT.splitlines()
    assert lines[0] == "# fsdil-bench"
    assert lines[2].startswith("> A benchmark for few-shot domain-incremental learning")
    before, *sections = re.split(r"^## .+$", TEXT, flags=re.MULTILINE)
    assert before.count("\n#") == 0
    assert len(sections) >= 5
    for section in sections:
        assert all(line.startswith("- [") for line in section.split("\n") if line)
    assert TEXT.rpartition("\n## ")[2].startswith("Optional\n")


def test_every_page_of_the_site_is_there_and_links_lead_somewhere():
    told = {path for _, path, _ in LINKS}
    assert {page for page in docs.PAGES if page.startswith("docs/")} <= told
    assert not [path for path in told if not (docs.ROOT / path).exists()]
    titles = yaml.safe_dump(SCRIPT["read_settings"]()["nav"])
    assert all(name in titles for name, path, _ in LINKS if path.startswith("docs/"))


def test_every_line_says_something_in_plain_words():
    for name, _, what in LINKS:
        assert 20 < len(what) < 700, name
        assert not re.search(r"\]\(|<!--|\*\*", what), name


def test_a_page_is_told_by_its_beginning(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# Title\n\n<!-- made -->\n\n```console\nrun\n```\n\nand the rest of a sentence.\n\n"
        "**Bold** and a [link](x.md) in AA\\*. A second sentence.\n" + "Long. " * 80 + "\n\n"
        "## One\n\n## `two`\n"
    )
    said = SCRIPT["said"](page)
    assert said.startswith("Bold and a link in AA*. A second sentence. Long.")
    assert said.endswith(" Sections: One; `two`.")
    assert len(said) < 300


def test_all_of_it_in_one_text():
    whole = SCRIPT["full_text"]()
    for page in docs.PAGES:
        if page.startswith("docs/"):
            assert (docs.ROOT / page).read_text(encoding="utf-8").strip() in whole
