"""All boards as one HTML page that needs nothing else: no server, no other file, no network.
(Only where boards have thumbnails it shows the picture beside it.)

The files in `assets` are joined into one page. It contains the boards as data (`page_data`), which
its script turns into text nodes only. A content security policy names the script and the style by
their hashes, so that nothing else can run, whatever the records say.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from string import Template

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
) -> str:
    """The page's text; `thumbnails` are by the names of sheets."""
    parts = [_asset(f"{name}.js") for name in _SCRIPTS]
    script = '"use strict";\n(() => {\n' + "\n".join(parts) + "})();\n"
    style = _asset("page.css")
    policy = (
        f"default-src 'none'; script-src {_source(script)}; style-src {_source(style)};"
        + (" img-src 'self';" if thumbnails else "")
        + " base-uri 'none'; form-action 'none'"
    )
    content = page_data(sheets, stray, paper_lines, thumbnails)
    data = for_script(json.dumps(content, separators=(",", ":")))
    return Template(_asset("page.html")).substitute(
        policy=policy, style=style, script=script, data=data
    )


def for_script(text: str) -> str:
    """JSON that may stand inside a script element: nothing in it can end the element."""
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _asset(name: str) -> str:
    return files(__package__).joinpath("assets", name).read_text(encoding="utf-8")


def _source(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
