"""Where a result comes from: versions, commit, machine, time."""

from __future__ import annotations

import datetime
import platform
import subprocess
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from fsdil_bench.records.redaction import without_paths

_PACKAGES = ("fsdil-bench", "torch", "torchvision", "open_clip_torch", "numpy", "pillow")


def provenance(device: Any, plugins: dict[str, str]) -> dict[str, Any]:
    """Everything known about the place of a run; `plugins` maps distributions to versions.

    Records are made to be shared, so paths are cut down to their last part.
    """
    import torch

    from fsdil_bench.models.cpu_products import onednn_is_better

    gpu = torch.cuda.get_device_name(device) if device.type == "cuda" else ""
    return {
        "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in _PACKAGES},
        "plugins": without_paths(plugins),
        "commit": _commit(),
        "platform": platform.platform(),
        "processor": _processor(),
        "device": str(device),
        "gpu": gpu,
        "threads": torch.get_num_threads(),
        "products": "oneDNN" if onednn_is_better() else "torch's choice",
        "command": without_paths(" ".join([Path(sys.argv[0]).name, *sys.argv[1:]])),
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


@cache
def _commit() -> dict[str, Any]:
    """The commit of this package's own source tree, if it is one; never of the working folder."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return {}

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(root), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    try:
        return {"sha": git("rev-parse", "HEAD"), "dirty": bool(git("status", "--porcelain"))}
    except (OSError, subprocess.CalledProcessError):
        return {}


@cache
def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor()
