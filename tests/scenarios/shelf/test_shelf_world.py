"""The shelf's pictures: pure, smooth in time, and different where things or sessions differ."""

from __future__ import annotations

import hashlib
import itertools
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from fsdil_scenarios.shelf.contact_sheet import overview, videos
from fsdil_scenarios.shelf.individuals import COLOURS, INDIVIDUALS
from fsdil_scenarios.shelf.marks import PATTERNS
from fsdil_scenarios.shelf.places import place
from fsdil_scenarios.shelf.sessions import DOMAINS, SESSIONS, UNSEEN, VALIDATION
from fsdil_scenarios.shelf.splits import FRAMES
from fsdil_scenarios.shelf.things import THINGS
from fsdil_scenarios.shelf.world import draw

every_session = pytest.mark.parametrize("session", SESSIONS)
FINGERPRINT = """
import hashlib
from fsdil_scenarios.shelf.sessions import SESSIONS
from fsdil_scenarios.shelf.world import draw
digest = hashlib.sha256()
for who, session in enumerate(SESSIONS):
    digest.update(draw(4 * who, session, 7).tobytes())
"""


def difference(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.abs(one.astype(float) - other.astype(float)).mean())


def test_sessions():
    assert [len(part) for part in (DOMAINS, UNSEEN, VALIDATION)] == [8, 2, 2]
    assert len(SESSIONS) == 12  # no session has two uses


def test_five_individuals_of_ten_kinds_two_of_a_colour():
    kinds = Counter(who.kind for who in INDIVIDUALS)
    assert kinds == dict.fromkeys(THINGS, 5)
    for kind in kinds:
        five = [who for who in INDIVIDUALS if who.kind == kind]
        assert len({(who.colour, who.mark, who.mark_colour) for who in five}) == 5
        assert len({who.shape for who in five}) >= 4
        assert len({who.colour for who in five}) == 4
    for who in INDIVIDUALS:
        assert difference(np.array(COLOURS[who.colour]), np.array(COLOURS[who.mark_colour])) > 35


@pytest.mark.parametrize("size", [48, 64, 129])
def test_shape_and_type(size):
    for who, session in enumerate(SESSIONS):
        picture = draw(4 * who, session, 49, size=size)
        assert picture.shape == (size, size, 3)
        assert picture.dtype == np.uint8


def test_same_arguments_give_the_same_bytes():
    names = list(itertools.product((0, 23, 49), SESSIONS))
    first = [draw(who, session, 3).tobytes() for who, session in names]
    second = [draw(who, session, 3).tobytes() for who, session in reversed(names)]
    assert first == second[::-1]


def test_a_fresh_process_gives_the_same_bytes():
    here: dict[str, hashlib._Hash] = {}
    exec(FINGERPRINT, here)
    command = [sys.executable, "-c", FINGERPRINT + "print(digest.hexdigest())"]
    there = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    assert there == here["digest"].hexdigest()


def test_global_random_state_plays_no_part():
    np.random.seed(0)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    first = draw(0, "grass", 0)
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002
    np.random.seed(1)  # noqa: NPY002
    assert (draw(0, "grass", 0) == first).all()


def test_every_argument_matters():
    pictures = [
        draw(0, "desk", 0),
        draw(1, "desk", 0),
        draw(0, "night", 0),
        draw(0, "desk", 1),
        *(draw(0, "desk", 0, split=split) for split in ("validation", "pretrain")),
    ]
    assert len({picture.tobytes() for picture in pictures}) == len(pictures)


@every_session
def test_neighbouring_frames_are_near_copies(session):
    for who in (2, 17, 38):
        film = [draw(who, session, frame) for frame in range(FRAMES)]
        assert len({picture.tobytes() for picture in film}) == FRAMES
        # Means of 4 x 4 pixels, because noise is new in every frame.
        film = [p.reshape(16, 4, 16, 4, 3).mean((1, 3)) for p in film]
        steps = [difference(a, b) for a, b in itertools.pairwise(film)]
        leaps = [difference(a, b) for a, b in zip(film, film[12:], strict=False)]
        assert np.mean(steps) < 0.6 * np.mean(leaps)


