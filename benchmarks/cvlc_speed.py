"""CVLC against the same computation written plainly, on the shapes of ViT-B/16.

Each of the two runs in a process of its own, one after the other: one base training step, one
few-shot domain and one evaluation with oracle, with 50 classes, 10 synonyms and 4 templates. Then
the results are compared: the same losses, prototypes and predictions, or the times mean nothing.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fsdil_bench import Backbone, Context, Domain, ImageSpec, Samples, Stream
from fsdil_bench.data.transforms import build_transform
from fsdil_bench.progress import Progress
from fsdil_bench.runs.executor import InProcess
from fsdil_bench.runs.ledger import Ledger
from fsdil_bench.runs.loop import Loop
from fsdil_bench.runs.pictures import Pictures
from fsdil_bench.runs.run_folder import RunFolder

BATCH = 64  # images per training step
TESTED = 10  # classes with a test image
PHASES = ("base training step", "few-shot domain", "evaluation")


def picture(sample_id: str) -> np.ndarray:
    """A blurred random picture, brighter in the first domain."""
    seed = int.from_bytes(sample_id.encode()[-6:], "big")
    coarse = np.random.default_rng(seed).integers(0, 180, (8, 8, 3)).astype(np.uint8)
    large = np.kron(coarse, np.ones((32, 32, 1), np.uint8))
    return large + (60 if sample_id.startswith("0") else 0)


def samples(domain: int, part: str, labels: np.ndarray) -> Samples:
    ids = tuple(f"{domain} {part} {i:03d} {label:02d}" for i, label in enumerate(labels))
    return Samples(ids, labels, picture)


def make_stream(names: list[str], synonyms: list[list[str]]) -> Stream:
    one_each = np.arange(len(names))
    base = np.resize(one_each, max(BATCH, len(names)))
    tested = one_each[:TESTED]
    domains = tuple(
        Domain(f"d{t}", samples(t, "train", train), samples(t, "test", tested))
        for t, train in enumerate((base, one_each))
    )
    return Stream("speed", tuple(names), domains, tuple(map(tuple, synonyms)))


def vit_b16() -> Backbone:
    import open_clip

    def build() -> torch.nn.Module:
        torch.manual_seed(0)
        model: torch.nn.Module = open_clip.create_model("ViT-B-16-quickgelu", load_weights=False)
        return model

    tokenizer = open_clip.get_tokenizer("ViT-B-16-quickgelu")
    return Backbone(
        "random-vit-b16", build=build, weights_hash="0", image=ImageSpec(224), embed_dim=512,
        tokenizer=tokenizer,
    )  # fmt: skip


def measure(
    kind: str, backbone: Backbone, stream: Stream, folder: Path, **config: Any
) -> dict[str, Any]:
    """Seconds of every phase, and what came out of it."""
    from fsdil_methods.cvlc.config import Config
    from fsdil_methods.cvlc.method import CVLC

    from .plain_cvlc import PlainCVLC

    transform = build_transform("clip", backbone.image)
    pictures = Pictures(stream, backbone, transform, folder / "cache", Progress())
    settings = Config(base_epochs=1, epochs=1, least_views=1, batch_size=BATCH, **config)
    plain = kind == "plain"
    method = (PlainCVLC if plain else CVLC)(
        Context(settings, backbone, stream.class_names, stream.synonyms, 0)
    )
    executor = InProcess(kind, lambda: method, 0, backbone.device)
    executor.method = method
    loop = Loop(kind, executor, stream, pictures, 0, True, RunFolder(folder), Progress())
    backbone.model  # noqa: B018 (built before the clock starts)
    seconds: list[float] = []
    cpu: list[float] = []

    def timed(phase: Callable[[], Any]) -> Any:
        began, worked = time.perf_counter(), time.process_time()
        result = phase()
        seconds.append(time.perf_counter() - began)
        cpu.append(time.process_time() - worked)
        return result

    train, originals = method._train, method._originals(loop._train_domain(0, Ledger()))
    method._originals = lambda domain: originals  # type: ignore[method-assign]
    method._train = lambda *given: timed(lambda: train(*given))  # type: ignore[method-assign]
    method.learn(loop._train_domain(0, Ledger()))
    del method._train
    if not plain:
        # As in a run: earlier domains' test features are known by now.
        loop.evaluation.seen(0, method.state_dict())
    timed(lambda: method.learn(loop._train_domain(1, Ledger())))
    tests = [domain.test for domain in stream.domains]
    if plain:
        images = torch.cat([pictures.plain(test) for test in tests])
        truth = torch.arange(2).repeat_interleave(len(tests[0]))
        pixels = transform.normalise(images, backbone.device)
        found = timed(lambda: method.evaluate(pixels, truth))
        routed, classes, oracle = (part.numpy() for part in found)
    else:
        _, predictions = timed(lambda: loop.evaluation.seen(1, method.state_dict()))
        routed, classes, oracle = (predictions[n] for n in ("routed", "classes", "oracle"))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {
        "seconds": np.array(seconds), "cpu": np.array(cpu), "memory": np.array(memory),
        "routed": routed, "classes": classes, "oracle": oracle,
        "prototypes": method.prototypes.numpy(),
    }  # fmt: skip


def differences(one: dict[str, Any], other: dict[str, Any]) -> dict[str, float]:
    """Largest difference of prototypes, and the share of predictions that differ."""
    result = {"prototypes": float(np.abs(one["prototypes"] - other["prototypes"]).max())}
    for name in ("routed", "classes", "oracle"):
        result[name] = float((np.asarray(one[name]) != np.asarray(other[name])).mean())
    return result


def report(ours: dict[str, Any], plain: dict[str, Any]) -> None:
    print(f"{'':22}{'plain':>10}{'ours':>10}{'ratio':>8}")
    rows = [*zip(PHASES, plain["seconds"], ours["seconds"], strict=True)]
    rows.append(("total", plain["seconds"].sum(), ours["seconds"].sum()))
    # Tells the same on a machine that is busy with other things.
    rows.append(("total processor time", plain["cpu"].sum(), ours["cpu"].sum()))
    for name, slow, fast in rows:
        print(f"{name:22}{slow:8.1f} s{fast:8.1f} s{slow / fast:8.1f}")
    print(
        f"{'peak memory':22}{plain['memory']:7.1f} GB{ours['memory']:7.1f} GB"
        f"{plain['memory'] / ours['memory']:8.1f}"
    )
    found = differences(ours, plain)
    print("differences: " + ", ".join(f"{name} {value:.1e}" for name, value in found.items()))


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        results = []
        for kind in ("ours", "plain"):
            file = Path(folder) / f"{kind}.npz"
            command = [sys.executable, "-m", "benchmarks.cvlc_speed", kind, str(file)]
            subprocess.run(command, check=True)
            with np.load(file) as stored:
                results.append(dict(stored))
    report(*results)


def _one() -> None:
    from fsdil_scenarios.names import class_folders, class_texts

    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=["ours", "plain"])
    parser.add_argument("file")
    given = parser.parse_args()
    names, synonyms = class_texts("core50", class_folders("core50"))
    stream = make_stream(list(names), [list(words) for words in synonyms])
    with tempfile.TemporaryDirectory() as folder:
        np.savez(given.file, **measure(given.kind, vit_b16(), stream, Path(folder)))


if __name__ == "__main__":
    _one()
