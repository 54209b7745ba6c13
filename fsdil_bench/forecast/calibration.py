"""How fast this machine is: a short measurement of the backbone's towers and of its images.

Whatever the towers need per image is measured, not what a call costs: rehearsals take that time,
too. On a CPU, seconds of processor time are counted, so that other programs do not matter much.
"""

from __future__ import annotations

import io
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fsdil_bench.cache.folder import cache_folder
from fsdil_bench.data.scenario import Stream
from fsdil_bench.data.transforms import Transform
from fsdil_bench.models.backbone import Backbone
from fsdil_bench.models.device import choose, numerics, synchronise
from fsdil_bench.progress import Progress
from fsdil_bench.runs.pictures import Pictures
from fsdil_bench.system.prefetch import default_workers

from .hardware import THIS_MACHINE, Speed
from .memo import machine, remembered
from .pass_cost import PassCost, TowerCost

BUDGET = 30.0  # seconds that all of it may take
_GOAL = 0.4  # seconds that a single measured pass should take, where that is possible
_MOST = 32  # images in it
_REPEATS = 3
_PICTURES = 24
_PROCESS = 0.8e9  # bytes that Python, torch and open_clip take in RAM, where nobody can tell
_PHOTO = (375, 500)  # of a usual size, where a scenario's own images are not on disk


@dataclass(frozen=True)
class TowerSpeed:
    """Seconds per floating-point operation."""

    forward: float
    backward: float


@dataclass(frozen=True)
class ViewSpeed:
    """Seconds of one processor per image: to decode it, and to make views of it."""

    decode: float
    plain: float
    augmented: float


def this_machine(
    backbone: Backbone,
    cost: PassCost,
    stream: Stream,
    transform: Transform,
    *,
    device: str = "auto",
    precision: str = "auto",
    batch_size: int | None = None,
    on_disk: bool = True,
) -> Speed:
    """Measure, or remember what was measured before for this backbone and these images."""
    place, precision = choose(device, precision)
    began = time.monotonic()
    # The costs too: a file of weights may have the name of another one.
    key = [machine(), str(place), torch.get_num_threads(), backbone.name, asdict(cost)]
    run = _towers(backbone, cost, place, precision, began, [*key, precision])
    frozen = run if precision == "fp32" else _towers(backbone, cost, place, "fp32", began, key)
    views = ViewSpeed(
        **remembered(
            ["views", machine(), stream.name, transform.digest(), transform.describe(), on_disk],
            lambda: asdict(view_speed(stream, transform, backbone, on_disk=on_disk)),
        )
    )
    on_cpu = place.type == "cpu"
    # Threads that make views have processors of their own only beside a graphics processor.
    workers = 1 if on_cpu else max(1, default_workers())
    memory = _ram() if on_cpu else _device_memory(place)
    return Speed(
        name=THIS_MACHINE, title=_title(place), precision=precision,
        frozen=frozen["image"].forward,
        forward=run["image"].forward, backward=run["image"].backward,
        text_frozen=frozen["text"].forward,
        text_forward=run["text"].forward, text_backward=run["text"].backward,
        call=0.0, own=1.0, decode=views.decode / workers, plain=views.plain / workers,
        augmented=views.augmented / workers, overlap=not on_cpu,
        batch_size=batch_size or (256 if place.type == "cuda" else 32), memory=memory,
        baseline=_process_bytes() if on_cpu else 0.0,
    )  # fmt: skip


def _towers(
    backbone: Backbone,
    cost: PassCost,
    place: torch.device,
    precision: str,
    began: float,
    key: list[Any],
) -> dict[str, TowerSpeed]:
    found = remembered(
        ["towers", precision, *key],
        lambda: {
            name: asdict(speed)
            for name, speed in tower_speeds(backbone, cost, place, precision, began).items()
        },
    )
    return {name: TowerSpeed(**speed) for name, speed in found.items()}


def tower_speeds(
    backbone: Backbone, cost: PassCost, place: torch.device, precision: str, began: float
) -> dict[str, TowerSpeed]:
    """Measure both towers; one that there is not takes no time."""
    model: Any = backbone._build().to(place).eval()
    size = backbone.image.size

    def autocast() -> Any:
        enabled = precision == "bf16"
        return torch.autocast(place.type, dtype=torch.bfloat16, enabled=enabled)

    def image(count: int) -> torch.Tensor:
        with autocast():
            found: torch.Tensor = model.encode_image(torch.zeros(count, 3, size, size).to(place))
        return found

    def text(count: int) -> torch.Tensor:
        assert cost.text is not None
        tokens = torch.ones(count, cost.text.tokens, dtype=torch.long, device=place)
        with autocast():
            found: torch.Tensor = model.encode_text(tokens)
        return found

    with numerics(precision), torch.random.fork_rng(devices=[]):
        speeds = {"image": _tower_speed(model, image, cost.image, 1, place, began)}
        if cost.text is None:
            return speeds | {"text": TowerSpeed(0.0, 0.0)}
        tokens = cost.text.tokens
        return speeds | {"text": _tower_speed(model, text, cost.text, tokens, place, began)}


