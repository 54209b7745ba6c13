"""Checks that learning does something, and that every option does."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import MISSING, fields, replace
from itertools import islice
from typing import Any

import torch

from .after_domain import AfterDomain, as_array
from .finding import CheckError
from .option_values import quantities, switches, values
from .small_world import TRAINING, SmallWorld


def learns(world: SmallWorld) -> str:
    """What is learned follows from the images, and predictions follow from what is learned.

    A method that declares a need for text, reads nothing of any domain and keeps nothing is a
    zero-shot classifier, which is fine.
    """
    run = world.watched
    learned = run.outcomes[0]
    if world.job.info.needs_text and not run.seen.read and not learned.state:
        return "zero-shot: it reads nothing of any domain and keeps nothing"
    remedy = "Check that what learn computes is kept on self and used by predict."
    if _like_before_learning(world, learned):
        raise CheckError("learning the base domain changes neither state nor predictions", remedy)
    other = next(world.outcomes(replace(world.size, altered=True)))
    if other.digest() == learned.digest():
        raise CheckError(
            "other images with other labels leave the same state and the same predictions", remedy
        )
    if _ignores_its_state(world):
        raise CheckError("predictions are the same whatever numbers are in the state", remedy)
    digests = [_state_digest(outcome) for outcome in run.outcomes]
    if len(set(digests)) == 1 < len(digests):
        return "the base domain alone changes the state"
    return "a change of images changes the state, a change of the state changes predictions"


def trained_parameters(world: SmallWorld) -> str:
    """It reports at least as many trained parameters as its optimizers change, and trains them."""
    for t, (reported, changed) in enumerate(world.watched.trained):
        if reported < changed:
            raise CheckError(
                f"after domain {t + 1} trained_parameters returned {reported:,}, but optimizers "
                f"changed {changed:,} numbers",
                "Count all parameters that are trained: sum(p.numel() for p in parameters).",
            )
    most, stepped = (max(numbers) for numbers in zip(*world.watched.trained, strict=True))
    if most and not (world.watched.moved if stepped else _moves_its_state(world)):
        raise CheckError(
            f"trained_parameters returned {most:,}, but learning leaves all of them as they are",
            "Check that its optimizer gets these parameters, that it makes steps, and that its "
            "learning rate is not 0. A method that trains nothing returns 0.",
        )
    return f"{reported:,} reported, {changed:,} changed by optimizers of torch"


def options(world: SmallWorld) -> str:
    """Every option of Config changes the state or the predictions.

    A few values are tried, alone and then together with another value of each other option. What
    has no effect on so little data is declared: `inert = {"option": "why"}` in the method's class.
    """
    config, kind = world.job.config, world.job.method_class
    tried = values(config, world.full)
    names = [name for name, found in tried.items() if found]  # of types that can be varied
    unknown = set(kind.inert) - set(tried)
    if unknown:
        raise CheckError(
            f"`inert` names what is no option: {', '.join(sorted(unknown))}", "Correct the name."
        )
    runs = _Runs(world)
    dead, helped = [], {}
    with world.progress.phase("options", len(names)):
        for name in names:
            if name not in kind.inert:
                effect = _effect(runs, name)
                if effect is None:
                    dead.append(name)
                elif effect:
                    helped[name] = effect
            world.progress.advance()
    if dead:
        raise CheckError(
            f"without effect, alone and with any other: {', '.join(dead)}",
            "Use the option or remove it; if it has no effect on so little data, say why in the "
            'class attribute inert = {"option": "why"}.',
        )
    notes = [f"{name} with {effect}" for name, effect in helped.items()]
    notes += [f"{name} is declared inert ({why})" for name, why in kind.inert.items()]
    active = len(set(names) - set(kind.inert))
    return f"{active} options change the outcome" + (f" ({'; '.join(notes)})" if notes else "")


class _Runs:
    """Runs under other options, each only as far as needed to see a difference."""

    def __init__(self, world: SmallWorld) -> None:
        self.world = world
        self._known: dict[str, tuple[list[str], Iterator[AfterDomain]]] = {
            repr([]): ([outcome.digest() for outcome in world.watched.outcomes], iter(()))
        }

    def differ(self, one: dict[str, Any], other: dict[str, Any], depth: int) -> bool:
        """Whether two settings differ after up to `depth` domains; a refused one does not."""
        pairs = zip(self._digests(one), self._digests(other), strict=True)
        try:
            return any(a != b for a, b in islice(pairs, depth))
        except CheckError:
            return False

    def _digests(self, options: dict[str, Any]) -> Iterator[str]:
        key = repr(sorted(options.items()))
        if key not in self._known:
            self._known[key] = ([], self.world.outcomes(options=options))
        digests, rest = self._known[key]
        for t in range(self.world.size.domains):
            if t == len(digests):
                outcome = next(rest, None)  # None: it was refused before, which ends a run for good
                if outcome is None:
                    raise CheckError("refused", "")
                digests.append(outcome.digest())
            yield digests[t]


def _effect(runs: _Runs, name: str) -> str | None:
    """What has to be set besides to see the option's effect (""), or None if there is none."""
    for besides, value, depth in _attempts(runs.world, name):
        if runs.differ(besides, {**besides, name: value}, depth):
            return ", ".join(f"{key}={setting}" for key, setting in besides.items())
    return None


