"""Write the small file of published boards that the package carries.

    python -m fsdil_bench.report.leaderboards.publish leaderboards/leaderboards.json

`fsdil_bench.analysis.published` reads it, to say where a run stands.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fsdil_bench.analysis.published import FILE
from fsdil_bench.system.atomic_files import write_atomically


def main() -> None:
    """Write the file from the `leaderboards.json` that is named."""
    boards = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    write_atomically(FILE, published_json(boards))


def published_json(values: Mapping[str, Any]) -> str:
    """What the package carries of the content of a `leaderboards.json`, with a line for each row.

    Rows without a result and rows for development only are left out: no run is compared with them.
    """
    boards = []
    for board in values["boards"]:
        kept = [row for row in board["rows"] if row["seeds"] and not row["for_development"]]
        lines = ",\n".join(json.dumps(_small(row)) for row in kept)
        boards.append(f"{json.dumps(board['name'])}: [\n{lines}\n]")
    return '{"boards": {\n' + ",\n".join(boards) + "\n}}\n"


def _small(row: Mapping[str, Any]) -> dict[str, Any]:
    same = {name: row[name] for name in ("method", "label", "sealed", "exemplar_free")}
    return same | {"mean": round(row["scores"]["AA*"]["mean"], 2), "seeds": len(row["seeds"])}


if __name__ == "__main__":
    main()
