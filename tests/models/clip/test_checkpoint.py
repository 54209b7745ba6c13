"""Every format gives the same tensors; what is damaged or dangerous gives an error."""

from __future__ import annotations

import os
import pickle
import zipfile

import pytest
import torch
from clip_world import save_archive, save_script_module
from safetensors.torch import save_file

from fsdil_bench.errors import DataError
from fsdil_bench.models.clip.checkpoint import read_checkpoint


def save_training(state, path):
    wrapped = {f"module.{name}": value for name, value in state.items()}
    torch.save({"epoch": 3, "name": "run", "state_dict": wrapped, "optimizer": {"lr": 0.1}}, path)


def save_legacy(state, path):
    torch.save(state, path, _use_new_zipfile_serialization=False)


FORMATS = {
    "weights.safetensors": lambda state, path: save_file(state, path),
    "weights.pt": torch.save,
    "legacy.pth": save_legacy,
    "training.bin": save_training,
    "archive.pt": save_archive,
    "safetensors-by-content.bin": lambda state, path: save_file(state, path),
}


@pytest.fixture(scope="module")
def half(test_clip):
    """Weights that half precision holds exactly."""
    return {name: value.half().contiguous() for name, value in test_clip.state.items()}


@pytest.mark.parametrize("file", FORMATS)
def test_all_formats_hold_the_same(file, half, tmp_path):
    FORMATS[file](half, tmp_path / file)
    read = read_checkpoint(tmp_path / file)
    extra = {"input_resolution", "context_length", "vocab_size"} if "archive" in file else set()
    assert read.keys() - extra == half.keys()
    for name, value in half.items():
        assert read[name].dtype == torch.float32
        torch.testing.assert_close(read[name], value.float(), rtol=0, atol=0)


@pytest.mark.filterwarnings("ignore:.torch.jit:FutureWarning")
def test_an_archive_reads_as_torch_reads_it(tmp_path):
    module = torch.nn.Sequential(torch.nn.Conv2d(2, 3, 2), torch.nn.BatchNorm2d(3))
    shared = torch.arange(12.0)
    module.register_buffer("slice", shared[2:8].view(2, 3).T)
    module.register_buffer("whole", shared)
    module.register_buffer("empty", torch.zeros(0, 4))
    save_script_module(module, tmp_path / "module.pt")
    theirs = torch.jit.load(tmp_path / "module.pt").state_dict()
    ours = read_checkpoint(tmp_path / "module.pt")
    assert ours.keys() == theirs.keys()
    for name, value in theirs.items():
        torch.testing.assert_close(ours[name], value)


@pytest.mark.parametrize("file", ["weights.safetensors", "weights.pt", "legacy.pth", "archive.pt"])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.99])
def test_a_truncated_file_is_named(file, share, half, tmp_path):
    path = tmp_path / file
    FORMATS[file](half, path)
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    with pytest.raises(DataError, match=file):
        read_checkpoint(path)


def test_a_flipped_bit_in_an_archive_is_noticed(half, tmp_path):
    path = tmp_path / "archive.pt"
    save_archive(half, path)
    content = bytearray(path.read_bytes())
    content[content.index(half["token_embedding.weight"].numpy().tobytes()[:64]) + 5] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"archive\.pt"):
        read_checkpoint(path)


@pytest.mark.parametrize("content", [b"", b"not a checkpoint", b"\x80\x02]q\x00."])
def test_what_is_no_checkpoint_is_named(content, tmp_path):
    (tmp_path / "odd.pt").write_bytes(content)
    with pytest.raises(DataError, match=r"odd\.pt"):
        read_checkpoint(tmp_path / "odd.pt")


def test_what_has_no_named_tensors_says_what_it_has(tmp_path):
    torch.save({"epoch": 3, "lr": 0.1}, tmp_path / "odd.pt")
    with pytest.raises(DataError, match="epoch, lr"):
        read_checkpoint(tmp_path / "odd.pt")


class Touch:
    """Creates a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.system, (f"touch {self.path}",)


def save_pickle(evil, path):
    path.write_bytes(pickle.dumps({"visual.proj": evil}, protocol=2))


def save_zip(evil, path):
    torch.save({"visual.proj": evil}, path)


def save_script(evil, path):
    """Looks like a TorchScript archive, but its pickle is another."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("m/data.pkl", pickle.dumps({"visual.proj": evil}, protocol=2))
        archive.writestr("m/code/__torch__.py", "")


@pytest.mark.parametrize("save", [save_pickle, save_zip, save_script])
def test_code_in_a_file_is_named_and_never_run(save, tmp_path):
    mark = tmp_path / "was-here"
    save(Touch(mark), tmp_path / "evil.pt")
    with pytest.raises(DataError, match=r"evil\.pt holds more than tensors.*system"):
        read_checkpoint(tmp_path / "evil.pt")
    assert not mark.exists()
    pickle.loads(pickle.dumps(Touch(mark)))  # the bait does work
    assert mark.exists()
