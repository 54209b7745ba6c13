"""What MkDocs does besides: pages from elsewhere in the repository, links to them, llms.txt."""

from __future__ import annotations

import importlib.util
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
DOCS, BOARDS = "docs/", "leaderboards/"


def on_files(files: Files, config: Any) -> Files:
    """Add the boards, which are generated beside their records, and how options were chosen."""
    folder = ROOT / BOARDS
    others = [
        each
        for part in ("thumbnails", "tuning", "real-images")
        for each in folder.glob(f"{part}/*")
    ]
    for path in sorted([*folder.iterdir(), *others]):
        uri = site_uri(f"{BOARDS}{path.relative_to(folder).as_posix()}")
        if path.is_file() and uri:
            files.append(File.generated(config, uri, abs_src_path=str(path)))
    llms = _make_llms()
    files.append(File.generated(config, "llms.txt", content=llms.llms_text(link=page_of)))
    files.append(File.generated(config, "llms-full.txt", content=llms.full_text()))
    return files


def _make_llms() -> Any:
    """The module `make_llms.py` beside this file: `docs` is no package."""
    spec = importlib.util.spec_from_file_location("make_llms", ROOT / DOCS / "make_llms.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def page_of(path: str) -> str | None:
    """The page on the site that a file of the repository becomes; None if it is not there."""
    uri = site_uri(path)
    return None if uri is None else uri.removesuffix(".md") + ".html"


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Point links to files of the repository to where they are on the site."""
    here = posixpath.dirname(page.file.src_uri)
    origin = here if page.file.src_uri.startswith(BOARDS) else f"{DOCS}{here}"

    def link(match: re.Match[str]) -> str:
        text, target, anchor = match.groups()
        uri = site_uri(posixpath.normpath(posixpath.join(origin, target)))
        # Files that are only in the repository are named and not linked.
        return f"[{text}]({posixpath.relpath(uri, here or '.')}{anchor or ''})" if uri else text

    return re.sub(r"\[([^\]]*)\]\((\.\./[^)#\s]*|README\.md)(#[^)\s]*)?\)", link, markdown)


def site_uri(path: str) -> str | None:
    """Where a file of the repository is on the site, if it is."""
    if path.startswith(BOARDS) and path.endswith("/README.md"):
        # As index.html it would hide the page of that name.
        return path.replace("README.md", "boards.md")
    if path.startswith(BOARDS):
        return path
    return path.removeprefix(DOCS) if path.startswith(DOCS) else None
