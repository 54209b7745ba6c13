"""Choosing one option of a method, such as its learning rate, before the stream begins.

Every candidate is a run on the variant `@validation` of a scenario (`fsdil_bench.data.validation`),
which knows neither test images nor later domains. Scores there are uncertain, because they come
from few images n: by about e = sqrt(a (1 - a) / n) for an AA* of a. So of all candidates within e
of the best, the nearest to the method's default is chosen (the one-standard-error rule): the
default stays, unless another value is clearly better.

Without given values, the candidates are the default times `FACTORS`: as many tries for one method
as for another.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from fsdil_bench.errors import FsdilError, RequestError, unknown
from fsdil_bench.plugins.descriptors import VALIDATION
from fsdil_bench.plugins.options import as_dict, resolve
from fsdil_bench.plugins.registry import Registry
from fsdil_bench.progress import Progress
from fsdil_bench.system.atomic_files import write_atomically

from .job import load_method_class, method_settings, prepare
from .request import RunRequest
from .runner import run_job

FACTORS = (0.3, 1.0, 3.0, 10.0, 30.0)

#: The least and the largest value that an option takes; None is no limit.
Limits = tuple[float | None, float | None]


@dataclass(frozen=True)
class Choice:
    """The values that were tried, with their scores.

    `scores` are AA* in per cent on `images` validation images.
    """

    method: str
    option: str
    scenario: str
    seeds: tuple[int, ...]
    images: int
    default: Any
    values: tuple[Any, ...]
    scores: tuple[float, ...]
    limits: Limits = (None, None)

    @property
    def error(self) -> float:
        """The standard error of the best score."""
        best = max(self.scores) / 100
        return 100 * math.sqrt(best * (1 - best) / self.images)

    @property
    def chosen(self) -> Any:
        """Of the values that are as good as the best, the nearest to the default."""
        least = max(self.scores) - self.error
        ranked = [
            (_distance(value, self.default), -score, i)
            for i, (value, score) in enumerate(zip(self.values, self.scores, strict=True))
            if score >= least
        ]
        return self.values[min(ranked)[-1]]

    @property
    def at_edge(self) -> bool:
        """Whether a value outside the candidates, but within the option's limits, might have been
        better still."""
        numbers = sorted(value for value in self.values if _is_number(value))
        edges = {numbers[0], numbers[-1]} if len(numbers) > 1 else set()
        return self.chosen in edges - set(self.limits)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        plain: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(self)))
        del plain["limits"]  # those of the method's code, whatever was tried
        scores = [round(score, 2) for score in self.scores]
        return plain | {"scores": scores, "error": round(self.error, 2), "chosen": self.chosen}


def tune(
    request: RunRequest,
    registry: Registry,
    *,
    option: str = "lr",
    values: Sequence[Any] = (),
    seeds: Sequence[int] = (0,),
    out: str | Path = "runs",
    progress: Progress | None = None,
    tell: Callable[[Any, float], None] = lambda value, score: None,
) -> Choice:
    """Try all values of an option on the validation part of a scenario's base domain.

    `request` says what else is asked for; each of `seeds` replaces its seed. `tell` is called with
    every value and its score. Runs are kept below `out` like all runs, so a choice that was
    interrupted resumes.
    """
    request = _on_validation(request)
    method = request.method
    default, tried, limits = _candidates(method, request.scenario.dataset, registry, option, values)
    scores, images = [], 0
    for value in tried:
        candidate = replace(request, config={**request.config, option: value})
        records = [
            run_job(prepare(replace(candidate, seed=seed), registry), out, progress=progress)
            for seed in seeds
        ]
        scores.append(fmean(record.metrics["AA*"] or 0.0 for record in records))
        images = sum(domain["test"] for domain in records[0].scenario["domains"])
        tell(value, scores[-1])
    name = str(request.scenario)
    return Choice(method, option, name, tuple(seeds), images, default, tried, tuple(scores), limits)


def _on_validation(request: RunRequest) -> RunRequest:
    """The same request on the validation part of its scenario."""
    scenario = request.scenario
    if scenario.variant not in ("", VALIDATION):
        raise RequestError(
            f"scenario '{scenario}' has a variant already",
            f"Leave @{scenario.variant} out: options are chosen on @{VALIDATION}.",
        )
    return replace(request, scenario=replace(scenario, variant=VALIDATION))


def keep_choices(choices: Iterable[Choice], path: Path) -> None:
    """Add choices to a JSON file, in place of those of the same scenario, method and option."""
    kept = {_identity(choice): choice for choice in load_choices(path)}
    kept |= {_identity(choice): choice for choice in (each.to_dict() for each in choices)}
    text = json.dumps([kept[key] for key in sorted(kept)], indent=1, ensure_ascii=False) + "\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, text)
    except OSError as error:
        raise FsdilError(
            f"{path} cannot be written: {error.strerror}", "Choose another file with --write."
        ) from error


def load_choices(path: Path) -> list[dict[str, Any]]:
    """The choices in a file, none if there is no such file."""
    if not path.exists():
        return []
    try:
        choices: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
        for choice in choices:
            _identity(choice)
    except (ValueError, TypeError, KeyError, OSError) as error:
        raise RequestError(
            f"{path} is not a file of choices: {error!r}", "Name another file with --write."
        ) from error
    return choices


def _identity(choice: Mapping[str, Any]) -> tuple[str, str, str]:
    return choice["scenario"], choice["method"], choice["option"]


def _candidates(
    method: str, dataset: str, registry: Registry, option: str, values: Sequence[Any]
) -> tuple[Any, tuple[Any, ...], Limits]:
    """The default of a method's option on a data set, the values to try, converted to the option's
    type, and its limits."""
    info = registry.method(method)
    kind = load_method_class(info).Config
    see = f"fsdil-bench list methods {method}"
    fields = {field.name: field for field in dataclasses.fields(kind)}
    if option not in fields:
        error = unknown(f"option of method {method}:", option, fields, see)
        raise RequestError(error.message, f"--option chooses another. {error.remedy}")
    low, high = (fields[option].metadata.get(limit) for limit in ("minimum", "maximum"))
    default = as_dict(method_settings(info, dataset, {}))[option]
    if not values:
        if not _is_number(default) or default <= 0:
            raise RequestError(
                f"the default of {method}'s option '{option}' is {default!r}, no positive number",
                "Say with --values what to try.",
            )
        least, most = -math.inf if low is None else low, math.inf if high is None else high
        exact = [min(max(default * factor, least), most) for factor in FACTORS]
        whole = isinstance(default, int)
        values = [max(1, round(v)) if whole else float(f"{v:.6g}") for v in exact]
    checked = [
        as_dict(resolve(kind, {option: value}, owner=f"method {method}", see=see))[option]
        for value in values
    ]
    return default, tuple(dict.fromkeys(checked)), (low, high)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _distance(value: Any, default: Any) -> float:
    """How far a value is from the default, in orders of magnitude where they have one."""
    if value == default:
        return 0.0
    if _is_number(value) and _is_number(default) and value > 0 and default > 0:
        return abs(math.log(value / default))
    return math.inf
