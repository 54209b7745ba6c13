"""What stands in for backbone and images in a rehearsal: the same shapes, next to nothing in them.

The towers are a real CLIP of open_clip with as many blocks as the backbone has, but narrow ones and
images of two tokens. So any code that runs a CLIP runs this one, in milliseconds. Texts have their
real tokens. Embeddings have their real width, because methods compute on them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from fsdil_bench.data.published.outline import made_up_samples
from fsdil_bench.data.scenario import Domain, Samples, Stream
from fsdil_bench.data.transforms import ImageSpec, build_transform
from fsdil_bench.models.backbone import Backbone
from fsdil_bench.runs.cost import Meter
from fsdil_bench.runs.pictures import Draw
from fsdil_bench.seeds import torch_generator

from .pass_cost import PassCost
from .tally import Tally

IMAGE_SIZE = 2
IMAGE_TOKENS = 2  # one patch, and the class token
#: Widths of the image tower: what most methods are content with, and half of a ViT-B's.
NARROW, WIDE = 64, 384
_HEAD = 16
_TEXT_WIDTH, _TEXT_HEADS = 16, 1


class StandIn(Backbone):
    """A backbone whose towers count; texts are remembered as in the cache of a run."""

    def __init__(
        self, meant: Backbone, cost: PassCost, classes: Sequence[str], batch: int, width: int
    ) -> None:
        super().__init__(
            meant.name,
            build=self._make,
            weights_hash=meant.weights_hash,
            image=ImageSpec(IMAGE_SIZE),
            embed_dim=meant.embed_dim,
            tokenizer=meant.tokenizer,
            known_texts=meant.known_texts,
        )
        self._cost = cost
        self._width = width
        blocks = {"image": cost.image.blocks, "text": cost.text.blocks if cost.text else 1}
        self.tally = Tally(cost.image.tokens, IMAGE_TOKENS, blocks)  # type: ignore[arg-type]
        self._length = cost.text.tokens if cost.text else 4
        self._remembered = Remembered()
        self.place(torch.device("cpu"), "fp32", self._remembered, classes, batch)  # type: ignore[arg-type]

    def encode_image(self, pixels: torch.Tensor) -> torch.Tensor:
        """As the frozen tower of a run: in fp32 whatever the precision of the run is."""
        with self.tally.in_frozen_backbone():
            return super().encode_image(pixels)

    def _embed_texts(self, texts: list[str]) -> dict[str, np.ndarray]:
        """Texts that a run finds in the cache, or embeds once for all runs."""
        self.tally.embed_texts(texts, self._length)
        noise = torch.randn(len(texts), self.embed_dim, generator=torch_generator(0, *texts))
        return dict(zip(texts, F.normalize(noise, dim=-1).numpy(), strict=True))

    def _make(self) -> torch.nn.Module:
        from open_clip.model import CLIP

        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            model = CLIP(
                self.embed_dim,
                {
                    "image_size": IMAGE_SIZE, "patch_size": IMAGE_SIZE, "width": self._width,
                    "head_width": _HEAD, "layers": self._cost.image.blocks,
                },
                {
                    "context_length": self._length, "vocab_size": self._cost.vocabulary or 4,
                    "width": _TEXT_WIDTH, "heads": _TEXT_HEADS,
                    "layers": self._cost.text.blocks if self._cost.text else 1,
                },
            )  # fmt: skip
        self.tally.watch("image", model.visual.transformer.resblocks)
        self.tally.watch("text", model.transformer.resblocks)
        return model


class Remembered:
    """Text embeddings by text: what an `ArrayStore` does, in memory."""

    def __init__(self) -> None:
        self._known: dict[str, np.ndarray] = {}

    def fill(
        self, keys: Sequence[str], compute: Callable[[Any], Any], size: int
    ) -> dict[str, np.ndarray]:
        """The arrays of all keys; missing ones are computed."""
        missing = [key for key in keys if key not in self._known]
        parts = [missing[i : i + size] for i in range(0, len(missing), size)]
        for made in compute(iter(parts)):
            self._known |= made
        return {key: self._known[key] for key in keys}


class MadeUpPictures:
    """Does what `Pictures` does, with views of noise and features in clusters."""

    def __init__(self, stream: Stream, backbone: StandIn) -> None:
        self.backbone: Backbone = backbone
        self.transform = build_transform(stream.transform, backbone.image)
        self.meter = Meter()
        self._tally = backbone.tally
        generator = torch_generator(0, "clusters")
        dim = backbone.embed_dim
        self._classes = torch.randn(len(stream.class_names), dim, generator=generator)
        self._domains = torch.randn(len(stream.domains) + 1, dim, generator=generator)

    def features(self, samples: Samples) -> torch.Tensor:
        """Unit embeddings around the mean of their class and domain."""
        part, domain, first = samples.ids[0].split("/")
        self._tally.features.add((part, int(domain)))
        noise = torch.randn(
            len(samples), self.backbone.embed_dim,
            generator=torch_generator(0, part, domain, first, len(samples)),
        )  # fmt: skip
        labels = torch.from_numpy(samples.labels.copy())
        return F.normalize(self._classes[labels] + self._domains[int(domain)] + noise, dim=-1)

    def plain(self, samples: Samples) -> torch.Tensor:
        """Plain views of all samples."""
        [views] = self.batches(samples, [(range(len(samples)), None)])
        return views

    def batches(
        self, samples: Samples, draws: Iterable[Draw], ahead: int = 0
    ) -> Iterator[torch.Tensor]:
        """Views of noise, batch by batch."""
        del samples, ahead
        noise = torch_generator(0, "views")
        for positions, seeds in draws:
            self._tally.new_step(len(positions), augmented=seeds is not None)
            shape = (len(positions), 3, IMAGE_SIZE, IMAGE_SIZE)
            yield torch.randint(0, 256, shape, dtype=torch.uint8, generator=noise)

    def to_device(self, tensor: torch.Tensor) -> torch.Tensor:
        """The tensor: all is on the CPU."""
        return tensor

    def forget(self, samples: Samples) -> None:
        """Nothing is kept."""

    def close(self) -> None:
        """Nothing is open."""


def made_up_stream(like: Stream, domains: int, base: int, shots: int, tests: int) -> Stream:
    """A stream with the classes and texts of another, and so many images in each domain."""
    classes = len(like.class_names)

    def samples(part: str, t: int, images: int) -> Samples:
        return made_up_samples(f"{part}/{t}", images, classes)

    return Stream(
        like.name,
        like.class_names,
        tuple(
            Domain(f"d{t}", samples("train", t, shots if t else base), samples("test", t, tests))
            for t in range(domains)
        ),
        synonyms=like.synonyms,
        transform=like.transform,
    )
