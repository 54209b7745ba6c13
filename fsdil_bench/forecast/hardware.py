"""How fast graphics processors are: a small table, and the seconds that work takes.

Peaks are of dense matrix products, in 10^12 operations per second, as the makers state them.
`efficiency` is the part of a peak that a vision transformer reaches in plain PyTorch, without
compilation. It is an estimate: none of these cards was at hand to measure it, nor the seconds per
call and per image below. `this-machine` is measured instead.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from fsdil_bench.errors import RequestError, unknown

from .pass_cost import PassCost
from .tally import Work

THIS_MACHINE = "this-machine"


@dataclass(frozen=True)
class Gpu:
    """A graphics processor: memory in GB, peaks and efficiencies by precision."""

    title: str
    memory: float
    peaks: dict[str, float]
    efficiency: dict[str, float]


_OLD = {"fp32": 0.55}
_GEFORCE = {"fp32": 0.6, "tf32": 0.6, "bf16": 0.55}  # cards with a peak of tensor cores near fp32's
_SERVER = {"fp32": 0.75, "tf32": 0.4, "bf16": 0.35}
_LARGEST = {"fp32": 0.6, "tf32": 0.3, "bf16": 0.25}  # plain PyTorch cannot keep them busy
_SMALL = {"fp32": 0.45, "tf32": 0.4, "bf16": 0.4}  # held back by their power limit

GPUS = {
    "t4": Gpu("T4", 16, {"fp32": 8.1}, _OLD),
    "v100": Gpu("V100", 16, {"fp32": 15.7}, {"fp32": 0.75}),
    "rtx-2080-ti": Gpu("RTX 2080 Ti", 11, {"fp32": 13.4}, _OLD),
    "rtx-3090": Gpu("RTX 3090", 24, {"fp32": 35.6, "tf32": 35.6, "bf16": 71.0}, _GEFORCE),
    "rtx-4090": Gpu("RTX 4090", 24, {"fp32": 82.6, "tf32": 82.6, "bf16": 165.2}, _GEFORCE),
    "rtx-5090": Gpu("RTX 5090", 32, {"fp32": 104.8, "tf32": 104.8, "bf16": 209.5}, _GEFORCE),
    "rtx-a6000": Gpu("RTX A6000", 48, {"fp32": 38.7, "tf32": 77.4, "bf16": 154.8}, _SERVER),
    "a10": Gpu("A10", 24, {"fp32": 31.2, "tf32": 62.5, "bf16": 125.0}, _SMALL),
    "l4": Gpu("L4", 24, {"fp32": 30.3, "tf32": 60.0, "bf16": 121.0}, _SMALL),
    "l40s": Gpu("L40S", 48, {"fp32": 91.6, "tf32": 183.0, "bf16": 362.0}, _SERVER),
    "a100": Gpu("A100", 40, {"fp32": 19.5, "tf32": 156.0, "bf16": 312.0}, _SERVER),
    "h100": Gpu("H100", 80, {"fp32": 67.0, "tf32": 495.0, "bf16": 989.0}, _LARGEST),
}

#: Seconds that plain PyTorch needs to call one block of a transformer, however small the batch.
_CALL = 0.4e-3
#: The computer around a graphics processor: processors that make views, and what one view takes.
_PROCESSORS = 8
_DECODE, _VIEW = 4e-3, 3e-3


@dataclass(frozen=True)
class Speed:
    """How fast work is done somewhere.

    Seconds per floating-point operation: of `frozen` passes, which are always in fp32, and of
    passes `forward` and `backward` in the run's precision, apart for both towers. `call` is what
    every block costs besides, `own` the factor on seconds that the rehearsal took, `decode`,
    `plain` and `augmented` are seconds per image. With `overlap` images are made while the towers
    compute. `memory` is in bytes, `baseline` what a process holds in it before it does anything.
    """

    name: str
    title: str
    precision: str
    frozen: float
    forward: float
    backward: float
    text_frozen: float
    text_forward: float
    text_backward: float
    call: float
    own: float
    decode: float
    plain: float
    augmented: float
    overlap: bool
    batch_size: int
    memory: float | None = None
    baseline: float = 0.0

    @property
    def article(self) -> str:
        """As at the end of a sentence: one RTX 4090, or this machine."""
        return self.title if self.name == THIS_MACHINE else f"one {self.title}"

    def towers(self, work: Work, cost: PassCost) -> float:
        """Seconds of the towers and of what the method computes beside them."""
        image, text = cost.image, cost.text
        seconds = work.image_frozen * image.forward * self.frozen
        seconds += work.image_forward * image.forward * self.forward
        back = work.image_backward * image.backward + work.image_weights * image.weight_backward
        seconds += back * self.backward
        if text is not None:
            seconds += work.text_frozen * text.forward * self.text_frozen
            seconds += work.text_forward * text.forward * self.text_forward
            back = work.text_backward * text.backward + work.text_weights * text.weight_backward
            seconds += back * self.text_backward
        return seconds + work.calls * self.call + work.own * self.own

    def together(self, towers: float, images: float) -> float:
        """Seconds of a phase in which images are made and used."""
        return max(towers, images) if self.overlap else towers + images


def gpu_speed(name: str, precision: str) -> Speed:
    """A graphics processor of the table; `auto` is its usual precision."""
    gpu = find_gpu(name)
    usual = "bf16" if "bf16" in gpu.peaks else "fp32"
    precision = usual if precision == "auto" else precision
    if precision not in gpu.peaks:
        raise RequestError(
            f"the {gpu.title} does not compute in {precision}",
            f"Use --precision {' or '.join(gpu.peaks)}, or another graphics processor.",
        )
    rates = {each: 1e-12 / (gpu.peaks[each] * gpu.efficiency[each]) for each in gpu.peaks}
    return Speed(
        name=name, title=gpu.title, precision=precision,
        frozen=rates["fp32"], forward=rates[precision], backward=rates[precision],
        text_frozen=rates["fp32"], text_forward=rates[precision], text_backward=rates[precision],
        call=_CALL, own=0.0, decode=_DECODE / _PROCESSORS, plain=_VIEW / _PROCESSORS,
        augmented=_VIEW / _PROCESSORS, overlap=True, batch_size=256, memory=gpu.memory * 1e9,
    )  # fmt: skip


def find_gpu(name: str) -> Gpu:
    """The entry of the table, however the name is spelt."""
    plain = {_plain(each): each for each in GPUS}
    if _plain(name) not in plain:
        known = [*GPUS, THIS_MACHINE]
        error = unknown("hardware", name, known)
        hint, _, _ = error.remedy.rpartition("There are")
        raise RequestError(error.message, f"{hint}There are {', '.join(known)}.")
    return GPUS[plain[_plain(name)]]


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower().replace("nvidia", "").replace("geforce", ""))
