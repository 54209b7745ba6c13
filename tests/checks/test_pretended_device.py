"""The pretended device: every rule of CUDA that it keeps, the CPU's numbers, and nothing left."""

from __future__ import annotations

import copy
import threading

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import nn

from fsdil_bench.checks.pretended_device import NotPretendedError, pretended_device


@pytest.fixture
def device():
    with pretended_device() as device:
        yield device


@pytest.fixture
def here():
    return torch.randn(3, 4, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def there(device, here):
    return here.to(device)


def test_what_a_tensor_says_of_itself(device, here, there):
    assert device == torch.device("cuda:0") == there.device
    assert there.is_cuda
    assert not there.is_cpu
    assert not there.is_meta
    assert there.get_device() == 0
    assert there.to("cuda") is there
    assert there.to(device) is there
    assert there.cuda() is there
    assert here.cuda().is_cuda
    assert here.to(there).is_cuda
    assert here.to(device="cuda").is_cuda
    assert there.cpu().device == here.device
    assert there.to(here).device == here.device
    assert "device='cuda:0')" in repr(there)
    assert f"{there[0, 0]:.3f}" == f"{here[0, 0]:.3f}"
    assert there.tolist() == here.tolist()
    assert float(there.max()) == float(here.max())


@pytest.mark.parametrize(
    "make",
    [
        lambda **on: torch.zeros(2, 2, **on),
        lambda **on: torch.full((2,), 3.0, **on),
        lambda **on: torch.arange(4, **on),
        lambda **on: torch.eye(3, **on),
        lambda **on: torch.tensor([1.0, 2.0], **on),
        lambda **on: torch.as_tensor(np.ones(3), **on),
        lambda **on: torch.randn(3, **on),
        lambda **on: torch.zeros_like(torch.ones(3), **on),
        lambda **on: torch.ones(1).new_tensor([4, 5], **on),
        lambda **on: nn.Linear(2, 3, **on).weight.detach(),
    ],
)
def test_tensors_are_made_there(device, make):
    torch.manual_seed(0)
    expected = make()
    for name in ("cuda", "cuda:0", device):
        torch.manual_seed(0)
        made = make(device=name)
        assert made.is_cuda
        assert torch.equal(made.cpu(), expected)
    with torch.device("cuda"):
        assert torch.zeros(2).is_cuda


@pytest.mark.parametrize(
    "mix",
    [
        lambda here, there: here + there,
        lambda here, there: there @ here.T,
        lambda here, there: torch.cat([here, there]),
        lambda here, there: torch.equal(here, there),
        lambda here, there: there.add_(here),
        lambda here, there: here.mul_(there),
        lambda here, there: F.linear(there, here),
        lambda here, there: F.embedding(torch.tensor([0]), there),
        lambda here, there: there.gather(1, torch.zeros(3, 1, dtype=torch.long)),
        lambda here, there: there.index_add_(0, torch.tensor([0]), there[:1]),
        lambda here, there: torch.where(there > 0, there, here),
        lambda here, there: there.__setitem__(torch.tensor([0]), here[:1]),
        lambda here, there: here.sum().add_(there.sum()),
        lambda here, there: here * there.sum(),
        lambda here, there: F.cross_entropy(there, torch.tensor([0, 1, 2])),
    ],
)
def test_tensors_of_two_devices_do_not_mix(here, there, mix):
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        mix(here, there)


def test_numbers_on_the_cpu_mix_and_copies_go_both_ways(here, there):
    assert torch.equal((there * torch.tensor(2.0)).cpu(), here * 2)
    assert torch.equal(torch.where(there > 0, there, torch.tensor(0.0)).cpu(), here.clamp(min=0))
    assert torch.equal(there.clone().copy_(here + 1).cpu(), here + 1)
    assert torch.equal(torch.zeros(3, 4).copy_(there), here)
    changed = there.clone()
    changed[:2] = torch.ones(2, 4)
    changed[torch.tensor([2])] = 5.0
    assert changed[:, 0].tolist() == [1, 1, 5]


def test_indices_on_the_cpu_for_both_devices_on_the_device_for_its_own(here, there):
    rows = torch.tensor([2, 0])
    for index in (rows, rows.cuda(), [2, 0], np.array([2, 0]), (slice(0, 2), [1, 3]), []):
        on_cpu = index.cpu() if torch.is_tensor(index) else index
        assert torch.equal(there[index].cpu(), here[on_cpu])
    assert torch.equal(there[there > 0].cpu(), here[here > 0])
    with pytest.raises(RuntimeError, match="indices should be either on cpu or on the same device"):
        here[rows.cuda()]
    changed = there.clone()
    changed[[0, 2]] = 0
    assert changed[[0, 2]].any().item() is False
    assert changed[1].tolist() == there[1].tolist()


def test_no_arrays(there):
    for make in (np.asarray, np.array, lambda tensor: tensor.numpy()):
        with pytest.raises(TypeError, match="can't convert cuda:0 device type tensor to numpy"):
            make(there)
    assert there.cpu().numpy().shape == (3, 4)


@pytest.mark.parametrize(
    "draw",
    [
        lambda g: torch.randn(3, device="cuda", generator=g),
        lambda g: torch.randperm(3, device="cuda", generator=g),
        lambda g: torch.zeros(3, device="cuda").normal_(generator=g),
        lambda g: torch.multinomial(torch.ones(3, device="cuda"), 1, generator=g),
        lambda g: nn.init.normal_(torch.zeros(3, device="cuda"), generator=g),
    ],
)
def test_a_generator_draws_on_its_own_device(device, draw):
    with pytest.raises(RuntimeError, match="Expected a 'cuda' device type for generator but found"):
        draw(torch.Generator())
    assert draw(torch.Generator(device="cuda").manual_seed(1)).is_cuda
    with pytest.raises(RuntimeError, match="Expected a 'cpu' device type for generator but found"):
        torch.randn(3, generator=torch.Generator("cuda"))
    assert isinstance(torch.Generator("cuda"), torch.Generator)
    assert isinstance(torch.Generator(), torch.Generator)


def test_only_cpu_memory_is_pinned(here, there):
    with pytest.raises(RuntimeError, match="cannot pin"):
        there.pin_memory()
    pinned = here.pin_memory()
    assert pinned.is_pinned()
    assert not here.is_pinned()
    assert torch.equal(pinned, here)
    assert pinned.pin_memory() is pinned
    assert torch.zeros(2, pin_memory=True).is_pinned()
    loader = torch.utils.data.DataLoader(list(here), batch_size=2, pin_memory=True)
    assert all(batch.to("cuda", non_blocking=True).is_cuda for batch in loader)
    loader = torch.utils.data.DataLoader(list(there), batch_size=2, pin_memory=True)
    with pytest.raises(RuntimeError, match="cannot pin"):
        next(iter(loader))


def test_bf16_is_accepted_and_computed_in_fp32(here, there):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        assert torch.is_autocast_enabled("cuda")
        assert torch.equal((there @ there.T).cpu(), here @ here.T)
    assert (there.bfloat16() @ there.bfloat16().T).dtype == torch.bfloat16


def test_there_is_a_device_with_memory_and_a_name(device):
    assert torch.cuda.is_available()
    assert torch.cuda.device_count() == 1
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats(device)
    assert torch.cuda.max_memory_allocated(device) > 0
    assert torch.cuda.get_device_name(device)
    torch.cuda.empty_cache()
    with torch.random.fork_rng():
        torch.manual_seed(3)
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        torch.zeros(1, device="cuda:1")


def network():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(144, 8), nn.LayerNorm(8),
        nn.GELU(), nn.Linear(8, 5),
    )  # fmt: skip


