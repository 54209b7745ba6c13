"""From a name to embeddings: the same as open_clip's, whatever the weights are written in."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import numpy as np
import open_clip
import pytest
import torch
import toy_plugin
from clip_world import random_model, save_archive
from safetensors.torch import save_file

from fsdil_bench.errors import DataError, RequestError
from fsdil_bench.models.clip.catalogue import catalogue
from fsdil_bench.models.clip.open_clip_backbone import build, open_clip_backbone

TEXTS = ["a photo of a red.", "green"]


def rounded(state):
    """Weights that half precision holds exactly."""
    return {name: value.half().float().contiguous() for name, value in state.items()}


def part(state, *, image):
    return {name: value for name, value in state.items() if name.startswith("visual.") == image}


@pytest.fixture(scope="module")
def model(test_clip):
    model = random_model(0)
    model.load_state_dict(rounded(test_clip.state))
    return model


@pytest.fixture(scope="module")
def weights(model):
    return {name: value.contiguous() for name, value in model.state_dict().items()}


@pytest.fixture
def file(weights, tmp_path):
    save_file(weights, tmp_path / "w.safetensors")
    return tmp_path / "w.safetensors"


def assert_same(backbone, expected, test_clip, *, image, text):
    torch.testing.assert_close(backbone.encode_image(test_clip.pixels), expected(model=image))
    torch.testing.assert_close(backbone.encode_text(TEXTS), expected(TEXTS, text))


@pytest.mark.parametrize("save", [save_file, torch.save, save_archive])
def test_embeddings_are_those_of_open_clip(save, model, weights, test_clip, expected, tmp_path):
    save(weights, tmp_path / "w.pt")
    backbone = build(f"test-clip:{tmp_path}/w.pt")
    assert_same(backbone, expected, test_clip, image=model, text=model)
    assert backbone.name == "test-clip:w.pt"
    assert (backbone.embed_dim, backbone.image.size, backbone.has_text) == (16, 32, True)
    assert backbone.logit_scale == pytest.approx(model.logit_scale.exp().item())
    assert not any(p.requires_grad for p in backbone.model.parameters())


def test_towers_from_two_files(weights, model, test_clip, expected, tmp_path):
    other = random_model(7)
    save_file(part(weights, image=True), tmp_path / "visual.safetensors")
    save_archive(other.state_dict() | {"logit_scale": torch.tensor(1.5)}, tmp_path / "other.pt")
    other.load_state_dict(rounded(other.state_dict()))
    backbone = build(f"test-clip:{tmp_path}/visual.safetensors+{tmp_path}/other.pt")
    assert_same(backbone, expected, test_clip, image=model, text=other)
    assert backbone.name == "test-clip:visual.safetensors+other.pt"
    assert backbone.model.logit_scale.item() == 1.5
    swapped = build(f"test-clip:{tmp_path}/other.pt+{tmp_path}/other.pt")
    assert_same(swapped, expected, test_clip, image=other, text=other)
    assert swapped.weights_hash != backbone.weights_hash


def test_the_scale_may_come_with_the_image_tower(weights, tmp_path):
    scale = {"logit_scale": torch.tensor(0.7)}
    text = part(weights, image=False)
    text.pop("logit_scale")
    save_file(part(weights, image=True) | scale, tmp_path / "v.safetensors")
    save_file(text, tmp_path / "t.safetensors")
    backbone = build(f"test-clip:{tmp_path}/v.safetensors+{tmp_path}/t.safetensors")
    assert backbone.model.logit_scale.item() == pytest.approx(0.7)


def test_a_model_of_ones_own(weights, model, test_clip, expected, file):
    config = {
        "model_cfg": test_clip.config,
        "preprocess_cfg": {"mean": [0, 0, 0], "std": [1, 1, 1]},
    }
    (file.parent / "open_clip_config.json").write_text(json.dumps(config))
    backbone = build(f"mine:{file}")
    assert_same(backbone, expected, test_clip, image=model, text=model)
    assert backbone.image.mean == (0, 0, 0)
    config["model_cfg"]["quick_gelu"] = False
    (file.parent / "open_clip_config.json").write_text(json.dumps(config))
    config["model_cfg"]["quick_gelu"] = True
    assert build(f"mine:{file}").weights_hash != backbone.weights_hash


def test_the_hash_is_that_of_the_content(file, tmp_path):
    here = build(f"test-clip:{file}").weights_hash
    listed = subprocess.run(["sha256sum", file], capture_output=True, text=True, check=True)
    assert here == listed.stdout.split()[0]
    (tmp_path / "sub").mkdir()
    moved = shutil.copy(file, tmp_path / "sub" / "other-name.pt")
    assert build(f"test-clip:{moved}").weights_hash == here
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    assert build(f"test-clip:{file}").weights_hash != here


def test_a_hash_is_computed_once(file, monkeypatch):
    first = build(f"test-clip:{file}").weights_hash
    monkeypatch.setattr("hashlib.file_digest", lambda *_: pytest.fail("hashed again"))
    assert build(f"test-clip:{file}").weights_hash == first


def test_building_does_not_disturb_what_is_drawn_next(file):
    torch.manual_seed(3)
    before = torch.get_rng_state()
    assert build(f"test-clip:{file}").model is not None
    assert torch.equal(torch.get_rng_state(), before)


def without(weights, name):
    return {key: value for key, value in weights.items() if key != name}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda w: without(w, "visual.proj"), ["missing: visual.proj"]),
        (lambda w: w | {"visual.extra": torch.ones(1)}, ["not in the model: visual.extra"]),
        (
            lambda w: w | {"visual.proj": torch.ones(32, 17)},
            ["visual.proj (32, 17) instead of (32, 16)"],
        ),
        (lambda w: part(w, image=True), ["missing:", "and 15 more", "no text tower", "IMAGE+TEXT"]),
        (lambda w: part(w, image=False), ["missing:", "no image tower"]),
    ],
)
def test_weights_that_do_not_fit(change, said, weights, tmp_path):
    save_file(change(weights), tmp_path / "odd.safetensors")
    backbone = build(f"test-clip:{tmp_path}/odd.safetensors")
    with pytest.raises(DataError) as caught:
        backbone.model  # noqa: B018
    for text in ["odd.safetensors", "do not fit", "test-clip", *said]:
        assert text in str(caught.value)


def test_the_model_that_would_fit_is_named():
    config = open_clip.get_model_config("ViT-S-32")
    with torch.device("meta"):
        shapes = {
            name: value.shape for name, value in open_clip.CLIP(**config).state_dict().items()
        }
    backbone = open_clip_backbone(
        "x",
        "ViT-M-32-alt",
        weights=lambda: {name: torch.zeros(shape) for name, shape in shapes.items()},
        weights_hash="x",
    )
    with pytest.raises(DataError, match=r"this is ViT-S-32\b"):
        backbone.model  # noqa: B018


def test_openai_archive_needs_openai_activation(weights, test_clip, tmp_path):
    save_archive(weights, tmp_path / "w.pt")
    plain = {"model_cfg": test_clip.config | {"quick_gelu": False}}
    (tmp_path / "open_clip_config.json").write_text(json.dumps(plain))
    with pytest.raises(RequestError, match="QuickGELU"):
        build(f"mine:{tmp_path}/w.pt").model  # noqa: B018


@pytest.fixture
def texts_file(tmp_path, expected, model):
    names = ["red", "green", "blue"]
    vectors = expected([f"a photo of a {name}." for name in names], model).numpy()
    np.savez(tmp_path / "names.npz", embeddings=vectors, texts=names)
    return tmp_path / "names.npz"


def test_texts_from_a_file(weights, model, test_clip, expected, texts_file, tmp_path):
    save_file(part(weights, image=True), tmp_path / "v.safetensors")
    backbone = build(f"test-clip:{tmp_path}/v.safetensors+{texts_file}")
    assert backbone.name == "test-clip:v.safetensors+names.npz"
    torch.testing.assert_close(backbone.encode_image(test_clip.pixels), expected(model=model))
    green = expected(["a photo of a green."], model)
    torch.testing.assert_close(backbone.encode_text(["a sketch of a green"]), green)
    assert backbone.has_text
    assert backbone.tokenizer is None
    assert backbone.logit_scale == pytest.approx(100)
    with pytest.raises(RequestError, match="purple"):
        backbone.encode_text(["purple"])
    with pytest.raises(RequestError, match="text tower"):
        backbone.model.text  # noqa: B018


def test_features_are_shared_where_the_image_tower_is(weights, texts_file, tmp_path):
    save_file(weights, tmp_path / "w.safetensors")
    both = build(f"test-clip:{tmp_path}/w.safetensors")
    mixed = build(f"test-clip:{tmp_path}/w.safetensors+{texts_file}")
    assert mixed.image_tower == both.image_tower == ("test-clip:w.safetensors", both.weights_hash)
    assert mixed.weights_hash != both.weights_hash


def test_text_embeddings_of_another_model(file, tmp_path):
    np.savez(tmp_path / "odd.npz", embeddings=np.eye(3), texts=["a", "b", "c"])
    with pytest.raises(DataError, match=r"odd\.npz have 3 numbers, those of test-clip 16"):
        build(f"test-clip:{file}+{tmp_path}/odd.npz")
    with pytest.raises(RequestError, match="no image tower"):
        build(f"test-clip:{tmp_path}/odd.npz")


def test_runs(toy_run, file, texts_file, weights, tmp_path):
    """Zero-shot by the text tower and by its embeddings in a file give the same predictions."""
    tower = toy_run("zero-shot", backbone=f"test-clip:{file}")
    looked_up = toy_run("zero-shot", backbone=f"test-clip:{file}+{texts_file}")
    assert looked_up.predictions_sha256 == tower.predictions_sha256
    assert looked_up.run_id != tower.run_id
    assert tower.spec["backbone"] == "test-clip:w.safetensors"
    assert tower.method["backbone"]["weights"]["sha256"] == tower.method["weights"]
    notes = looked_up.method["backbone"]
    assert notes["texts"]["examples"]["a photo of a red."] == "red"
    assert str(tmp_path) not in json.dumps([tower.spec, tower.method, looked_up.method])

    moved = tmp_path / "elsewhere"
    moved.mkdir()
    shutil.move(file, moved)
    again = toy_run("zero-shot", backbone=f"test-clip:{moved}/w.safetensors", out=tmp_path / "b")
    assert again.run_id == tower.run_id
    assert again.predictions_sha256 == tower.predictions_sha256


def test_a_method_that_needs_the_tower_says_so(toy_run, file, texts_file):
    with pytest.raises(RequestError, match="text tower"):
        toy_run("cvlc", backbone=f"test-clip:{file}+{texts_file}")


def test_a_cached_run_does_not_import_open_clip(toy_run, file, test_clip, tmp_path):
    """Nor does checking a name import torch."""
    (file.parent / "open_clip_config.json").write_text(json.dumps({"model_cfg": test_clip.config}))
    catalogue.cache_clear()  # so that this test's cache gets one
    toy_run("zero-shot", backbone=f"mine:{file}")
    code = (
        "import sys; from fsdil_bench.models.clip.names import check; check(sys.argv[1]);"
        "print('torch' in sys.modules);"
        "import fsdil_bench; fsdil_bench.run('zero-shot', 'toy-1shot', backbone=sys.argv[1],"
        "    plugins=[sys.argv[2]], out=sys.argv[3]);"
        "print('open_clip' in sys.modules)"
    )
    arguments = [f"mine:{file}", toy_plugin.__file__, str(tmp_path / "second")]
    command = [sys.executable, "-c", code, *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert result.stdout.split() == ["False", "False"]


@pytest.mark.slow
def test_the_usual_model_as_openai_published_it(tmp_path):
    torch.manual_seed(0)
    theirs = open_clip.create_model("ViT-B-16-quickgelu", load_weights=False).half().float().eval()
    sizes = {"input_resolution": 224, "context_length": 77, "vocab_size": 49408}
    save_archive(theirs.state_dict(), tmp_path / "ViT-B-16.pt", sizes)
    backbone = build(f"ViT-B-16-quickgelu:{tmp_path}/ViT-B-16.pt")
    pixels = torch.randn(2, 3, 224, 224)
    with torch.no_grad():
        expected = theirs.encode_image(pixels, normalize=True)
        words = theirs.encode_text(open_clip.tokenize(TEXTS), normalize=True)
    torch.testing.assert_close(backbone.encode_image(pixels), expected, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(backbone.encode_text(TEXTS), words, atol=1e-5, rtol=1e-4)
    with pytest.raises(RequestError, match="ViT-B-16-quickgelu"):
        build(f"ViT-B-16:{tmp_path}/ViT-B-16.pt").model  # noqa: B018
    with pytest.raises(DataError, match="this is ViT-B-16 or ViT-B-16-quickgelu"):
        build(f"ViT-B-32-quickgelu:{tmp_path}/ViT-B-16.pt").model  # noqa: B018
