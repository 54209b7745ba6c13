"""Backbones by name, families of them, and texts that were embedded elsewhere."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
import toy_plugin
from click.testing import CliRunner

import fsdil_bench
from fsdil_bench import Backbone, BackboneInfo, ImageSpec, KnownTexts
from fsdil_bench.cli import cli
from fsdil_bench.data.transforms import build_transform
from fsdil_bench.errors import PluginError, RequestError
from fsdil_bench.plugins.registry import load_registry

FAMILY = """
from fsdil_bench import BackboneInfo, hookimpl
import toy_plugin

def build(name):
    if name == "toy#broken":
        raise OSError("disk on fire")
    backbone = toy_plugin.build_backbone()
    backbone.name = name.upper()
    return backbone

def check(name):
    from fsdil_bench import RequestError
    if name == "toy#0":
        raise RequestError("there is no toy#0", "Begin with 1.")

@hookimpl
def fsdil_backbones():
    return [BackboneInfo("toys", "toys", build, pattern="toy#<n>", example="toy#1", check=check)]
"""


@pytest.fixture
def run(tmp_path):
    """Run a toy method with the family's plugin."""
    (tmp_path / "families.py").write_text(FAMILY)
    plugins = [toy_plugin.__file__, tmp_path / "families.py"]

    def run_it(**options):
        return fsdil_bench.run("toy-means", "toy-1shot", plugins=plugins, out=tmp_path, **options)

    return run_it


@pytest.mark.parametrize(
    ("pattern", "name", "fits"),
    [
        ("<MODEL>:<weights>", "ViT-B-16:openai", True),
        ("<MODEL>:<weights>", "m:/a/b:c", True),
        ("<MODEL>:<weights>", "m:", False),
        ("<MODEL>:<weights>", ":w", False),
        ("<MODEL>:<weights>", "tiny-clip", False),
        ("toy#<n>", "toy#1", True),
        ("toy#<n>", "joy#1", False),
        ("a.b<n>", "axb1", False),
        ("", "the-name", True),
        ("", "another", False),
    ],
)
def test_what_a_family_covers(pattern, name, fits):
    assert BackboneInfo("the-name", "", "m:f", pattern=pattern).covers(name) is fits


def test_a_plain_name_comes_before_families():
    registry = load_registry()
    assert registry.backbone("tiny-clip").name == "tiny-clip"
    assert registry.backbone("ViT-B-16-quickgelu:openai").name == "open-clip"


@pytest.mark.parametrize("name", ["tinyclip", "open-clip", "ViT-B-16", ""])
def test_an_unknown_backbone_shows_what_there_is(name):
    with pytest.raises(RequestError) as caught:
        load_registry().backbone(name)
    for text in (f"'{name}'", "tiny-clip", "<MODEL>:<weights>", "ViT-B-16-quickgelu:openai"):
        assert text in str(caught.value)


def test_a_run_records_the_name_that_the_backbone_gives_itself(run):
    record = run(backbone="toy#1")
    assert record.spec["backbone"] == "TOY#1"
    plain = run(backbone="toy-clip")
    assert plain.spec["backbone"] == "toy-clip"
    assert "backbone" not in plain.method
    assert plain.predictions_sha256 == record.predictions_sha256


def test_a_family_checks_names_before_anything_else(run):
    with pytest.raises(RequestError, match="Begin with 1"):
        run(backbone="toy#0", order=["no such domain"])


def test_a_backbone_that_cannot_be_loaded_is_named(run):
    with pytest.raises(PluginError, match="'toy#broken' cannot be loaded: OSError: disk on fire"):
        run(backbone="toy#broken")


def test_listing_shows_the_form_of_a_family_and_an_example():
    rows = json.loads(CliRunner().invoke(cli, ["list", "backbones", "--json"]).stdout)
    shown = {row["backbone"]: row["example"] for row in rows}
    assert shown["<MODEL>:<weights>"] == "ViT-B-16-quickgelu:openai"
    assert shown["tiny-clip"] == ""


def test_known_texts_take_the_place_of_a_text_tower():
    known = KnownTexts(["red", "green"], np.eye(2, 16), source="two names")
    backbone = Backbone(
        "b", build=toy_plugin.ToyModel, weights_hash="x", image=ImageSpec(8), embed_dim=16,
        known_texts=known, notes={"from": "here"},
    )  # fmt: skip
    assert backbone.has_text
    backbone.place(torch.device("cpu"), "fp32", None, ["red", "dark red"])
    assert backbone.encode_text(["a red"]).tolist() == np.eye(1, 16).tolist()
    with pytest.raises(RequestError, match="dark red"):
        backbone.encode_text(["a dark red"])
    assert backbone.notes["from"] == "here"
    assert backbone.notes["texts"]["examples"] == {"a red": "red"}
    assert backbone._model is None  # looked up, not computed


def test_building_the_model_takes_no_random_numbers():
    """When it is built depends on the cache; what a method draws must not."""
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    assert toy_plugin.build_backbone().model is not None
    assert torch.equal(torch.rand(3), expected)


