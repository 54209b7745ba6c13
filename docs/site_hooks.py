"""What MkDocs does besides: pages from elsewhere in the repository, and links to them."""

from __future__ import annotations

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
    for path in sorted([*folder.iterdir(), *folder.glob("t*/*")]):  # thumbnails and tuning
        uri = site_uri(f"{BOARDS}{path.relative_to(folder).as_posix()}")
        if path.is_file() and uri:
            files.append(File.generated(config, uri, abs_src_path=str(path)))
    return files


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
    if path == f"{BOARDS}README.md":
        return f"{BOARDS}boards.md"  # as index.html it would hide the page of that name
    if path.startswith(BOARDS):
        return path
    return path.removeprefix(DOCS) if path.startswith(DOCS) else None
