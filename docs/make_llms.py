"""Write llms.txt: what language models are told of the documentation, made from its pages.

    python docs/make_llms.py

The form is that of llmstxt.org: a title, a summary, and sections of links with a line on each page.
The sections are those of `nav` in mkdocs.yml; a line is the beginning of a page and its headings.
`tests/test_llms.py` fails when the file is not what this script writes. The site has it too, beside
`llms-full.txt` with the text of all pages (`site_hooks.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
ROOT = DOCS.parent

ENOUGH = 220  # letters of a page's beginning
MOST_SECTIONS = 10

#: What stands in the nav and is made elsewhere: its file in the repository.
ELSEWHERE = {"leaderboards/boards.md": "leaderboards/README.md"}
#: Pages that are made from records, and change with every new one.
FROM_RECORDS = {
    "leaderboards/README.md": "The tables of all published runs, one for each scenario.",
    "docs/results.md": "What the published runs show, for a reader with five minutes.",
}

HEAD = """\
# fsdil-bench

> {summary}

fsdil-bench is a Python package and the command `fsdil-bench`. Methods, scenarios, backbones,
launchers and trackers are plugins. If you write code for it, begin with the contracts: they have a
complete example of each kind of plugin, and every example is run by a test.

- A plugin is a module with functions marked `@fsdil_bench.hookimpl`; `--plugin FILE.py` loads it.
- `fsdil-bench check METHOD --plugin FILE.py` says what is wrong with a method, and how to fix it.
- Every command that prints a table takes `--json`. `fsdil-bench COMMAND --help` shows all options.
- Everything needed is imported from `fsdil_bench` and `fsdil_bench.adapters`.
- `tiny-clip` and the scenarios `drawn`, `shelf` and `forged` need no GPU and no download.
"""

#: Files of the repository beside the pages: title, path, what is in it.
OPTIONAL = (
    ("Examples", "examples/README.md", "a notebook, and plugins as packages of their own"),
    ("Contributing", "CONTRIBUTING.md", "how to set up the repository, and its rules"),
    ("Changelog", "CHANGELOG.md", "what changed from version to version"),
)


def main() -> None:
    """Write the file."""
    (ROOT / "llms.txt").write_text(llms_text(), encoding="utf-8")


def llms_text(link: Any = None) -> str:
    """The content of llms.txt. `link` maps a file of the repository to its address, or to None if
    it has none there; without it addresses are paths in the repository."""
    link = link or (lambda path: path)
    settings = read_settings()
    parts = [HEAD.format(summary=f"{settings['site_description']}.").strip()]
    for title, pages in sections(settings["nav"]):
        found = [
            (name, link(path), FROM_RECORDS.get(path) or said(ROOT / path)) for name, path in pages
        ]
        lines = [f"- [{name}]({to}): {what}" for name, to, what in found if to]
        parts.append("\n".join([f"## {title}", "", *lines]))
    rest = [f"- [{name}]({link(path)}): {what}" for name, path, what in OPTIONAL if link(path)]
    if rest:
        parts.append("\n".join(["## Optional", "", *rest]))
    return "\n\n".join(parts) + "\n"


def full_text() -> str:
    """The text of all pages, one after the other."""
    parts = [HEAD.format(summary=f"{read_settings()['site_description']}.").strip()]
    for _, pages in sections(read_settings()["nav"]):
        for _, path in pages:
            text = (ROOT / path).read_text(encoding="utf-8").strip()
            parts.append(f"<!-- {path} -->\n\n{text}")
    return "\n\n".join(parts) + "\n"


def read_settings() -> dict[str, Any]:
    """What mkdocs.yml says."""
    import yaml

    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    settings: dict[str, Any] = yaml.safe_load(text)
    return settings


def sections(nav: list[Any]) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Titles with pages: name and path in the repository. Single pages come under "Docs"."""
    single: list[tuple[str, str]] = []
    several: list[tuple[str, list[tuple[str, str]]]] = []
    for item in nav:
        for title, value in item.items():
            if isinstance(value, str):
                single.append((title, path_of(value)))
            else:
                pages = [(name, path_of(page)) for each in value for name, page in each.items()]
                several.append((title, pages))
    yield from [("Docs", single), *several] if single else several


def path_of(page: str) -> str:
    """Where the page of the nav is in the repository."""
    return ELSEWHERE.get(page, f"docs/{page}")


def said(page: Path) -> str:
    """How a page begins, and its sections."""
    text = page.read_text(encoding="utf-8")
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"^(`{3,}|~{3,}).*?^\1\s*$", "", text, flags=re.DOTALL | re.MULTILINE)
    titles = [plain(title) for title in re.findall(r"^## (.*)$", text, re.MULTILINE)]
    listed = f" Sections: {'; '.join(titles[:MOST_SECTIONS])}." if len(titles) > 1 else ""
    return beginning(text, page) + listed


def beginning(text: str, page: Path) -> str:
    """The first sentences of the first paragraph: enough to say something, and no more."""
    for paragraph in re.split(r"\n\s*\n", text):
        words = plain(" ".join(paragraph.split()))
        if not re.match(r"[A-Z`]", words) or paragraph.lstrip().startswith("["):
            continue  # a heading, a list, a table, a list of links, the rest of a sentence
        kept = ""
        for sentence in re.split(r"(?<=[.?])\s+(?=[A-Z`(])", words):
            if kept and len(kept) + len(sentence) > ENOUGH:
                break
            kept = f"{kept} {sentence}".strip()
        return kept if kept.endswith((".", "?")) else f"{kept.rstrip(':')}."
    raise ValueError(f"{page} has no paragraph of text")


def plain(text: str) -> str:
    """Text without links, bold letters and escapes."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"\*\*([^*]+)\*\*", r"\1", text).replace("\\*", "*")


if __name__ == "__main__":
    main()
