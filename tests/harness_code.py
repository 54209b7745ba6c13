"""The code of the harness that decides results, and the protocol it belongs to.

    python tests/harness_code.py                  after PROTOCOL was raised
    python tests/harness_code.py --same-results   after a change that leaves every result as it was

writes `harness_code.json`, which `test_harness_code.py` compares with the code.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

from fsdil_bench.plugins.code_hash import essence
from fsdil_bench.records.identity import PROTOCOL

HARNESS = Path(__file__).parent.parent / "fsdil_bench"
KNOWN = Path(__file__).with_suffix(".json")

#: What can change a prediction or a score and is in no other part of a run's id.
DECIDES = (
    "adapters", "avalanche/memory.py", "avalanche/methods.py", "models/backbone.py",
    "models/batches.py", "models/frozen_embeddings.py",
    "data/content_keys.py", "models/cpu_products.py", "models/device.py",
    "data/image_files.py", "records/metrics.py",
    "runs/pictures.py", "runs/decoded_pictures.py", "runs/picture_memory.py", "runs/features.py",
    "runs/loop.py", "runs/evaluation.py", "runs/executor.py",
    "runs/plugin_calls.py", "runs/routed.py",
    "data/augmentation.py", "data/scenario.py", "seeds.py", "data/shots.py", "data/streams.py",
    "data/transforms.py", "data/validation.py", "runs/views.py",
)  # fmt: skip


def hashes() -> dict[str, str]:
    """The hash of every file that decides results, comments and docstrings left out."""
    found = {}
    for name in DECIDES:
        place = HARNESS / name
        for file in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            text = essence(file.read_text(encoding="utf-8"))
            found[file.relative_to(HARNESS).as_posix()] = hashlib.sha256(text.encode()).hexdigest()
    return found


def complaint() -> str:
    """What is wrong with the code and the protocol that are known; empty if nothing is."""
    known = json.loads(KNOWN.read_text(encoding="utf-8"))
    now = hashes()
    changed = sorted(n for n in now.keys() | known["code"] if now.get(n) != known["code"].get(n))
    if not changed:
        return "" if known["protocol"] == PROTOCOL else f"{KNOWN.name} is of another protocol"
    if known["protocol"] == PROTOCOL:
        return f"changed without a raised PROTOCOL: {', '.join(changed)}"
    return f"PROTOCOL was raised; run `python tests/{Path(__file__).name}`"


def main() -> None:
    """Write the hashes again; without a raised PROTOCOL only if results are the same."""
    known = json.loads(KNOWN.read_text(encoding="utf-8")) if KNOWN.exists() else {"protocol": 0}
    if known["protocol"] == PROTOCOL and "--same-results" not in sys.argv:
        sys.exit(f"{complaint() or 'nothing changed'}\nRaise it in records/identity.py, or say "
                 "--same-results if no prediction can change.")  # fmt: skip
    text = json.dumps({"protocol": PROTOCOL, "code": hashes()}, indent=1)
    KNOWN.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
