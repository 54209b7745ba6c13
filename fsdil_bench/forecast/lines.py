"""From rehearsals of small sizes to the sizes of a scenario.

The work of most methods grows in straight lines. While domain t is learned it is a + b n with the n
images of the base domain; in the test after it, k + e m with the m test images seen so far; and a,
b, k and e grow in straight lines with t. Two rehearsals give the lines of the first domains.
Images of later domains are few, so these are rehearsed in their real number.

Lines bend where a method does not look at more than so many images: a batch, a sample. Such bounds
are options, so rehearsals have more base images than any whole number among the options says, where
the scenario has as many.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from fsdil_bench.data.scenario import Stream

from .rehearsal import Rehearsed, Sizes, Subject, rehearse, whole_numbers
from .tally import Phase, Work

DOMAINS = 3  # that are rehearsed
_ROUND = 128  # base images come in whole batches of usual sizes
_LARGEST_BEND = 4096  # a bound above it is not looked for
_TESTS = (64, 512)
_QUICK, _LARGER = 0.2, 16  # seconds of a quick rehearsal, and how much larger it may be
#: Images that a router sends to a wrong domain are predicted once more. How many is not known.
WRONGLY_ROUTED = 0.5


@dataclass(frozen=True)
class StreamSizes:
    """How many images a stream has: training images of each domain, and test images."""

    train: tuple[int, ...]
    tests: tuple[int, ...]
    unseen: int = 0

    @classmethod
    def of(cls, stream: Stream) -> StreamSizes:
        """Count a stream."""
        return cls(
            tuple(len(domain.train) for domain in stream.domains),
            tuple(len(domain.test) for domain in stream.domains),
            sum(len(samples) for _, samples in stream.unseen),
        )

    @property
    def shots(self) -> int:
        """Training images of a later domain, in the mean."""
        later = self.train[1:]
        return round(sum(later) / len(later)) if later else 0


@dataclass(frozen=True)
class Rehearsals:
    """Two rehearsals of one method, and what they say about any size of base and tests.

    The small one may have the base domain alone: later ones need it no second time where they
    cannot see base images.
    """

    small: Rehearsed
    large: Rehearsed
    exemplar_free: bool

    def learn(self, t: int, base: int) -> Work:
        """The work of learning domain `t` with so many base images."""
        if t and self.exemplar_free:
            return self.large.work.get(("learn", t), Work())
        sizes = self.small.sizes.base, self.large.sizes.base
        return self._line(("learn", t), base, *sizes)

    def test(self, t: int, images: int) -> Work:
        """The work of the test after domain `t` on so many images."""
        few, many = (each.sizes.tests * (t + 1) for each in (self.small, self.large))
        if t < self.small.sizes.domains:
            return self._line(("predict", t), images, few, many)
        # What part of it is for single images is known from the test after the base domain.
        whole = self.large.work.get(("predict", t), Work())
        first = self.test(0, self.large.sizes.tests)
        fixed = (
            amount * (max(0.0, rest) / of_first if of_first else 0.0)
            for amount, rest, of_first in zip(whole, self.test(0, 0), first, strict=True)
        )
        grown = images / many
        return Work(*(f + (all_ - f) * grown for all_, f in zip(whole, fixed, strict=True)))

    def with_later(self, other: Rehearsed) -> Rehearsals:
        """The same base and tests, with a second domain as in another rehearsal.

        The third and the second are in the same proportion as here.
        """
        second, mine = other.work["learn", 1], self.large.work["learn", 1]
        later = {("learn", 1): second}
        if ("learn", 2) in self.large.work:
            amounts = zip(second, mine, self.large.work["learn", 2], strict=True)
            later["learn", 2] = Work(
                *(new * (third / old if old else 1) for new, old, third in amounts)
            )
        return replace(self, large=replace(self.large, work=self.large.work | later))

    def _line(self, phase: Phase, size: float, low: int, high: int) -> Work:
        one, other = (each.work.get(phase, Work()) for each in (self.small, self.large))
        if low == high:
            return one.combined(other, 0.5, 0.5)
        share = (size - low) / (high - low)
        line = one.combined(other, 1 - share, share)
        # Seconds are measured, and a difference of two may come out as less than nothing.
        return replace(line, own=max(line.own, other.own if size > high else 0.0))


def rehearse_twice(subject: Subject, sizes: StreamSizes) -> Rehearsals:
    """Rehearse a method at two sizes that are right for a stream.

    A quick one is rehearsed at larger sizes, since there is time, and once more at the smaller
    ones: what libraries do when they are first called would be much of its seconds.
    """
    low, high = base_sizes(subject, sizes)
    domains = min(DOMAINS, len(sizes.train))
    few, many = _TESTS
    least = Sizes(1 if subject.info.exemplar_free else domains, low, sizes.shots, few)
    small = rehearse(subject, least)
    if sum(work.own for work in small.work.values()) < _QUICK:
        small = rehearse(subject, least)
        high = min(sizes.train[0], low + _LARGER * (high - low))
        many = min(max(many, *sizes.tests), _LARGER * many)
    large = rehearse(subject, Sizes(domains, high, sizes.shots, many))
    return Rehearsals(small, large, subject.info.exemplar_free)


def rehearse_later(subject: Subject, sizes: StreamSizes) -> Rehearsed:
    """Rehearse a method for its second domain alone: with few base images, and few tests."""
    base = min(sizes.train[0], 2 * len(subject.stream.class_names))
    return rehearse(subject, Sizes(2, base, sizes.shots, _TESTS[0]))


def base_sizes(subject: Subject, sizes: StreamSizes) -> tuple[int, int]:
    """Base images of the two rehearsals: above all bends, where there are so many."""
    there = sizes.train[0]
    bends = [v for v in whole_numbers(subject.config) if v <= min(there, _LARGEST_BEND)]
    least = max(2 * len(subject.stream.class_names), *bends, _ROUND)
    low = -(-least // _ROUND) * _ROUND
    high = low + _ROUND * max(1, low // (2 * _ROUND))
    return (low, high) if high < there else (there, there)


def whole_stream(found: Rehearsals, sizes: StreamSizes) -> tuple[list[Work], list[Work]]:
    """The work of learning each domain of a stream, and that of the test after each."""
    learn, test = [], []
    known = found.large.sizes.domains
    seen = 0
    for t, images in enumerate(sizes.tests):
        seen += images
        learn.append(_extended(t, known, lambda i: found.learn(i, sizes.train[0]), first=1))
        own = _extended(t, known, lambda i, m=seen: found.test(i, m), first=0)  # type: ignore[misc]
        nothing = _extended(t, known, lambda i: found.test(i, 0), first=0)
        for_images = own.combined(nothing, 1.0, -1.0)
        if found.large.routes and t:
            own = own + for_images.times(WRONGLY_ROUTED)
        if sizes.unseen and seen:
            own = own + for_images.times(sizes.unseen / seen)
        test.append(replace(own, own=max(0.0, own.own)))
    return learn, test


def _extended(t: int, known: int, line: object, *, first: int) -> Work:
    """What `line` says of domain t; beyond the known ones, continued from the last two."""
    assert callable(line)
    if t < known:
        found: Work = line(t)
        return found
    last, before = known - 1, max(first, known - 2)
    if before >= last:
        return line(last)  # type: ignore[no-any-return]
    growth = line(last).combined(line(before), 1.0, -1.0).times((t - last) / (last - before))
    grown: Work = line(last) + growth
    return Work(*(max(0.0, amount) for amount in grown))
