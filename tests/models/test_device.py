"""Devices and precisions: what is chosen, what is refused and why, and what torch is told."""

from __future__ import annotations

import contextlib
import json
import os

import pytest
import torch
import toy_plugin

from fsdil_bench.data.transforms import build_transform
from fsdil_bench.errors import PluginError, RequestError
from fsdil_bench.models import device
from fsdil_bench.models.device import choose, full_precision, numerics, repeatable
from fsdil_bench.progress import Progress
from fsdil_bench.runs.pictures import Pictures
from fsdil_bench.runs.plugin_calls import call_plugin

MATMUL, CUDNN = torch.backends.cuda.matmul, torch.backends.cudnn


@pytest.fixture
def gpu(monkeypatch):
    """A machine with GPUs of a compute capability."""

    def pretend(capability, count=1):
        monkeypatch.setattr(torch.cuda, "is_available", lambda: count > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda place=None: capability)
        monkeypatch.setattr(torch.cuda, "get_device_name", lambda place=None: "Pretended")

    return pretend


@pytest.mark.parametrize(
    ("capability", "usual"),
    [((7, 0), "fp32"), ((7, 5), "fp32"), ((8, 0), "bf16"), ((8, 6), "bf16"), ((9, 0), "bf16")],
)
def test_bf16_is_the_default_only_where_it_is_native(gpu, capability, usual):
    gpu(capability)
    assert choose("auto", "auto") == (torch.device("cuda"), usual)
    assert choose("cuda", "fp32")[1] == "fp32"
    assert choose("cuda", "bf16")[1] == "bf16"  # torch imitates it for whoever insists
    assert choose("cpu", "auto") == (torch.device("cpu"), "fp32")


def test_tf32_needs_a_gpu_that_has_it(gpu):
    gpu((8, 0))
    assert choose("cuda", "tf32") == (torch.device("cuda"), "tf32")
    gpu((7, 5))
    with pytest.raises(RequestError, match=r"'Pretended' has no TF32.*8\.0"):
        choose("cuda", "tf32")
    for precision in ("tf32", "bf16"):
        with pytest.raises(RequestError, match=f"{precision} is for CUDA"):
            choose("cpu", precision)


def test_devices_that_are_not_there_are_named(gpu, monkeypatch):
    gpu((8, 0), count=2)
    assert choose("cuda:1", "fp32")[0] == torch.device("cuda:1")
    with pytest.raises(RequestError, match="no cuda:2: this machine has 2"):
        choose("cuda:2", "fp32")
    gpu((8, 0), count=0)
    with pytest.raises(RequestError, match="no CUDA"):
        choose("cuda", "fp32")
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    with pytest.raises(RequestError, match="MPS") as caught:
        choose("mps", "auto")
    assert "--device cpu" in caught.value.remedy
    for other in ("xpu", "meta"):
        with pytest.raises(RequestError, match=f"does not compute on '{other}'"):
            choose(other, "auto")
    with pytest.raises(RequestError, match="'gpu' is not a device"):
        choose("gpu", "auto")
    with pytest.raises(RequestError, match="'half' is not a precision"):
        choose("cpu", "half")


def test_mps_computes_in_fp32(monkeypatch):
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert choose("mps", "auto") == (torch.device("mps"), "fp32")
    with pytest.raises(RequestError, match="tf32 is for CUDA"):
        choose("mps", "tf32")


@pytest.fixture
def allow_tf32():
    """Set torch's two switches as somebody else might have done."""
    before = MATMUL.allow_tf32, CUDNN.allow_tf32

    def put(matmul, cudnn):
        MATMUL.allow_tf32, CUDNN.allow_tf32 = matmul, cudnn

    yield put
    put(*before)


def switches():
    return (
        MATMUL.allow_tf32, CUDNN.allow_tf32, CUDNN.deterministic, CUDNN.benchmark,
        torch.are_deterministic_algorithms_enabled(),
        os.environ.get("CUBLAS_WORKSPACE_CONFIG"),
    )  # fmt: skip


@pytest.mark.parametrize("before", [True, False])
def test_switches_are_turned_for_the_run_and_put_back(monkeypatch, allow_tf32, before):
    allow_tf32(before, before)
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    outside = switches()
    with numerics("tf32"):
        assert switches()[:2] == (True, True)
        assert switches()[2:] == outside[2:]
        with full_precision(torch.device("cpu")):
            assert switches()[:2] == (False, False)
        assert switches()[:2] == (True, True)
    for precision in ("fp32", "bf16"):
        with numerics(precision):
            assert switches()[:2] == (False, False)  # cuDNN's is on by default
    with numerics("fp32", deterministic=True):
        assert switches() == (False, False, True, False, True, ":4096:8")
    with contextlib.suppress(ValueError), numerics("tf32", deterministic=True):
        raise ValueError
    assert switches() == outside


