"""The objects of the drawn world by name; each is a function of a random generator."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .objects_creatures import butterfly, fish, snowman
from .objects_home import chair, clock, cup, house, lamp
from .objects_personal import glasses, guitar, hat, umbrella
from .objects_plants import apple, flower, mushroom, tree
from .objects_tools import hammer, key, ladder, scissors
from .objects_vehicles import aeroplane, bicycle, car, sailing_boat
from .parts import Drawing

OBJECTS: dict[str, Callable[[np.random.Generator], Drawing]] = {
    "cup": cup,
    "key": key,
    "scissors": scissors,
    "fish": fish,
    "house": house,
    "tree": tree,
    "umbrella": umbrella,
    "clock": clock,
    "bicycle": bicycle,
    "chair": chair,
    "lamp": lamp,
    "guitar": guitar,
    "car": car,
    "sailing boat": sailing_boat,
    "apple": apple,
    "flower": flower,
    "hat": hat,
    "glasses": glasses,
    "hammer": hammer,
    "mushroom": mushroom,
    "butterfly": butterfly,
    "aeroplane": aeroplane,
    "snowman": snowman,
    "ladder": ladder,
}
