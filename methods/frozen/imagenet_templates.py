"""The 80 sentences that CLIP was evaluated with on ImageNet, for ensembles over templates.

Radford et al., 2021, published them as a list. Almost all of them come in pairs, one with "a" and
one with "the" before the class name, so that is how they are written down here.
"""

from __future__ import annotations

_OF = (
    "a bad photo", "a black and white photo", "a blurry photo", "a bright photo",
    "a close-up photo", "a cropped photo", "a dark photo", "a good photo",
    "a jpeg corrupted photo", "a low resolution photo", "a photo", "a pixelated photo",
    "a doodle", "a drawing", "a painting", "a rendering", "a rendition", "a sculpture",
    "a sketch", "a tattoo", "art", "graffiti", "itap",
)  # fmt: skip
_LOOKS = ("clean", "cool", "dirty", "hard to see", "large", "nice", "small", "weird")
_MADE = ("cartoon", "embroidered", "origami", "plastic", "plushie", "toy")
_SINGLE = ("a photo of many {}.", "a photo of my {}.", "a photo of one {}.", "itap of my {}.")

IMAGENET_TEMPLATES: tuple[str, ...] = (
    *(
        sentence
        for article in ("a", "the")
        for sentence in (
            *(f"{what} of {article} {{}}." for what in _OF),
            *(f"a photo of {article} {looks} {{}}." for looks in _LOOKS),
            *(f"{article} {made} {{}}." for made in _MADE),
            f"{article} {{}} in a video game.",
        )
    ),
    *_SINGLE,
)
