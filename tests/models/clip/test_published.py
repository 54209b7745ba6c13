"""Published weights without a network: found where they are kept, or one clear message."""

from __future__ import annotations

import os
import subprocess
import sys

import huggingface_hub
import pytest
from huggingface_hub import constants
from huggingface_hub.errors import LocalEntryNotFoundError

from fsdil_bench.errors import RequestError
from fsdil_bench.models.clip.catalogue import catalogue
from fsdil_bench.models.clip.names import check
from fsdil_bench.models.clip.published import Published


@pytest.fixture(autouse=True)
def hub(monkeypatch, tmp_path):
    """An empty home and an empty cache of the hub."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub"


def put(hub, repository, file):
    """As the hub's library lays out its cache."""
    folder = hub / f"models--{repository.replace('/', '--')}"
    (folder / "snapshots" / "abc").mkdir(parents=True, exist_ok=True)
    (folder / "refs").mkdir(exist_ok=True)
    (folder / "refs" / "main").write_text("abc")
    (folder / "snapshots" / "abc" / file).write_bytes(b"weights")
    return folder / "snapshots" / "abc" / file


@pytest.fixture
def no_network(monkeypatch):
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", lambda *_: pytest.fail("went online"))


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize("file", ["open_clip_model.safetensors", "open_clip_pytorch_model.bin"])
def test_what_is_in_the_cache_needs_no_network(hub, file):
    kept = put(hub, "timm/vit_base_patch16_clip_224.openai", file)
    check("ViT-B-16-quickgelu:openai")
    assert Published("ViT-B-16-quickgelu", "openai").fetch() == kept


@pytest.mark.usefixtures("no_network")
def test_openai_s_own_cache_counts(tmp_path):
    kept = tmp_path / ".cache" / "clip" / "ViT-B-16.pt"
    kept.parent.mkdir(parents=True)
    kept.touch()
    assert Published("ViT-B-16-quickgelu", "openai").fetch() == kept


def test_a_hub_that_cannot_be_reached(monkeypatch, hub):
    def broken(*_):
        raise ConnectionResetError("peer went away")

    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", broken)
    check("ViT-B-16-quickgelu:openai")  # who cannot be asked may still deliver
    with pytest.raises(RequestError) as caught:
        Published("ViT-B-16-quickgelu", "openai").fetch()
    for text in (
        "'openai' of ViT-B-16-quickgelu",
        "peer went away",
        "127.0.0.1:9 cannot be reached",
        "timm/vit_base_patch16_clip_224.openai",
        str(hub),
        "ViT-B-16.pt",
        "--backbone ViT-B-16-quickgelu:",
    ):
        assert text in str(caught.value)


@pytest.mark.parametrize("kind", [ConnectionResetError, LocalEntryNotFoundError])
def test_a_download_that_fails_is_explained(monkeypatch, kind):
    def broken(*_):
        raise kind("peer went away")

    monkeypatch.setattr("fsdil_bench.models.clip.published._can_reach", lambda _: True)
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", broken)
    with pytest.raises(RequestError, match="peer went away") as caught:
        Published("ViT-B-16-quickgelu", "openai").fetch()
    assert "cannot be reached" not in str(caught.value)


def test_downloads_the_first_file_that_there_is(monkeypatch, tmp_path):
    asked = []

    def download(repository, file):
        asked.append((repository, file))
        if file.endswith(".safetensors"):
            raise huggingface_hub.errors.EntryNotFoundError("no such file")
        return str(tmp_path / file)

    # A mirror that answers nothing but downloads does not forbid them.
    monkeypatch.setattr("fsdil_bench.models.clip.published._can_reach", lambda _: False)
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    check("ViT-B-16-quickgelu:openai")
    found = Published("ViT-B-16-quickgelu", "openai").fetch()
    assert found == tmp_path / "open_clip_pytorch_model.bin"
    assert {repository for repository, _ in asked} == {"timm/vit_base_patch16_clip_224.openai"}


def test_offline_command_line(tmp_path):
    catalogue.cache_clear()  # so that this test's cache gets one, and the command is quick
    catalogue()
    command = "run --method ncm --scenario drawn-1shot --backbone ViT-B-16-quickgelu:openai"
    result = subprocess.run(
        [sys.executable, "-m", "fsdil_bench", *command.split()],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "hf")},
    )
    assert result.returncode == 2
    assert "HF_HUB_OFFLINE" in result.stderr
    assert str(tmp_path / "hf") in result.stderr
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "runs").exists()
