"""The drawn objects and their poses, before any style renders them."""

from dataclasses import replace

import numpy as np
import pytest
from fsdil_scenarios.drawn.objects import OBJECTS
from fsdil_scenarios.drawn.parts import Drawing
from fsdil_scenarios.drawn.pose import pose

NAMES = [
    "cup",
    "key",
    "scissors",
    "fish",
    "house",
    "tree",
    "umbrella",
    "clock",
    "bicycle",
    "chair",
    "lamp",
    "guitar",
    "car",
    "sailing boat",
    "apple",
    "flower",
    "hat",
    "glasses",
    "hammer",
    "mushroom",
    "butterfly",
    "aeroplane",
    "snowman",
    "ladder",
]
SEEDS = range(50)
STILL = {"mirror": 0.0, "rotate": 0.0, "stretch": 0.0, "shear": 0.0, "perspective": 0.0}
every_object = pytest.mark.parametrize("name", NAMES)


def drawn(name: str, seed: int) -> Drawing:
    return OBJECTS[name](np.random.default_rng(seed))


def bounds(drawing: Drawing) -> tuple[np.ndarray, np.ndarray]:
    points = np.concatenate([p.points for p in drawing.parts])
    return points.min(axis=0), points.max(axis=0)


def same(a: Drawing, b: Drawing) -> bool:
    return (
        a.colours == b.colours
        and len(a.parts) == len(b.parts)
        and all(
            np.array_equal(p.points, q.points)
            and replace(p, points=None) == replace(q, points=None)
            for p, q in zip(a.parts, b.parts, strict=True)
        )
    )


def test_the_objects_and_their_order():
    assert list(OBJECTS) == NAMES


@every_object
@pytest.mark.parametrize("posed", [False, True])
def test_every_drawing_is_valid(name, posed):
    for seed in SEEDS:
        drawing = drawn(name, seed)
        if posed:
            drawing = pose(drawing, np.random.default_rng(seed))
        for part in drawing.parts:
            assert part.points.dtype == np.float64
            assert part.points.ndim == 2
            assert part.points.shape[1] == 2
            assert len(part.points) >= (3 if part.closed else 2)
            assert np.isfinite(part.points).all()
            assert part.width > 0
            assert part.detail in (0, 1, 2)
            assert part.role in drawing.colours
        assert any(part.detail == 0 for part in drawing.parts)
        for colour in drawing.colours.values():
            assert all(type(level) is int and 0 <= level <= 255 for level in colour)


@every_object
def test_drawings_are_centred_and_fill_the_square(name):
    for seed in SEEDS:
        low, high = bounds(drawn(name, seed))
        assert low.min() >= -1.0 - 1e-9
        assert high.max() <= 1.0 + 1e-9
        assert (high - low).max() > 1.8
        np.testing.assert_allclose(low + high, 0, atol=0.2)


@every_object
def test_a_seed_gives_one_drawing_and_another_seed_another(name):
    assert same(drawn(name, 3), drawn(name, 3))
    assert not any(same(drawn(name, 3), drawn(name, seed)) for seed in SEEDS if seed != 3)


@every_object
def test_an_object_varies_in_parts_proportions_and_colours(name):
    drawings = [drawn(name, seed) for seed in SEEDS]
    extents = [np.subtract(*bounds(d)[::-1]) for d in drawings]
    assert len({len(d.parts) for d in drawings}) >= 3
    assert len({tuple(d.colours.items()) for d in drawings}) == len(drawings)
    assert np.std([np.log(w / h) for w, h in extents]) > 0.04


@every_object
def test_the_essential_parts_make_up_most_of_the_extent(name):
    """What is left of a hasty drawing is about as large as the whole: the silhouette."""
    shares = []
    for seed in SEEDS:
        drawing = drawn(name, seed)
        essential = replace(drawing, parts=tuple(p for p in drawing.parts if p.detail == 0))
        low, high = bounds(essential)
        shares.append((high - low).max() / 2)
    assert np.mean(shares) > 0.85
    assert min(shares) > 0.5


@every_object
def test_a_strong_pose_stays_in_the_square(name):
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        posed = pose(OBJECTS[name](rng), rng, rotate=45, stretch=0.5, shear=0.4, perspective=0.3)
        low, high = bounds(posed)
        assert low.min() >= -1.0 - 1e-9
        assert high.max() <= 1.0 + 1e-9


def test_a_pose_without_strength_changes_nothing():
    drawing = drawn("cup", 0)
    posed = pose(drawing, np.random.default_rng(0), **STILL)
    for before, after in zip(drawing.parts, posed.parts, strict=True):
        np.testing.assert_allclose(after.points, before.points, atol=1e-9)
        assert after.width == pytest.approx(before.width)


def test_mirroring_exchanges_left_and_right():
    drawing = drawn("cup", 0)
    posed = pose(drawing, np.random.default_rng(0), **STILL | {"mirror": 1.0})
    for before, after in zip(drawing.parts, posed.parts, strict=True):
        np.testing.assert_allclose(after.points, before.points * (-1, 1), atol=1e-9)


def test_half_of_the_poses_are_mirrored():
    drawing = drawn("cup", 0)
    calm = STILL | {"mirror": 0.5}
    flipped = [
        not np.allclose(
            pose(drawing, np.random.default_rng(seed), **calm).parts[0].points,
            drawing.parts[0].points,
        )
        for seed in range(200)
    ]
    assert 70 < sum(flipped) < 130


@pytest.mark.parametrize("strength", ["rotate", "stretch", "shear", "perspective"])
def test_each_strength_of_a_pose_changes_the_shape(strength):
    drawing = drawn("house", 0)
    amount = 20.0 if strength == "rotate" else 0.2
    posed = pose(drawing, np.random.default_rng(1), **STILL | {strength: amount})
    moves = np.concatenate([p.points for p in posed.parts]) - np.concatenate(
        [p.points for p in drawing.parts]
    )
    assert 0.01 < np.abs(moves).max() < 0.8


def test_a_pose_leaves_colours_and_roles_alone():
    drawing = drawn("car", 0)
    posed = pose(drawing, np.random.default_rng(0))
    assert posed.colours == drawing.colours
    assert [p.role for p in posed.parts] == [p.role for p in drawing.parts]