@pytest.mark.parametrize("kind", [torch.optim.AdamW, torch.optim.SGD])
def test_training_gives_the_numbers_of_the_cpu(device, kind, tmp_path):
    images, labels = torch.randn(6, 3, 8, 8), torch.tensor([0, 1, 2, 3, 4, 0])
    models = [network(), network()]
    optimizers = [kind(model.parameters(), lr=0.1, weight_decay=0.1) for model in models]
    weight = models[1][0].weight
    models[1].to(device)  # after the optimizer was made, which holds the same parameters
    assert models[1][0].weight is weight
    assert isinstance(weight, nn.Parameter)
    assert weight.is_cuda
    for model, optimizer, place in zip(models, optimizers, ("cpu", "cuda"), strict=True):
        for _ in range(3):
            optimizer.zero_grad()
            F.cross_entropy(model(images.to(place)), labels.to(place)).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
    states = [model.state_dict() for model in models]
    for name, value in states[0].items():
        torch.testing.assert_close(states[1][name].cpu(), value)
    copied = copy.deepcopy(models[1])
    with torch.no_grad():
        copied[0].weight.zero_()
    assert copied[0].weight.requires_grad
    assert models[1][0].weight.any()
    save_file({k: v.cpu() for k, v in states[1].items()}, tmp_path / "state.safetensors")
    copied.load_state_dict(load_file(tmp_path / "state.safetensors"))
    assert torch.equal(copied[0].weight, models[1][0].weight)
    save_file(dict(states[1]), tmp_path / "state.safetensors")  # copies them itself
    assert torch.equal(load_file(tmp_path / "state.safetensors")["0.weight"], weight.cpu())