def test_what_inference_mode_has_touched_first_can_still_be_trained():
    """Models and constants are made when first needed: that may be in a method's fast path."""
    backbone = toy_plugin.build_backbone()
    transform = build_transform("clip", ImageSpec(8, mean=(0.1, 0.2, 0.3), std=(0.4, 0.5, 0.6)))
    views, cpu = torch.ones(2, 3, 8, 8), torch.device("cpu")
    with torch.inference_mode():
        backbone.encode_image(transform.normalise(views, cpu))
        backbone.encode_text(["a thing"])
        tower = backbone.visual_copy()
    for module in (tower, backbone.visual_copy()):
        pixels = transform.normalise(views.clone().requires_grad_(), cpu)
        module(pixels).sum().backward()
        assert all(weight.grad is not None for weight in module.parameters())
    assert not any(weight.is_inference() for weight in backbone.model.parameters())


def test_outputs_come_as_they_are_whatever_else_is_in_the_batch():
    """Wider than embeddings, not of unit length, with a row of another tensor for every image."""
    backbone = toy_plugin.build_backbone()
    pixels, others = torch.randn(40, 3, 8, 8), torch.arange(40.0)[:, None]
    shapes = []

    def encode(images, rows):
        shapes.append((len(images), len(rows)))
        assert not torch.is_grad_enabled()
        return torch.cat([images.flatten(1), rows], 1)

    found = backbone.run_with(encode, pixels, others)
    assert torch.equal(found, torch.cat([pixels.flatten(1), others], 1))
    assert shapes == [(32, 32), (8, 8)]  # nothing is computed that nobody asked for
    assert backbone.run_with(encode, pixels[:0], others[:0]).shape == (0, found.shape[1])
    counts = torch.arange(40)
    numbers = backbone.run_with(lambda images, rows: rows[:, None] * 2, pixels, counts)
    assert torch.equal(numbers[:, 0], 2.0 * counts)


def short_of_memory(limit, calls):
    """An encoder that has memory for so many images."""

    def encode(images):
        calls.append(len(images))
        if len(images) > limit:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return images.flatten(1)

    return encode


def test_where_memory_runs_out_the_batch_size_is_halved_and_said_once():
    backbone, calls, said = toy_plugin.build_backbone(), [], []
    backbone.place(torch.device("cpu"), "fp32", None, batch_size=32)
    backbone.say = said.append
    pixels = torch.randn(50, 3, 8, 8)
    encode = short_of_memory(10, calls)
    assert torch.equal(backbone.run_with(encode, pixels), pixels.flatten(1))
    assert calls == [32, 16, *[8] * 6, 2]
    assert backbone.batch_size == 8
    assert said == [
        "warning: 32 images at a time do not fit into the memory of cpu; continuing with 8 "
        "(--batch-size 8)"
    ]
    del calls[:]
    backbone.embed_with(encode, pixels)  # for the rest of the run, without another word
    assert calls == [*[8] * 6, 2]
    assert len(said) == 1


def test_memory_for_not_even_one_image():
    backbone = toy_plugin.build_backbone()
    with pytest.raises(RequestError, match="a single image does not fit") as caught:
        backbone.run_with(short_of_memory(0, []), torch.zeros(4, 3, 8, 8))
    assert "--device cpu" in caught.value.remedy


def test_features_and_texts_that_are_kept_do_with_less_memory_too(monkeypatch):
    model, said = toy_plugin.ToyModel(), []
    backbone, plain = toy_plugin.build_backbone(), toy_plugin.build_backbone()
    backbone._build = lambda: model
    backbone.say = said.append
    for name in ("encode_image", "encode_text"):
        encode = getattr(model, name)

        def limited(rows, encode=encode):
            if len(rows) > 8:
                raise torch.OutOfMemoryError
            return encode(rows)

        monkeypatch.setattr(model, name, limited)
    pixels, texts = torch.randn(20, 3, 8, 8), [f"text {i}" for i in range(20)]
    torch.testing.assert_close(backbone.frozen_features(pixels), plain.frozen_features(pixels))
    torch.testing.assert_close(backbone.encode_text(texts), plain.encode_text(texts))
    assert len(said) == 1


def test_the_batch_size_is_an_option_of_no_consequence(run):
    one, other = run(), run(batch_size=5, fresh=True)
    assert one.provenance["batch_size"] == 32
    assert other.provenance["batch_size"] == 5
    assert one.run_id == other.run_id
    assert one.predictions_sha256 == other.predictions_sha256
    with pytest.raises(RequestError, match="batch_size = 0 is out of range"):
        run(batch_size=0)


def test_only_what_is_kept_is_padded():
    """A method's own passes hold its images alone; a kept embedding has always the same company."""
    model, sizes = toy_plugin.ToyModel(), []
    backbone = toy_plugin.build_backbone()
    backbone._build = lambda: model
    encode, encode_text = model.encode_image, model.encode_text
    model.encode_image = lambda pixels: [sizes.append(len(pixels)), encode(pixels)][1]
    model.encode_text = lambda tokens: [sizes.append(len(tokens)), encode_text(tokens)][1]
    backbone.place(torch.device("cpu"), "fp32", None, batch_size=256)
    backbone.encode_image(torch.zeros(40, 3, 8, 8))
    assert sizes == [40]
    backbone.frozen_features(torch.zeros(40, 3, 8, 8))
    backbone.encode_text(["red"])
    assert sizes == [40, 32, 32, 32]
