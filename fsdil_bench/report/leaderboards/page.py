"""All boards as one HTML page that needs nothing else: no server, no other file, no network.
(Only where boards have thumbnails it shows the picture beside it.)

The files in `assets` are joined into one page. It contains the boards as data (`page_data`), which
its script turns into text nodes only. A content security policy names the script and the style by
their hashes, so that nothing else can run, whatever the records say.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from string import Template
from typing import Any

from fsdil_bench.analysis.boards import Sheet
from fsdil_bench.analysis.unfinished import Unfinished

from .page_data import page_data
from .paper_lines import PaperLine
from .thumbnails import Thumbnails

#: In the order in which they build on each other.
_SCRIPTS = (
    "elements", "data", "charts", "badges", "standing", "table", "routing", "details", "scatter",
    "flips", "compare", "main",
)  # fmt: skip


def page(
    sheets: Sequence[Sheet],
    stray: Sequence[Unfinished],
    paper_lines: Sequence[PaperLine],
    thumbnails: Mapping[str, Thumbnails],
    title: str = "",
) -> str:
    """The page's text; `thumbnails` are by the names of sheets."""
    content = page_data(sheets, stray, paper_lines, thumbnails)
    return _page(content, title=title, img_src="'self'" if thumbnails else "")[0]


def served_page(
    sheets: Sequence[Sheet],
    stray: Sequence[Unfinished],
    paper_lines: Sequence[PaperLine],
    script: str,
) -> tuple[str, str]:
    """The page with one more script, which may ask the server that the page comes from; and its
    content security policy."""
    return _page(page_data(sheets, stray, paper_lines, {}), script, connect_src="'self'")


def _page(
    content: Mapping[str, Any], *scripts: str, title: str = "", **sources: str
) -> tuple[str, str]:
    """A page and its policy. `sources` says from where more may come, such as `img_src`."""
    parts = [*(_asset(f"{name}.js") for name in _SCRIPTS), *scripts]
    script = '"use strict";\n(() => {\n' + "\n".join(parts) + "})();\n"
    style = _asset("page.css")
    more = (f" {name.replace('_', '-')} {where};" for name, where in sources.items() if where)
    policy = (
        f"default-src 'none'; script-src {_source(script)}; style-src {_source(style)};"
        + "".join(more)
        + " base-uri 'none'; form-action 'none'"
    )
    data = for_script(json.dumps(content, separators=(",", ":")))
    text = Template(_asset("page.html")).substitute(
        title=html.escape(title or "FSDIL leaderboards"),
        policy=policy,
        style=style,
        script=script,
        data=data,
    )
    return text, policy


def for_script(text: str) -> str:
    """JSON that may stand inside a script element: nothing in it can end the element."""
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _asset(name: str) -> str:
    return files(__package__).joinpath("assets", name).read_text(encoding="utf-8")


def _source(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