def _attempts(world: SmallWorld, name: str) -> Iterator[tuple[dict[str, Any], Any, int]]:
    """Other settings, a value of the option, and how many domains to look at: cheap ones first, and
    before all combinations those with what the option's help speaks of."""
    config, full, all_domains = world.job.config, world.full, world.size.domains
    own = values(config, full)[name]
    choices, sizes = switches(config, full), quantities(config, full)
    lengths = [(key, getattr(full, key)) for key in world.lowered]
    yield from (({}, value, 1) for value in own[:2])
    # Long runs are expensive, and of the first three values the last is the most different one.
    for others, few, depth in ((choices, own[:1], 1), (lengths, own[2::-1], all_domains)):
        for key, setting in others:
            if key != name and _hint(config, name, key, setting):
                yield from (({key: setting}, value, depth) for value in few)
    yield from (({}, value, all_domains) for value in own[:2])
    # A variant of a method may have switched off what an option and another one are about.
    usual = _usual(config, world.job.info.overrides)
    for key, setting in choices:
        if usual and key != name and _hint(config, name, key, setting):
            yield {**usual, key: setting}, own[0], 1
    for others, few, depth in (
        (choices, own[:1], 1),
        (lengths, own[:3], all_domains),
        (sizes, own[:1], 1),
        ([("", None)], own[2:], all_domains),
        (choices + sizes, own[:1], all_domains),
    ):
        for key, setting in others:
            if key != name:
                besides = {key: setting} if key else {}
                yield from ((besides, value, depth) for value in few)


def _usual(config: Any, overrides: Iterable[str]) -> dict[str, Any]:
    """The defaults of the options that a variant sets."""
    defaults = {each.name: each.default for each in fields(config)}
    return {key: defaults[key] for key in overrides if defaults[key] is not MISSING}


def _hint(config: Any, name: str, key: str, setting: Any) -> bool:
    """Whether the help of an option names another one, or a setting of it."""
    [text] = [field.metadata.get("help", "") for field in fields(config) if field.name == name]
    said = set(re.findall(r"[a-z]+", text.lower()))
    about = {str(setting).lower(), key} if isinstance(setting, str) else {key}
    return bool(said & about) or bool(said & TRAINING and key.rsplit("_", 1)[-1] in TRAINING)


def _like_before_learning(world: SmallWorld, learned: AfterDomain) -> bool:
    """Whether a method that has not learned is the same; one that cannot predict yet is not."""
    fresh = world.build()
    try:
        outcome = AfterDomain(world.state_of(fresh), *world.predict(fresh, world.tests(0), 0))
    except CheckError:
        return False
    return outcome.digest() == learned.digest()


def _moves_its_state(world: SmallWorld) -> bool:
    """Whether learning changes any number that the state has before: training without torch's
    optimizers does. Counters and the like do not count."""
    try:
        before = world.state_of(world.build())
    except CheckError:  # it has none before it has learned
        return False
    after = world.watched.outcomes[-1].state
    return any(
        value.is_floating_point() and not torch.equal(value, after[name])
        for name, value in before.items()
        if name in after and value.shape == after[name].shape
    )


def _ignores_its_state(world: SmallWorld) -> bool:
    """Whether noise in place of the state leaves all predictions as they are."""
    last = len(world.watched.outcomes) - 1
    outcome, fresh = world.watched.outcomes[last], world.build()
    generator = torch.Generator().manual_seed(0)
    noise = {
        name: torch.randn(value.shape, generator=generator).to(value)
        if value.is_floating_point()
        else value
        for name, value in outcome.state.items()
    }
    with suppress(CheckError):  # noise that is refused was at least looked at
        with world.calling("load_state_dict"):
            fresh.load_state_dict(noise)
        classes, _ = world.predict(fresh, world.tests(last), last)
        return as_array(classes).tobytes() == as_array(outcome.classes).tobytes()
    return False


def _state_digest(outcome: AfterDomain) -> str:
    return AfterDomain(outcome.state, None).digest()
