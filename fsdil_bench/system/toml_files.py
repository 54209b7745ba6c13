"""Reading TOML files that users write."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from fsdil_bench.errors import RequestError


def read_toml(path: Path, remedy: str) -> dict[str, Any]:
    """The content of a TOML file; `remedy` tells a user whose file is not valid what to write."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RequestError(f"{path} cannot be read: {error.strerror}", "Check the path.") from None
    except UnicodeDecodeError:
        raise RequestError(f"{path} is not valid TOML: it is no text in UTF-8", remedy) from None
    except RecursionError:
        raise RequestError(f"{path} is not valid TOML: it is nested too deeply", remedy) from None
    except ValueError as error:  # also a number of thousands of digits
        raise RequestError(f"{path} is not valid TOML: {error}", remedy) from None
