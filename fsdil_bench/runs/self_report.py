"""What a method says of itself after a domain: trained parameters and diagnostics.

Neither decides a result, so neither may cost one: what a plugin raises here, or returns that JSON
has no word for, becomes a warning in the record.
"""

from __future__ import annotations

import json
import math
import numbers
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch

from fsdil_bench.plugins.method import Method

_MOST = 1 << 20  # characters of diagnostics per domain; usual ones have some hundred


class SelfReport(NamedTuple):
    """What was said, as JSON types, and what was wrong with it."""

    trained_parameters: int
    diagnostics: dict[str, Any]
    warnings: list[str]


def self_report(method: Method) -> SelfReport:
    """Ask the method; nothing that it answers or raises ends the run."""
    warnings: list[str] = []
    trained, diagnostics = 0, dict[str, Any]()
    try:
        trained = int(method.trained_parameters())
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        warnings.append(f"trained_parameters() failed, 0 stands for it: {_said(error)}")
    try:
        found = method.diagnostics()
        if not isinstance(found, Mapping):
            raise TypeError(f"it gave {type(found).__name__}, not a dict")
        diagnostics = _plain(found, "diagnostics()", warnings)
        if len(json.dumps(diagnostics)) > _MOST:
            raise ValueError(f"it gave more than {_MOST >> 20} MB")
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        diagnostics = {}
        warnings.append(f"diagnostics() failed and is left out: {_said(error)}")
    return SelfReport(trained, diagnostics, warnings)


def _plain(value: Any, place: str, warnings: list[str]) -> Any:
    """The value as JSON types; what JSON has no word for becomes text, with a warning."""
    if isinstance(value, torch.Tensor | np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): _plain(each, f"{place}.{key}", warnings) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each, f"{place}[{i}]", warnings) for i, each in enumerate(value)]
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real) and math.isfinite(value):
        return float(value)
    warnings.append(f"{place} is {value!r:.80}, which stands as text in the record")
    return str(value)


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:300]
