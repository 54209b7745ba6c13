"""What tiny-clip learns from: nobody of the shelf, none of its places, no forgery."""

from __future__ import annotations

import numpy as np
from fsdil_scenarios.shelf.individuals import INDIVIDUALS
from fsdil_scenarios.tiny_clip.pictures import (
    draw_pictures,
    drawn_object,
    thing,
)
from fsdil_scenarios.tiny_clip.scenes import made_up_place
from fsdil_scenarios.tiny_clip.things import KINDS, random_thing


def test_no_thing_is_one_of_the_individuals():
    taken = {(who.kind, who.colour, who.mark, who.mark_colour) for who in INDIVIDUALS}
    plain = {(who.kind, who.colour) for who in INDIVIDUALS if who.mark == "plain"}
    made = [random_thing("pretrain", index) for index in range(4000)]
    for who in made:
        assert (who.kind, who.colour, who.mark, who.mark_colour) not in taken
        assert who.mark != "plain" or (who.kind, who.colour) not in plain
    assert {who.kind for who in made} == set(KINDS)
    shapes = {who.shape for who in INDIVIDUALS}
    assert not shapes & {who.shape for who in made}


def test_facts_are_those_of_the_thing():
    for index in range(50):
        who, picture = random_thing("pretrain", index), thing("pretrain", index)
        assert picture.fact("object") == who.kind
        assert picture.fact("colour") == who.colour
        assert picture.fact("mark_colour") == ("" if who.mark == "plain" else who.mark_colour)


def test_pictures_follow_their_address_alone():
    plan = [drawn_object("key", "real", 3), thing("pretrain", 5)]
    first = draw_pictures(plan, "pretrain", 48, workers=1)
    again = draw_pictures(plan[::-1], "pretrain", 48, workers=1)[::-1]
    assert np.array_equal(first, again)
    other = draw_pictures(plan, "validation", 48, workers=1)
    assert all((a != b).any() for a, b in zip(first, other, strict=True))


def test_places_differ():
    places = [made_up_place(number, 32) for number in range(6)]
    assert len({place.tobytes() for place in places}) == 6
