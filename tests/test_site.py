"""The documentation site is built without a warning, is complete, and works without a network."""

from __future__ import annotations

import html
import re
import subprocess
import sys
from pathlib import Path

import doc_blocks as docs
import pytest

ROOT = docs.ROOT


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built as `make docs` does."""
    place = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(place)]
    result = subprocess.run(build, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    return place


def test_make_docs_builds_it_strictly():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "python -m mkdocs build --strict\n" in makefile


def test_every_page_is_on_the_site(site):
    pages = {page.removeprefix("docs/") for page in docs.PAGES if page.startswith("docs/")}
    built = {path.relative_to(site).as_posix() for path in site.rglob("*.html")}
    assert {page.replace(".md", ".html") for page in pages} <= built
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]
    lost = [page for page in pages if not re.search(rf": {re.escape(page)}$", navigation, re.M)]
    assert not lost, "put them into `nav` in mkdocs.yml"


def test_the_site_loads_nothing_from_elsewhere(site):
    """Links lead out, but no script, style, font or picture comes from another server."""
    outside = r"""["'(\s](?:https?:)?//"""
    for page in site.rglob("*.html"):
        for tag in re.findall(r"<(?:script|link|img|iframe)\b[^>]*>", page.read_text("utf-8")):
            assert not re.search(rf"(?:src|href)={outside}", tag), f"{page.name}: {tag}"
    for style in site.rglob("*.css"):
        assert not re.findall(rf"(?:url\(|@import\s){outside}?https?:", style.read_text("utf-8"))


def test_the_boards_are_on_the_site(site):
    index = text_of(site / "leaderboards" / "boards.html")
    assert "drawn-1shot" in index
    boards = [path.stem for path in (ROOT / "leaderboards").glob("drawn*.md")]
    assert boards
    for board in boards:
        assert "ranpac" in text_of(site / "leaderboards" / f"{board}.html")


def test_all_checks_are_listed(site):
    from fsdil_bench.checks import CHECKS

    page = text_of(site / "checking.html")
    for name, check in CHECKS.items():
        said = check.__doc__.splitlines()[0].replace("`", "")
        assert f"{name} {said}" in page


def test_the_reference_is_on_the_site(site):
    """tests/test_reference.py says what is in it."""
    for name in ("RouterMethod", "predict_in_domain", "drop_last"):
        assert name in text_of(site / "api.html")
    assert "exemplar_free" in text_of(site / "hooks.html")


def text_of(page: Path) -> str:
    """What a page says, without markup, blanks made one."""
    body = page.read_text(encoding="utf-8").partition("<article")[2].partition("</article>")[0]
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", body)).split())


def test_language_models_find_the_pages(site):
    """The links of llms.txt lead to pages of the site; the other file has the text of all."""
    told = (site / "llms.txt").read_text(encoding="utf-8")
    targets = re.findall(r"^- \[[^\]]+\]\(([^)]+)\)", told, re.MULTILINE)
    assert len(targets) > 30
    assert not [target for target in targets if not (site / target).is_file()]
    whole = (site / "llms-full.txt").read_text(encoding="utf-8")
    assert (ROOT / "docs/contracts.md").read_text(encoding="utf-8").strip() in whole