@every_session
def test_no_picture_is_blank_or_spoilt(session):
    for who in range(50):
        picture = draw(who, session, 11).astype(float)
        assert picture.std() > 12, who
        assert (picture.min(2) > 250).mean() < 0.6, who  # overexposed
        assert (picture.max(2) < 15).mean() < 0.6, who  # underexposed


def test_sessions_look_different():
    """The mean picture of a session is closer to itself, on other individuals, than to others."""
    one, other = (
        np.array([np.mean([draw(who, s, 0) for who in group], axis=0) for s in SESSIONS])
        for group in (range(0, 50, 5), range(2, 50, 5))
    )
    apart = np.abs(one[:, None] - other[None]).mean((2, 3, 4))
    assert (apart.argmin(1) == np.arange(len(SESSIONS))).all()


def test_mean_colour_does_not_tell_the_individual_in_another_session():
    def means(session: str) -> np.ndarray:
        return np.array([draw(who, session, 0).mean((0, 1)) for who in range(50)])

    learned = means("shelf")
    for session in list(DOMAINS)[1:]:
        probes = means(session)
        # Even with the change of light taken off.
        probes = probes - probes.mean(0) + learned.mean(0)
        nearest = np.linalg.norm(probes[:, None] - learned, axis=-1).argmin(1)
        assert (nearest == np.arange(50)).mean() < 0.3


@pytest.mark.parametrize("name", [name for name in PATTERNS if name != "plain"])
def test_a_pattern_is_seen_and_leaves_the_ground_colour_visible(name):
    for width, height in ((0.6, 0.8), (0.8, 0.5), (0.45, 0.45)):
        s, t = np.meshgrid(np.linspace(-width, width, 200), np.linspace(-height, height, 200))
        share = PATTERNS[name](s, t, width, height).mean()
        assert 0.1 < share < 0.65


def test_a_star_has_five_points():
    around = np.linspace(0, 2 * np.pi, 720, endpoint=False)
    inside = PATTERNS["star"](0.6 * np.sin(around), -0.6 * np.cos(around), 1.0, 1.0)
    starts = np.flatnonzero(inside & ~np.roll(inside, 1))
    assert len(starts) == 5
    assert inside[0]  # one of them upwards
    tip = np.array([0.77, 0.79])
    assert PATTERNS["star"](np.zeros(2), -tip, 1.0, 1.0).tolist() == [True, False]


def test_plain_has_no_marks():
    assert not PATTERNS["plain"](np.zeros(3), np.zeros(3), 1.0, 1.0).any()


@pytest.mark.parametrize("kind", THINGS)
def test_things_are_whole_whichever_way_they_are_turned(kind):
    shapes = [who.shape for who in INDIVIDUALS if who.kind == kind]
    for shape, turn in itertools.product(shapes, (-0.85, 0.0, 0.85)):
        thing = THINGS[kind](shape, turn)
        for part in thing.parts:
            assert np.isfinite(part.points).all()
        assert 0 <= thing.body < len(thing.parts)
        assert (np.diff(thing.heights) >= 0).all()
        assert (thing.halves >= 0).all()
        assert thing.width >= thing.halves.max() - 1e-9
        assert thing.top < thing.bottom


def test_a_place_cannot_be_changed_by_who_looks_at_it():
    with pytest.raises(ValueError, match="read-only"):
        place("desk", 64)[:] = 0


def test_contact_sheets_show_the_pictures():
    sheet = np.asarray(overview(32))
    assert (sheet[16:48, 60:92] == draw(0, "shelf", 0, size=32)).all()
    film = np.asarray(videos(["night"], ["ball"], 2, 32))
    assert film.shape[0] == 16 + 5 * 34
    assert (film[16:48, 234:266] == draw(15, "night", FRAMES // 2, size=32)).all()
