"""What MkDocs does besides: pages from elsewhere in the repository, and tables from the code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
BOARDS = "leaderboards"


def on_files(files: Files, config: Any) -> Files:
    """Add the boards, which are generated beside their records."""
    for path in sorted((ROOT / BOARDS).iterdir()):
        if path.is_file():
            uri = f"{BOARDS}/{path.name}"
            files.append(File.generated(config, uri, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Fill in tables, and take care of links to files that are not part of the site."""
    if "<!-- checks -->" in markdown:
        markdown = markdown.replace("<!-- checks -->", checks_table())
    return re.sub(r"\[([^\]]*)\]\(\.\./([^)]*)\)", _link, markdown)


def checks_table() -> str:
    """The checks of `fsdil-bench check`, as it lists them."""
    from fsdil_bench.checks import CHECKS

    rows = [
        f"| `{name}` | {(check.__doc__ or '').splitlines()[0]} |" for name, check in CHECKS.items()
    ]
    return "\n".join(["| check | what it asks |", "|---|---|", *rows])


def _link(match: re.Match[str]) -> str:
    """Boards are on the site; other files are named, since they are only in the repository."""
    text, target = match.groups()
    return f"[{text}]({target})" if target.startswith(f"{BOARDS}/") else text