def test_gradients_go_both_ways(device):
    here = torch.ones(3, requires_grad=True)
    there = torch.ones(3, device=device, requires_grad=True)
    ((here.to(device) * there).cpu() * 2).sum().backward()
    assert here.grad.device.type == "cpu"
    assert here.grad.tolist() == [2, 2, 2]
    assert there.grad.is_cuda
    assert there.grad.tolist() == [2, 2, 2]


def test_views_and_data_share_memory(device):
    whole = torch.zeros(4, device=device)
    whole[:2] += 1
    whole.view(2, 2)[1].fill_(7)
    assert whole.tolist() == [1, 1, 7, 7]
    weight = nn.Parameter(torch.zeros(2, device=device))
    weight.data = torch.ones(2, device=device)
    weight.data.mul_(5)
    assert weight.tolist() == [5, 5]
    with pytest.raises(RuntimeError):
        weight.data = torch.ones(2)
    assert whole.clone().unsqueeze_(0).shape == (1, 4)


def test_attention_and_distances(here, there):
    layer = nn.MultiheadAttention(4, 2)
    expected = layer(here, here, here)[0]
    torch.testing.assert_close(layer.to("cuda")(there, there, there)[0].cpu(), expected)
    torch.testing.assert_close(torch.cdist(there, there[[0]]).cpu(), torch.cdist(here, here[[0]]))
    torch.testing.assert_close(torch.linalg.svd(there)[1].cpu(), torch.linalg.svd(here)[1])


def test_what_it_cannot_do_is_said(there):
    with pytest.raises(NotPretendedError):
        there + torch.empty(3, 4, device="meta")


def test_device_tensors_keep_to_the_rules_in_other_threads(here, there):
    found = []

    def work():
        for compute in (lambda: there + here, lambda: (there + there).is_cuda, there.pin_memory):
            try:
                found.append(compute())
            except RuntimeError as error:
                found.append(str(error)[:10])

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == ["Expected a", True, "cannot pin"]


def test_nothing_is_left():
    def settings():
        places = {"torch": torch, "cuda": torch.cuda, "Tensor": torch.Tensor, "Module": nn.Module}
        known = {f"{k}.{name}": v for k, place in places.items() for name, v in vars(place).items()}
        known["swap"] = torch.__future__.get_swap_module_params_on_conversion()
        return {name: id(value) for name, value in known.items()}

    def fail():
        with pretended_device():
            assert settings() != before
            raise ZeroDivisionError

    before = settings()
    with pytest.raises(ZeroDivisionError):
        fail()
    assert settings() == before
    if not torch.cuda.is_available():
        with pytest.raises((RuntimeError, AssertionError)):
            torch.zeros(2).to("cuda")