def _tower_speed(
    model: torch.nn.Module,
    encode: Callable[[int], torch.Tensor],
    cost: TowerCost,
    units: int,
    place: torch.device,
    began: float,
) -> TowerSpeed:
    """Time per operation, from the difference between a larger and a smaller batch."""

    def forward(count: int) -> None:
        with torch.no_grad():
            encode(count)

    def training(count: int) -> None:
        encode(count).float().sum().backward()
        model.zero_grad(set_to_none=True)

    def slope(run: Callable[[int], None]) -> float:
        run(1)  # what is set up once does not count
        single = _timed(lambda: run(1), place, began)
        many = max(1, min(_MOST, int(_GOAL / max(single, 1e-6))))
        if many < 4:
            return single
        several = _timed(lambda: run(many), place, began)
        return max(several - single, 0.1 * several) / (many - 1)

    back = cost.backward + cost.weight_backward
    if not (cost.forward and back):  # a tower without a matrix product
        return TowerSpeed(0.0, 0.0)
    model.requires_grad_(False)
    one_way = slope(forward)
    model.requires_grad_(True)
    both_ways = slope(training)
    return TowerSpeed(
        one_way / (units * cost.forward), max(both_ways - one_way, one_way) / (units * back)
    )


def _timed(run: Callable[[], None], place: torch.device, began: float) -> float:
    """The least seconds of a few repeats, as long as the budget lasts."""
    on_cpu = place.type == "cpu"
    clock = time.process_time if on_cpu else time.perf_counter
    share = torch.get_num_threads() if on_cpu else 1
    found: list[float] = []
    while not found or (len(found) < _REPEATS and time.monotonic() - began < BUDGET / 2):
        synchronise(place)
        start = clock()
        run()
        synchronise(place)
        found.append((clock() - start) / share)
    return min(found)


def view_speed(
    stream: Stream, transform: Transform, backbone: Backbone, *, on_disk: bool
) -> ViewSpeed:
    """Decode and transform a few images of the base domain, or a photo of noise."""
    if not on_disk:
        return _photo_speed(transform)
    # From all over the domain: images of one class may be alike.
    places = np.linspace(0, len(stream.domains[0].train) - 1, _PICTURES).astype(int)
    samples = stream.domains[0].train.subset(places.tolist())
    pictures = Pictures(stream, backbone, transform, cache_folder(), Progress(), workers=0)
    try:
        first = _seconds(lambda: pictures.augmented(samples, range(_PICTURES)))
        augmented = _seconds(lambda: pictures.augmented(samples, range(_PICTURES)))
        decoded = [pictures._decoded._known.get(key) for key in samples.keys]
        whole = [picture for picture in decoded if picture is not None]
        plain = _seconds(lambda: [transform.plain(picture) for picture in whole])
    finally:
        pictures.close()
    plain = plain / len(whole) if whole else augmented / _PICTURES
    return ViewSpeed(max(first - augmented, 0.0) / _PICTURES, plain, augmented / _PICTURES)


def _photo_speed(transform: Transform) -> ViewSpeed:
    import PIL.Image

    noise = np.random.default_rng(0).integers(0, 256, (*_PHOTO, 3), dtype=np.uint8)
    file = io.BytesIO()
    smooth = PIL.Image.fromarray(noise).resize((60, 45)).resize(_PHOTO[::-1])
    smooth.save(file, "JPEG")
    shots = range(_PICTURES)

    def decode() -> np.ndarray:
        return np.asarray(PIL.Image.open(io.BytesIO(file.getvalue())).convert("RGB"))

    picture = decode()
    return ViewSpeed(
        _seconds(lambda: [decode() for _ in shots]) / _PICTURES,
        _seconds(lambda: [transform.plain(picture) for _ in shots]) / _PICTURES,
        _seconds(lambda: [transform.augmented(picture, seed) for seed in shots]) / _PICTURES,
    )


def _seconds(run: Callable[[], object]) -> float:
    """Processor time of this thread: views are made by one processor each."""
    start = time.thread_time()
    run()
    return time.thread_time() - start


def _title(place: torch.device) -> str:
    if place.type == "cuda":
        return f"this machine's {torch.cuda.get_device_name(place)}"
    return "this machine"


def _process_bytes() -> float:
    """What this process holds in RAM: about what a run holds before it does anything."""
    with suppress(OSError, ValueError):
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
        return float(int(pages) * os.sysconf("SC_PAGE_SIZE"))
    return _PROCESS


def _ram() -> float:
    return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))


def _device_memory(place: torch.device) -> float | None:
    if place.type == "cuda":
        return float(torch.cuda.get_device_properties(place).total_memory)
    return None