def test_a_run_has_its_switches_and_leaves_none(toy_run, toy_registry, allow_tf32, monkeypatch):
    seen = []
    learn = toy_plugin.Means.learn
    means = toy_registry.method("toy-means").factory

    def watched(self, domain):
        seen.append((MATMUL.allow_tf32, torch.are_deterministic_algorithms_enabled()))
        return learn(self, domain)

    monkeypatch.setattr(means, "learn", watched)
    allow_tf32(True, True)
    plain = toy_run()
    strict = toy_run(deterministic=True, fresh=True)
    assert set(seen[:4]) == {(False, False)}
    assert set(seen[4:]) == {(False, True)}
    assert MATMUL.allow_tf32
    assert not torch.are_deterministic_algorithms_enabled()
    assert strict.run_id == plain.run_id
    assert (plain.provenance["deterministic"], strict.provenance["deterministic"]) == (False, True)
    assert "to the bit" in plain.provenance["repeatable"]


def test_what_the_record_says_about_bits():
    cpu, cuda = torch.device("cpu"), torch.device("cuda")
    assert "threads" in repeatable(cpu, False)
    assert repeatable(cuda, True) != repeatable(cuda, False)
    assert "differ" in repeatable(cuda, False)


class Watched(toy_plugin.ToyModel):
    """Notes in which precision its towers are asked."""

    seen: list[tuple[bool, bool]]

    def encode_image(self, pixels):
        self.seen.append((torch.is_autocast_enabled("cpu"), MATMUL.allow_tf32))
        return super().encode_image(pixels)

    def encode_text(self, tokens):
        self.seen.append((torch.is_autocast_enabled("cpu"), MATMUL.allow_tf32))
        return super().encode_text(tokens)


@pytest.mark.parametrize("precision", ["bf16", "tf32"])
def test_what_is_kept_is_computed_in_full_precision(tmp_path, precision, monkeypatch):
    """Whatever the run's precision, and so all of them share one cache."""
    model = Watched()
    model.seen = []
    backbone = toy_plugin.build_backbone()
    backbone._build = lambda: model
    stream = toy_plugin.build_stream()
    transform = build_transform(stream.transform, backbone.image)
    backbone.place(torch.device("cpu"), precision, None)
    pictures = Pictures(stream, backbone, transform, tmp_path, Progress())
    # As a method would call it, but nothing is really computed in bf16: not every CPU can.
    with numerics(precision):
        context = torch.autocast("cpu", dtype=torch.bfloat16) if precision == "bf16" else None
        with context or numerics(precision):
            features = pictures.features(stream.domains[0].train)
            backbone.encode_text(["red", "green"])
    assert set(model.seen) == {(False, False)}
    pictures.close()
    other = toy_plugin.build_backbone()
    again = Pictures(stream, other, transform, tmp_path, Progress())
    monkeypatch.setattr(other, "frozen_features", None)
    assert torch.equal(again.features(stream.domains[0].train), features)
    again.close()


def test_texts_of_all_precisions_lie_in_one_file(toy_job, monkeypatch):
    monkeypatch.setattr(device, "choose", lambda name, precision: (torch.device("cpu"), precision))
    jobs = [toy_job(precision=precision) for precision in ("fp32", "tf32", "bf16")]
    assert len({job.run_id for job in jobs}) == 3
    assert len({job.backbone._texts.path for job in jobs}) == 1


def test_what_mps_lacks_is_said_with_a_way_out():
    def learn():
        raise TypeError("Cannot convert a MPS Tensor to float64 dtype")

    with pytest.raises(PluginError, match="MPS Tensor to float64") as caught:
        call_plugin("m", "learn", learn)
    assert "--device cpu" in caught.value.remedy


def test_options_of_the_command_line(call, tmp_path):
    words = ["run", "-m", "toy-means", "-s", "toy-1shot", "--plugin", toy_plugin.__file__, "-q"]
    code, out, err = call(*words, "--batch-size", 4, "--deterministic", "--json")
    assert code == 0, err
    (record,) = json.loads(out)
    assert record["provenance"]["batch_size"] == 4
    assert record["provenance"]["deterministic"] is True
    code, _, err = call(*words, "--batch-size", 0)
    assert (code, "--batch-size" in err) == (2, True)
    code, _, err = call(*words, "--device", "xpu")
    assert (code, "does not compute on 'xpu'" in err) == (2, True)


def test_a_sweep_plans_for_the_gpu_there_is(gpu):
    from fsdil_bench.sweeps.plan import _usual_on_a_gpu

    gpu((8, 0), count=0)
    assert _usual_on_a_gpu() == "bf16"
    gpu((7, 5))
    assert _usual_on_a_gpu() == "fp32"
