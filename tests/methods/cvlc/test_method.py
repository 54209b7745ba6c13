"""CVLC as a whole, on a small random CLIP and a toy stream."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
import toy_plugin
from fsdil_methods import fsdil_methods
from fsdil_methods.cvlc import method as cvlc
from fsdil_methods.cvlc.config import AUTHORS, PAPER, Config
from fsdil_methods.cvlc.method import CVLC
from fsdil_methods.cvlc.tower_additions import Additions
from looping import run_loop
from open_clip.model import CLIP

from fsdil_bench import Backbone, Batch, Context, ImageSpec
from fsdil_bench.adapters import TowerShape, count_parameters
from fsdil_bench.data.shots import draw_shots
from fsdil_bench.data.transforms import build_transform
from fsdil_bench.plugins.options import resolve
from fsdil_bench.progress import Progress
from fsdil_bench.runs.pictures import Pictures
from fsdil_bench.runs.run_folder import RunFolder

QUICK = Config(
    base_epochs=1, epochs=2, batch_size=16, least_views=4, candidates=12, templates=("{}", "{} .."),
    shared_blocks=2,
)  # fmt: skip


def build_model() -> CLIP:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        vision = {"image_size": 8, "patch_size": 4, "width": 32, "layers": 3, "head_width": 16}
        text = {"context_length": 8, "vocab_size": 66, "width": 32, "heads": 2, "layers": 3}
        return CLIP(embed_dim=16, vision_cfg=vision, text_cfg=text)


def tokenize(texts):
    tokens = toy_plugin.tokenize(texts)
    lengths = [min(6, len(text.split())) for text in texts]
    rows = torch.zeros(len(texts), 8, dtype=torch.long)
    rows[:, 1:7] = tokens
    for row, length in zip(rows, lengths, strict=True):
        row[length + 1 :] = 0
        row[length + 1] = 65
    return rows


@pytest.fixture
def backbone():
    return Backbone(
        "small", build=build_model, weights_hash="small", image=ImageSpec(8), embed_dim=16,
        tokenizer=tokenize,
    )  # fmt: skip


@pytest.fixture(autouse=True)
def _one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def play(backbone, tmp_path):
    """Run CVLC on the toy stream; returns the method and the outcome."""
    stream = draw_shots(toy_plugin.build_stream(domains=3), 2, 0)

    def run(config=QUICK, name="run", domains=3, synonyms=stream.synonyms):
        part = replace(stream, domains=stream.domains[:domains])
        transform = build_transform("clip", backbone.image)
        pictures = Pictures(part, backbone, transform, tmp_path / "cache", Progress())
        context = Context(config, backbone, stream.class_names, synonyms, 0)
        method = CVLC(context)
        folder = RunFolder(tmp_path / name)
        folder.path.mkdir(exist_ok=True)
        return method, run_loop("cvlc", method, part, pictures, 0, True, folder, Progress())

    return run


def copies(module):
    return {name: value.clone() for name, value in module.state_dict().items()}


def test_it_runs_and_reports(play):
    method, outcome = play()
    assert [len(row) for row in outcome.matrix] == [1, 2, 3]
    assert len(outcome.routing) == 3
    assert outcome.routing[0] == 100
    assert len(outcome.oracle_matrix[2]) == 3
    assert set(outcome.diagnostics[1]) >= {"visual_share", "vision_power"}
    assert method.prototypes.shape == (3, 3, 16)


def test_same_seed_same_weights(play):
    one, two = play(name="a")[0].state_dict(), play(name="b")[0].state_dict()
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_a_stopped_run_continues_identically(play):
    whole = play(name="whole")[0].state_dict()
    play(name="stopped", domains=2)
    resumed, outcome = play(name="stopped")
    assert outcome.resumed_after == 2
    state = resumed.state_dict()
    assert all(torch.equal(whole[name], state[name]) for name in whole)


def test_earlier_domains_stay_bit_identical_and_shared_parts_move(play):
    after_one, _ = play(name="one", domains=1)
    base, shared = copies(after_one.weights.domain(0)), copies(after_one.weights.shared_vision)
    after_three, _ = play(name="three")
    now = after_three.weights.domain(0).state_dict()
    assert all(torch.equal(base[name], now[name]) for name in base)
    moved = after_three.weights.shared_vision.state_dict()
    assert not any(torch.equal(shared[name], moved[name]) for name in shared)


def test_predictions_do_not_depend_on_the_batch(play, backbone):
    method, _ = play()
    batch = Batch(torch.randn(9, 3, 8, 8), torch.nn.functional.normalize(torch.randn(9, 16)))
    whole = method.predict(batch)
    single = [method.predict(batch.select(torch.tensor([i]))) for i in range(9)]
    assert torch.equal(whole, torch.cat(single))
    assert method.embed(batch).norm(dim=1).allclose(torch.ones(9))


def test_state_holds_nothing_that_grows_with_the_images(play):
    """Per domain: additions, calibration, prototypes and one Gaussian."""
    two, three = (play(name=str(n), domains=n)[0].state_dict() for n in (2, 3))
    sizes = [sum(v.numel() for v in state.values()) for state in (two, three)]
    prototypes, gaussian = 3 * 16, 16 + 16 * 16
    specific = sum(v.numel() for k, v in two.items() if k.startswith("weights.domains.1."))
    assert sizes[1] - sizes[0] == prototypes + gaussian + specific


def test_every_variant_is_cvlc_under_other_options():
    infos = {i.name: i for i in fsdil_methods() if i.name.startswith("cvlc")}
    assert len(infos) == 9
    for info in infos.values():
        config = resolve(Config, info.overrides, owner="m", see="s")
        assert (config == Config()) == (info.name in ("cvlc", "cvlc-paper"))
    for preset in CVLC.presets.values():
        resolve(Config, preset, owner="m", see="s")


def test_backbone_is_untouched(play, backbone):
    before = copies(backbone.model)
    play()
    assert all(torch.equal(before[n], v) for n, v in backbone.model.state_dict().items())


def test_all_specific_with_oracle_routing_forgets_only_through_prototypes(play):
    """Without shared blocks the encoders of old domains never change again."""
    config = replace(QUICK, shared_blocks=0)
    one, _ = play(config, "one", domains=1)
    three, _ = play(config, "three")
    pixels = torch.randn(4, 3, 8, 8)
    adapters = (one.weights.vision_adapters(0), three.weights.vision_adapters(0))
    assert torch.equal(one._encode(pixels, adapters[0]), three._encode(pixels, adapters[1]))
    assert not list(three.weights.shared_vision.parameters())


@pytest.mark.parametrize(
    "change",
    [
        {"adapter": "lora"},
        {"adapter": "prompt"},
        {"reservation": False},
        {"shared_blocks": 0},
        {"templates": ("{} ..",), "synonyms": False},
        {"synonyms": False},
        {"text": False},
        {"gamma": 0.0},
        {"lr": 1e-2},
        {"weight_decay": 1.0},
        {"fuse_text_at_store": False},
        {"least_views": 8},
        {"vision_own": 0.1},
        {"mode": "authors"},
        {"domain_rule": "class-pooled"},
        {"domain_rule": "authors"},
        {"domain_views": "mixed"},
        {"domain_power": True},
        {"similarity": "raw"},
        {"similarity": "authors"},
        {"shift_std": 0.0},
        {"frozen_classifier": True},
        {"drop_last": True},
    ],
    ids=str,
)
def test_every_option_changes_what_is_learned(play, change):
    plain, other = play(name="plain")[0].state_dict(), play(replace(QUICK, **change), "other")[0]
    state = other.state_dict()
    same = plain.keys() == state.keys() and all(
        plain[name].shape == state[name].shape and torch.equal(plain[name], state[name])
        for name in plain
    )
    assert not same


@pytest.mark.parametrize(("drop", "left"), [(False, 36), (True, 32)])
def test_drop_last_rules_training_and_statistics_of_the_base(play, monkeypatch, drop, left):
    """36 base images in batches of 16: the last 4 count everywhere or nowhere."""
    trained, reserved, stored = [], [], []

    def note(seen, real):
        return lambda *given, **options: seen.append(len(given[0])) or real(*given, **options)

    embed = CVLC._embed_training
    monkeypatch.setattr(
        CVLC, "_embed_training", lambda *given: trained.append(len(given[1])) or embed(*given)
    )
    monkeypatch.setattr(cvlc, "class_gaussians", note(reserved, cvlc.class_gaussians))
    monkeypatch.setattr(cvlc, "class_means", note(stored, cvlc.class_means))
    play(replace(QUICK, drop_last=drop), domains=1)
    assert (sum(trained), sum(reserved), sum(stored)) == (left, left, left)
    assert len(reserved) == len(stored) == 1


def moments(features):
    """Mean and unbiased covariance of PowerNorm-ed unit vectors, with the ridge of both loads."""
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    z = np.sign(unit) * (np.abs(unit) + 1e-8) ** 0.8
    return z.mean(0), np.cov(z.T) + 2e-3 * np.eye(z.shape[1])


@pytest.mark.parametrize(
    ("mode", "drop", "left_out"),
    [("paper", None, 0), ("authors", None, 4), ("paper", True, 4), ("authors", False, 0)],
)
def test_reservation_counts_the_images_that_are_not_left_out(
    play, monkeypatch, mode, drop, left_out
):
    """Which ones is found by trial: of each class, only one selection has these moments."""
    known = []
    originals = CVLC._originals

    def note(self, domain):
        found = originals(self, domain)
        known.append((domain.features().double().numpy(), domain.labels.numpy(), found))
        return found

    monkeypatch.setattr(CVLC, "_originals", note)
    play(replace(QUICK, mode=mode, drop_last=drop), domains=1)
    [(features, labels, found)] = known
    gone = 0
    for k in range(3):
        own = features[labels == k]
        selections = [
            np.delete(own, list(without), 0)
            for count in range(5)
            for without in itertools.combinations(range(len(own)), count)
        ]
        fits = [
            rows
            for rows in selections
            if np.allclose(moments(rows)[0], found.means[k].numpy(), rtol=0, atol=1e-6)
        ]
        [rows] = fits
        covariance = found.covariances[k].numpy()
        np.testing.assert_allclose(covariance, moments(rows)[1], rtol=0, atol=1e-6)
        gone += len(own) - len(rows)
    assert (len(features), gone) == (36, left_out)


def test_few_shot_domains_use_every_image_in_either_mode(play, monkeypatch):
    seen = []
    embed = CVLC._embed_training
    monkeypatch.setattr(
        CVLC,
        "_embed_training",
        lambda *given: seen.append((given[2], len(given[1]))) or embed(*given),
    )
    play(
        replace(QUICK, mode="authors", batch_size=4, epochs=1), domains=2
    )  # 6 images after the base
    assert [size for t, size in seen if t] == [4, 2]


def test_a_class_without_synonyms_is_its_name(play):
    """The others are as they would be with synonyms for all; nothing crashes with none at all."""
    words = (("crimson",), ("verdant",), ("azure",))

    def texts(synonyms, name, config=QUICK):
        return play(replace(config, base_epochs=0), name, domains=1, synonyms=synonyms)[0]._text(0)

    full, part = texts(words, "full"), texts((words[0], (), words[2]), "part")
    none, empty = texts((), "none"), texts(((), (), ()), "empty")
    assert torch.allclose(part[[0, 2]], full[[0, 2]])
    assert torch.allclose(part[1], none[1])
    assert not torch.allclose(full[1], none[1])
    assert torch.equal(empty, none)


def test_no_more_synonyms_count_than_asked_for(play):
    words = (("crimson", "ruby"), ("verdant", "leafy"), ("azure", "cobalt"))

    def texts(synonyms, name, **options):
        config = replace(QUICK, base_epochs=0, **options)
        return play(config, name, domains=1, synonyms=synonyms)[0]._text(0)

    one, both = texts(words, "one", most_synonyms=1), texts(words, "both")
    assert torch.equal(one, texts([each[:1] for each in words], "first"))
    assert not torch.allclose(one, both)


def test_it_learns_where_some_classes_have_no_synonyms(play):
    method, outcome = play(synonyms=((), ("verdant", "leafy"), ()))
    assert len(outcome.matrix) == 3
    assert all(value.isfinite().all() for value in method.state_dict().values())


def test_without_text_there_is_nothing_of_a_text_tower(play, backbone):
    backbone.tokenizer = None
    backbone._model = None
    backbone._build = lambda: _only_visual(build_model())
    method, outcome = play(replace(QUICK, text=False))
    assert not list(method.weights.shared_text.parameters())
    assert len(outcome.matrix) == 3
    # Prototypes are the directions of the class means alone.
    assert torch.allclose(method.prototypes[-1].norm(dim=1), torch.ones(3))
    assert method._final_text(0) is None


def _only_visual(model: CLIP) -> torch.nn.Module:
    model.encode_text = model.transformer = model.token_embedding = None
    return model


def test_modes_are_their_options():
    assert {k: getattr(Config().settled(), k) for k in PAPER} == PAPER
    authors = Config(mode="authors", domain_rule="gaussian").settled()
    assert {k: getattr(authors, k) for k in AUTHORS} == AUTHORS | {"domain_rule": "gaussian"}


def test_nothing_adapted_at_the_start_of_lora(backbone):
    """LoRA starts as the plain model; its frozen and adapted encoders agree."""
    context = Context(replace(QUICK, adapter="lora"), backbone, ("a", "b"), (), 0)
    method = CVLC(context)
    method.weights.add_domain()
    pixels = torch.randn(3, 3, 8, 8)
    adapted = method._encode(pixels, method.weights.vision_adapters(0))
    assert torch.allclose(adapted, backbone.encode_image(pixels), atol=1e-6)


VIT_B16 = {"vision": TowerShape(12, 768, 12), "text": TowerShape(12, 512, 8)}
TABLE = [
    # kind, tower, shared (8 blocks), specific (4 blocks): the paper's parameter table
    ("dcp", "vision", 65_536, 32_768),
    ("dcp", "text", 65_536, 32_768),
    ("lora", "vision", 73_728, 36_864),
    ("lora", "text", 65_536, 32_768),
    ("prompt", "vision", 49_152, 24_576),
    ("prompt", "text", 32_768, 16_384),
]


@pytest.mark.parametrize(("kind", "tower", "shared", "specific"), TABLE)
def test_parameter_counts_of_the_paper(kind, tower, shared, specific):
    rank = {"vision": 3, "text": 4}[tower]
    counts = []
    for blocks in (8, 4):
        additions = Additions(
            kind, blocks, VIT_B16[tower], rank=rank, length=8, generator=torch.Generator()
        )
        counts.append(count_parameters(additions.adapters()))
    assert counts == [shared, specific]


def test_what_domains_share_changes_no_prediction(play, monkeypatch):
    one = play(name="one")[1].predictions
    monkeypatch.setattr(CVLC, "shared_part", cvlc.RouterMethod.shared_part)
    other = play(name="other")[1].predictions
    assert one.keys() == other.keys()
    assert all((one[name] == other[name]).all() for name in one)


def test_checkpoints_change_no_result(play, backbone):
    states = []
    for choice in ("off", "on"):
        backbone.place(torch.device("cpu"), "fp32", None, checkpointing=choice)
        states.append(play(name=choice)[0].state_dict())
    one, other = states
    assert all(torch.equal(one[name], other[name]) for name in one.keys() | other.keys())
