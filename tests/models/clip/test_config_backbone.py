"""Towers with a config of their own: `CONFIG.json:FILE` and `CONFIG.json:IMAGE+TEXT`."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import shutil
from pathlib import Path

import numpy as np
import open_clip
import pytest
import torch
from clip_world import CONFIG, random_model, save_archive
from packages import TOY
from safetensors.torch import save_file

from fsdil_bench.checks import check_method
from fsdil_bench.errors import DataError, RequestError
from fsdil_bench.forecast.calibration import TowerSpeed
from fsdil_bench.forecast.pass_cost import pass_cost
from fsdil_bench.models.clip.config_backbone import build
from fsdil_bench.models.clip.config_file import TOKENS
from fsdil_bench.models.clip.config_names import check
from fsdil_bench.models.clip.outline import config_outline, outline
from fsdil_bench.plugins.registry import load_registry

TEXTS = ["a photo of a red.", "green"]
BOTH = "config.json:visual.safetensors+text.safetensors"
TABLE = "config.json:visual.safetensors+names.npz"
#: Colours of the toy world.
NAMES = ["red", "green", "blue"]


def changed(**changes):
    """The config with some entries of its parts changed: `text_cfg={"width": 8}`."""
    config = copy.deepcopy(CONFIG)
    for name, value in changes.items():
        config[name] = config[name] | value if isinstance(value, dict) else value
    return config


def write(config, name="config.json"):
    Path(name).parent.mkdir(exist_ok=True)
    Path(name).write_text(json.dumps(config))


def embed(model, texts):
    with torch.no_grad():
        return model.encode_text(open_clip.tokenize(texts), normalize=True)


@pytest.fixture
def model():
    return random_model(0)


@pytest.fixture(autouse=True)
def here(monkeypatch, tmp_path, model):
    """A working folder with a config and the towers of one model: in one file, in two, and with a
    table of texts instead of a text tower."""
    monkeypatch.chdir(tmp_path)
    write(CONFIG)
    state = {name: value.contiguous() for name, value in model.state_dict().items()}
    image = {name: value for name, value in state.items() if name.startswith("visual.")}
    save_file(state, "both.safetensors")
    save_file(image, "visual.safetensors")
    save_file({n: v for n, v in state.items() if n not in image}, "text.safetensors")
    vectors = embed(model, [f"a photo of a {name}." for name in NAMES]).numpy()
    np.savez("names.npz", embeddings=vectors, texts=NAMES)
    return tmp_path


@pytest.mark.parametrize("weights", ["both.safetensors", "visual.safetensors+text.safetensors"])
def test_embeddings_are_those_of_open_clip(weights, model, test_clip):
    backbone = build(f"config.json:{weights}")
    with torch.no_grad():
        images = model.encode_image(test_clip.pixels, normalize=True)
    torch.testing.assert_close(backbone.encode_image(test_clip.pixels), images)
    torch.testing.assert_close(backbone.encode_text(TEXTS), embed(model, TEXTS))
    assert (backbone.embed_dim, backbone.image.size, backbone.has_text) == (16, 32, True)
    assert backbone.logit_scale == pytest.approx(model.logit_scale.exp().item())


def test_the_name_has_no_folders(here, monkeypatch):
    files = [here / name for name in ("config.json", "visual.safetensors", "text.safetensors")]
    assert build("{}:{}+{}".format(*files)).name == BOTH
    monkeypatch.setenv("HOME", str(here))
    assert build("~/config.json:~/both.safetensors").name == "config.json:both.safetensors"


def test_such_names_are_a_family_of_their_own():
    registry = load_registry()
    assert registry.backbone(BOTH).name == "open-clip-config"
    assert registry.backbone("mine:visual.safetensors").name == "open-clip"
    assert registry.backbone("mine:config.json").name == "open-clip"


def test_both_forms_of_a_config():
    usual = build(BOTH)
    assert usual.image.mean == (0.48145466, 0.4578275, 0.40821073)
    write({"model_cfg": CONFIG})
    assert build(BOTH).weights_hash == usual.weights_hash
    write({"model_cfg": CONFIG, "preprocess_cfg": {"mean": [0, 0, 0], "std": [1, 1, 1]}})
    other = build(BOTH)
    assert (other.image.mean, other.image.std) == ((0, 0, 0), (1, 1, 1))
    assert other.weights_hash != usual.weights_hash
    assert other.image_tower != usual.image_tower


def test_a_config_beside_the_weights_does_not_count():
    before = build(BOTH)
    write({"preprocess_cfg": {"mean": [0, 0, 0]}, "model_cfg": {}}, "open_clip_config.json")
    assert build(BOTH).weights_hash == before.weights_hash
    assert build(BOTH).image == before.image


def test_a_short_context(model):
    write(changed(text_cfg={"context_length": 9}))
    text = {n: v for n, v in model.state_dict().items() if not n.startswith("visual.")}
    text["positional_embedding"] = text["positional_embedding"][:9].contiguous()
    save_file(text, "text.safetensors")
    backbone = build(BOTH)
    assert backbone.tokenizer(["red"]).shape == (1, 9)
    # No token looks at later ones, so what is cut off made no difference.
    torch.testing.assert_close(backbone.encode_text(TEXTS), embed(model, TEXTS))


def test_texts_from_a_table(model):
    """What the config says of a text tower does not count then, whatever it is."""
    usual = build(TABLE)
    torch.testing.assert_close(usual.encode_text(TEXTS[:1]), embed(model, TEXTS[:1]))
    assert usual.logit_scale == pytest.approx(100)
    write(changed(text_cfg={"hf_model_name": "roberta-base"}))
    assert build(TABLE).weights_hash == usual.weights_hash
    write({name: value for name, value in CONFIG.items() if name != "text_cfg"})
    backbone = build(TABLE)
    assert backbone.weights_hash == usual.weights_hash
    assert backbone.tokenizer is None
    with pytest.raises(RequestError, match="text tower"):
        backbone.model.text  # noqa: B018


def flip_last_byte(name):
    content = bytearray(Path(name).read_bytes())
    content[-1] ^= 1
    Path(name).write_bytes(content)


@pytest.mark.parametrize(
    ("change", "images_differ"),
    [
        (lambda: flip_last_byte("visual.safetensors"), True),
        (lambda: flip_last_byte("text.safetensors"), False),
        (lambda: write(changed(text_cfg={"heads": 1})), False),
        (lambda: write(changed(vision_cfg={"head_width": 8})), True),
        (lambda: write(changed(quick_gelu=False)), True),
    ],
)
def test_every_file_counts_and_images_are_shared_where_their_side_is(change, images_differ):
    before = build(BOTH)
    change()
    after = build(BOTH)
    assert after.weights_hash != before.weights_hash
    assert (after.image_tower != before.image_tower) is images_differ


def test_names_and_layout_of_a_config_do_not_count():
    before = build(BOTH)
    Path("other.json").write_text(json.dumps(CONFIG, indent=8, sort_keys=True))
    after = build(BOTH.replace("config.json", "other.json"))
    assert after.weights_hash == before.weights_hash
    assert after.image_tower == before.image_tower


def load(name):
    check(name)
    return build(name).model


def refuse(name, *said):
    """What is said of a name before anything is loaded, or of its files when they are."""
    with pytest.raises((RequestError, DataError)) as caught:
        load(name)
    for text in (*said, caught.value.remedy):
        assert text
        assert text in str(caught.value)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("missing.json:both.safetensors", ["missing.json cannot be read", "No such file"]),
        ("sub.json:both.safetensors", ["sub.json cannot be read", "directory"]),
        ("config.json:missing.pt", ["no file of weights missing.pt"]),
        ("config.json:openai", ["no file of weights openai", "never a tag"]),
        ("config.json:both.safetensors+missing.pt", ["no file of weights missing.pt"]),
        ("config.json:both.safetensors+", ["only one side"]),
        ("config.json:names.npz", ["no image tower", "CONFIG.json:IMAGE+TEXT"]),
        ("config.json:visual.safetensors", ["do not fit", "config.json", "second file"]),
        ("config.json:text.safetensors", ["do not fit", "config.json", "no image tower"]),
        ("config.json:text.safetensors+visual.safetensors", ["missing: ", "no image tower"]),
        ("config.json:config.json", ["config.json is damaged, or no checkpoint"]),
    ],
)
def test_names_that_mean_nothing(name, said):
    Path("sub.json").mkdir()
    refuse(name, *said)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", ["not JSON"]),
        ("{'embed_dim': 16}", ["not JSON"]),
        ("[" * 100_000, ["not JSON"]),
        ("[16]", ["not a JSON object"]),
        ('{"model_cfg": 3}', ["embed_dim, vision_cfg, text_cfg missing"]),
        ('{"projection_dim": 512, "vision_config": {}}', ["embed_dim", "missing"]),
        (changed(embed_dim="16"), ["embed_dim is '16', not a whole number"]),
        (CONFIG | {"vision_cfg": []}, ["vision_cfg is [], not an object"]),
        (changed(quick_gelu="false"), ["quick_gelu is 'false', not true or false"]),
        (changed(vision_cfg={"image_size": "32"}), ["image_size is '32'"]),
        (changed(vision_cfg={"image_size": []}), ["image_size is []"]),
        (changed(vision_cfg={"image_size": [32, 16]}), ["[32, 16], not the side of a square"]),
        (changed(vision_cfg={"timm_model_name": "hf-hub:a/b"}), ["'hf-hub:a/b' from elsewhere"]),
        (changed(vision_cfg={"timm_model_name": "vit_nowhere"}), ["cannot build", "vit_nowhere"]),
        (changed(vision_cfg={"nonsense": 1}), ["cannot build config.json", "nonsense"]),
        (changed(text_cfg={"hf_model_name": "roberta-base"}), ["roberta-base", "downloaded"]),
        (changed(text_cfg={"hf_tokenizer_name": "x/y"}), ["tokenizer 'x/y'", "names.npz"]),
        (changed(text_cfg={"tokenizer_kwargs": {"bpe_path": "f"}}), ["more than 'clean'"]),
        (changed(text_cfg={"vocab_size": 100}), ["vocab_size is 100", str(TOKENS)]),
        ({"model_cfg": CONFIG, "preprocess_cfg": 3}, ["preprocess_cfg is no object"]),
        ({"model_cfg": CONFIG, "preprocess_cfg": {"mean": [0, 1]}}, ["mean is [0, 1]"]),
        ({"model_cfg": CONFIG, "preprocess_cfg": {"std": [1, 1, 0]}}, ["three numbers above 0"]),
        ({"model_cfg": CONFIG, "preprocess_cfg": {"std": [1, 1, float("nan")]}}, ["std is"]),
    ],
)
def test_configs_that_are_none(content, said):
    Path("config.json").write_text(content if isinstance(content, str) else json.dumps(content))
    refuse(BOTH, "config.json", *said)


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (changed(embed_dim=8), "visual.proj (32, 16) instead of (32, 8)"),
        (changed(vision_cfg={"layers": 3}), "missing: visual.transformer.resblocks.2"),
        (changed(vision_cfg={"layers": 1}), "not in the model: visual.transformer.resblocks.1"),
        (changed(vision_cfg={"image_size": 64}), "visual.positional_embedding (5, 32) instead"),
        (changed(text_cfg={"width": 8}), "ln_final.bias (16,) instead of (8,)"),
        (changed(text_cfg={"context_length": 9}), "positional_embedding (77, 16) instead of (9"),
    ],
)
@pytest.mark.parametrize("weights", ["both.safetensors", "visual.safetensors+text.safetensors"])
def test_a_config_of_another_model(config, weights, said, here):
    write(config)
    refuse(f"config.json:{weights}", "do not fit", said, str(here / "config.json"))


def test_openai_archives_need_their_activation(model):
    save_archive(model.state_dict(), "w.pt")
    build("config.json:w.pt").model  # noqa: B018
    write(changed(quick_gelu=False))
    refuse("config.json:w.pt", "QuickGELU", "config.json has GELU")


def test_embeddings_of_another_width():
    np.savez("names.npz", embeddings=np.eye(3), texts=NAMES)
    with pytest.raises(DataError, match=r"names\.npz have 3 numbers, but embed_dim of .* is 16"):
        build(TABLE)


def test_timm_fetches_nothing(monkeypatch):
    """Its weights would be replaced by those of the files in any case."""
    asked = []

    def refuse_weights(*args, pretrained=False, **kwargs):
        asked.append(pretrained)
        raise RuntimeError("enough")

    monkeypatch.setattr("timm.create_model", refuse_weights)
    tower = {"timm_model_name": "vit_tiny_patch16_224", "timm_model_pretrained": True}
    write(changed(vision_cfg=tower))
    refuse(BOTH, "cannot build", "enough")
    assert asked == [False]


def test_the_number_of_tokens_is_open_clips():
    assert open_clip.SimpleTokenizer().vocab_size == TOKENS


@pytest.mark.usefixtures("test_clip")
def test_a_record_says_which_files(toy_run, here):
    """Also that the towers predict what they do under another name, and wherever they are."""
    record = toy_run("zero-shot", backbone=BOTH)
    assert record.spec["backbone"] == BOTH
    said = record.method["backbone"]
    assert set(said) == {"config", "image", "text"}
    files = ("config.json", "visual.safetensors", "text.safetensors")
    for side, name in zip(said.values(), files, strict=True):
        sha256 = hashlib.sha256(Path(name).read_bytes()).hexdigest()
        assert side == {"from": name, "sha256": sha256}
    assert str(here) not in json.dumps([record.spec, record.method, record.provenance])

    one = toy_run("zero-shot", backbone="config.json:both.safetensors")
    assert set(one.method["backbone"]) == {"config", "weights"}
    named = toy_run("zero-shot", backbone="test-clip:both.safetensors")
    table = toy_run("zero-shot", backbone=TABLE)
    for other in (one, named, table):
        assert other.predictions_sha256 == record.predictions_sha256
        assert other.run_id != record.run_id

    place = here / "elsewhere"
    place.mkdir()
    moved = [shutil.move(name, place / name) for name in files]
    again = toy_run("zero-shot", backbone="{}:{}+{}".format(*moved), out=here / "again")
    assert again.run_id == record.run_id


def cached(pattern):
    return {path.name for path in Path(os.environ["FSDIL_CACHE"]).glob(pattern)}


def test_features_are_shared_by_the_image_side(toy_run):
    toy_run("ncm", backbone=BOTH)
    [first] = cached("features-*.sqlite")
    toy_run("zero-shot", backbone=TABLE)
    write(changed(text_cfg={"heads": 1}), "other.json")
    other = BOTH.replace("config.json", "other.json")
    one_head = toy_run("zero-shot", backbone=other)
    assert cached("features-*.sqlite") == {first}
    write(changed(vision_cfg={"head_width": 8}))
    more_heads = toy_run("ncm", backbone=BOTH)
    assert len(cached("features-*.sqlite")) == 2
    assert len({one_head.run_id, more_heads.run_id}) == 2


def test_sealed_runs(toy_run):
    usual = toy_run("toy-means", backbone=BOTH)
    sealed = toy_run("toy-means", backbone=BOTH, sealed=True)
    assert sealed.predictions_sha256 == usual.predictions_sha256


def test_commands(call, here):
    """`call` works in the folder of this test: a recorded name is then the name of files there."""
    run = ["--method", "ncm", "--scenario", "toy-1shot", "--backbone", BOTH, "--plugin", TOY]
    code, out, err = call("run", *run, "-q")
    assert code == 0, err
    [folder] = (here / "runs/toy-1shot/ncm").iterdir()
    code, out, err = call("show", folder, "--plot", "embeddings", "--out", "x.png", "--plugin", TOY)
    assert code == 0, err
    code, out, err = call("verify", "runs", "--plugin", TOY, "-q", "--out", "again")
    assert code == 0, err
    code, out, err = call("list", "backbones")
    assert "<CONFIG>.json:<files>" in " ".join(out.split())

    Path("config.json").rename("moved.json")
    code, out, err = call("verify", "runs", "--plugin", TOY, "-q", "--out", "third")
    assert code != 0
    assert "config.json cannot be read" in out + err
    assert "Traceback" not in err
    code, out, err = call("run", *run, "-q")
    assert (code, "config.json cannot be read" in err) == (2, True)


def test_checks_of_methods():
    findings = check_method("slda", backbone=BOTH)
    assert findings
    assert [each for each in findings if not each.passed] == []


def test_costs(call, test_clip, monkeypatch):
    """Counted and measured for this config, not for another one of the same name."""
    named = outline(f"{test_clip.name}:both.safetensors")
    assert pass_cost(config_outline(BOTH)) == pass_cost(named)
    table = pass_cost(config_outline(TABLE))
    assert table.text is None
    assert table.image == pass_cost(named).image

    measured = []

    def speeds(backbone, cost, *_):
        measured.append((backbone.name, cost.image.blocks))
        return {tower: TowerSpeed(1.0, 1.0) for tower in ("image", "text")}

    monkeypatch.setattr("fsdil_bench.forecast.calibration.tower_speeds", speeds)
    arguments = ["cost", "ncm", "drawn-1shot", "--backbone", BOTH, "--precision", "fp32"]
    arguments += ["--order", "real,sketch", "--base-limit", "2"]
    for layers in (2, 2, 4):
        write(changed(vision_cfg={"layers": layers}))
        code, out, err = call(*arguments)
        assert code == 0, err
        assert BOTH in out
    assert measured == [(BOTH, 2), (BOTH, 4)]
