"""What a name means, and what is said about one that means nothing."""

from __future__ import annotations

import json

import pytest

from fsdil_bench.errors import DataError, RequestError
from fsdil_bench.models.clip.catalogue import Catalogue, catalogue
from fsdil_bench.models.clip.names import resolve


@pytest.fixture
def here(monkeypatch, tmp_path):
    """A working folder with some files; their content does not matter for a name."""
    monkeypatch.chdir(tmp_path)
    for file in ("w.pt", "t.safetensors", "odd", "a+b.pt", "openai", "sub/w.pt"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).touch()
    return tmp_path


@pytest.mark.parametrize(
    ("name", "canonical"),
    [
        ("ViT-B-16-quickgelu:openai", "ViT-B-16-quickgelu:openai"),
        ("ViT-B/32:laion2b-s34b-b79k", "ViT-B-32:laion2b_s34b_b79k"),
        ("ViT-B-32:w.pt", "ViT-B-32:w.pt"),
        ("ViT-B-32:sub/w.pt", "ViT-B-32:w.pt"),
        ("ViT-B-32:odd", "ViT-B-32:odd"),
        ("ViT-B-32:a+b.pt", "ViT-B-32:a+b.pt"),
        ("ViT-B-32:w.pt+sub/w.pt", "ViT-B-32:w.pt+w.pt"),
        ("ViT-B-32:a+b.pt+t.safetensors", "ViT-B-32:a+b.pt+t.safetensors"),
        ("ViT-B-32-quickgelu:openai+t.safetensors", "ViT-B-32-quickgelu:openai+t.safetensors"),
        ("ViT-B-32-quickgelu:w.pt+openai", "ViT-B-32-quickgelu:w.pt+openai"),
    ],
)
@pytest.mark.usefixtures("here")
def test_canonical_names(name, canonical):
    assert str(resolve(name)) == canonical


def test_the_folder_is_not_in_the_name(here):
    assert str(resolve(f"ViT-B-32:{here}/sub/w.pt")) == "ViT-B-32:w.pt"


@pytest.mark.usefixtures("here")
def test_a_tag_wins_over_a_file_of_its_name():
    assert resolve("ViT-B-32-quickgelu:openai").image.tag == "openai"
    assert resolve("ViT-B-32-quickgelu:./openai").image.tag == ""


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("ViT-B16-quickgelu:openai", ["no model 'ViT-B16-quickgelu'", "ViT-B-16-quickgelu"]),
        ("vit-b-16:openai", ["no model 'vit-b-16'", "ViT-B-16"]),
        ("ViT-B-16-quickgelu:opnai", ["no weights 'opnai'", "openai", "dfn2b"]),
        ("ViT-B-16-quickgelu:missing.pt", ["missing.pt"]),
        ("ViT-B-16-quickgelu:nowhere/w", ["nowhere/w"]),
        ("ViT-B-16-quickgelu:sub", ["sub"]),
        ("ViT-B-16-quickgelu:openai+opnai", ["no weights 'opnai'", "openai"]),
        ("ViT-B-16-quickgelu:openai+", ["only one side"]),
        ("ViT-B-16-quickgelu:", ["which weights"]),
        ("ViT-B-16:openai", ["QuickGELU", "ViT-B-16-quickgelu"]),
        ("ViT-B-16:datacomp_xl_s13b_b90k+openai", ["QuickGELU", "ViT-B-16-quickgelu"]),
    ],
)
@pytest.mark.usefixtures("here")
def test_what_means_nothing_shows_what_would(name, said):
    with pytest.raises(RequestError) as caught:
        resolve(name)
    for text in said:
        assert text in str(caught.value)


def test_facts_of_the_usual_model():
    model = resolve("ViT-B-16-quickgelu:openai").architecture
    assert (model.embed_dim, model.image_size, model.quick_gelu) == (512, 224, True)
    assert model.mean == (0.48145466, 0.4578275, 0.40821073)
    assert model.std == (0.26862954, 0.26130258, 0.27577711)
    assert model.particulars == {}


def write_config(folder, **content):
    (folder / "open_clip_config.json").write_text(json.dumps(content))


def test_statistics_of_a_file(here):
    # All published weights of this model agree on others than OpenAI's.
    assert resolve("ViT-B-16-SigLIP:w.pt").architecture.mean == (0.5, 0.5, 0.5)
    assert resolve("ViT-B-32:w.pt").architecture.mean == (0.48145466, 0.4578275, 0.40821073)
    write_config(here, preprocess_cfg={"mean": [0.1, 0.2, 0.3], "std": [1, 1, 1]})
    beside = resolve("ViT-B-32:w.pt").architecture
    assert beside.mean == (0.1, 0.2, 0.3)
    assert beside.particulars == {"mean": (0.1, 0.2, 0.3), "std": (1, 1, 1)}
    assert resolve("ViT-B-32:sub/w.pt").architecture.particulars == {}


def test_a_config_beside_weights_knows_their_activation(here):
    write_config(here, model_cfg={"quick_gelu": True})
    with pytest.raises(RequestError, match="ViT-B-32-quickgelu"):
        resolve("ViT-B-32:w.pt")
    assert resolve("ViT-B-32-quickgelu:w.pt").architecture.quick_gelu


def test_a_model_of_ones_own_comes_with_its_config(here, test_clip):
    with pytest.raises(RequestError, match=r"open_clip_config\.json"):
        resolve("mine:w.pt")
    write_config(here, model_cfg=test_clip.config)
    mine = resolve("mine:w.pt")
    assert str(mine) == "mine:w.pt"
    assert mine.architecture.embed_dim == 16
    assert mine.architecture.particulars == {"config": test_clip.config}


@pytest.mark.parametrize("content", ["{", "1", '{"model_cfg": {"embed_dim": 16}}'])
def test_a_broken_config_is_named(here, content):
    (here / "open_clip_config.json").write_text(content)
    with pytest.raises(DataError, match=r"open_clip_config\.json"):
        resolve("mine:w.pt")


def test_the_catalogue_is_asked_for_once(monkeypatch, tmp_path):
    monkeypatch.setenv("FSDIL_CACHE", str(tmp_path))
    catalogue.cache_clear()
    first = catalogue()
    monkeypatch.setattr(
        "fsdil_bench.models.clip.catalogue._ask_open_clip", lambda: Catalogue({}, {})
    )
    catalogue.cache_clear()
    again = catalogue()
    assert json.loads(json.dumps(again)) == json.loads(json.dumps(first))
    assert "openai" in again.tags["ViT-B-16-quickgelu"]
    (file,) = tmp_path.glob("open-clip-*.json")
    file.write_text("damaged")
    catalogue.cache_clear()
    assert catalogue().models == {}
    catalogue.cache_clear()
