from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from fsdil_scenarios.tiny_clip import pretrain as module
from fsdil_scenarios.tiny_clip.captions import KNOWN, KNOWN_NOUNS, Caption
from fsdil_scenarios.tiny_clip.facts import facts_of
from fsdil_scenarios.tiny_clip.model import IMAGE_SIZE, build_model, load_model
from fsdil_scenarios.tiny_clip.pictures import drawn_object, thing
from fsdil_scenarios.tiny_clip.pretrain import Settings, embed_texts, multi_positive_loss, pretrain
from fsdil_scenarios.tiny_clip.tokenizer import Tokenizer
from safetensors.torch import load_file

SETTINGS = Settings(pairs=384, images=24, seed=3)


def same_weights(one: Path, other: Path) -> bool:
    first, second = load_file(one), load_file(other)
    return first.keys() == second.keys() and all(torch.equal(first[k], second[k]) for k in first)


@pytest.fixture(scope="module", autouse=True)
def short_run() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "PICTURES_ONLY_PAIRS", 64)
        patch.setattr(module, "VALIDATION_PER_CLASS", 1)
        yield


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pretrain(tmp_path_factory.mktemp("run"), SETTINGS, workers=1)


def test_weights_load_and_are_small(finished: Path) -> None:
    model = load_model(finished)
    assert next(model.parameters()).dtype == torch.float32
    assert finished.stat().st_size < 25e6
    assert (finished.parent / "report.json").exists()


def test_another_seed_gives_other_weights(finished: Path, tmp_path: Path) -> None:
    settings = Settings(pairs=64, images=24, seed=4)
    assert not same_weights(finished, pretrain(tmp_path, settings, workers=1))


def test_interrupted_run_ends_with_the_same_weights(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save = module.Trainer.save

    def save_and_stop(trainer: module.Trainer, path: Path) -> None:
        save(trainer, path)
        if trainer.progress.steps == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module.Trainer, "save", save_and_stop)
        with pytest.raises(KeyboardInterrupt):
            pretrain(tmp_path, SETTINGS, workers=1, checkpoint_seconds=0)
    assert not (tmp_path / "weights.safetensors").exists()
    assert same_weights(finished, pretrain(tmp_path, SETTINGS, workers=1))

    with pytest.raises(SystemExit, match="another --out"):
        pretrain(tmp_path, Settings(pairs=128, images=24, seed=3), workers=1)


def test_training_plan_follows_the_shares() -> None:
    plan = module.training_plan(24_000)
    assert len(set(plan)) == len(plan) == pytest.approx(24_000, rel=0.01)
    drawn = [picture.fact("style") for picture in plan if picture.source == "drawn"]
    for style in ("real", "painting", "clipart", "infograph", "quickdraw"):
        assert drawn.count(style) / 24_000 == pytest.approx(module.SHARES[style], abs=0.01)
    things = sum(picture.source == "things" for picture in plan)
    assert things / 24_000 == pytest.approx(module.SHARES["things"], abs=0.01)
    assert sum(module.SHARES.values()) == pytest.approx(1)


def test_captions_are_true_of_pictures_with_all_their_facts() -> None:
    batch = [drawn_object("cup", "real", 0), drawn_object("cup", "painting", 0),
             drawn_object("key", "real", 0)]  # fmt: skip
    captions = [
        Caption("a cup", facts_of(object="cup")),
        Caption("a painting of a cup", facts_of(object="cup", style="painting")),
    ]
    truth = [[True, False], [True, True], [False, False]]
    assert module.is_true(captions, batch).tolist() == truth


def test_most_captions_are_true_of_their_pictures_and_some_are_wrong() -> None:
    batch = [thing("pretrain", index) for index in range(64)]
    rng, said = np.random.default_rng(0), []
    for _ in range(40):
        made = module.step_captions(batch, lengthy=False, rng=rng)
        of_pictures = made[module.CAPTIONS_OF_OBJECTS :]
        for picture, caption in zip(batch, of_pictures, strict=False):
            assert caption.says <= picture.facts
            kind = picture.fact("object")
            words = (kind, *module_nouns(kind))
            said.append(any(word in caption.text for word in words))
    # A wrong caption may still name the right kind: one in ten does.
    assert 1 - np.mean(said) == pytest.approx(0.9 * module.WRONG_SHARE, abs=0.03)


def module_nouns(kind: str) -> list[str]:
    """Every known word for the kind; a caption without colour and marks has the drawn world's."""
    return [*KNOWN_NOUNS[kind], *KNOWN.get(kind, [])]


def test_classifiers_learn_what_is_known_of_a_picture() -> None:
    batch = [drawn_object("cup", "real", 0), thing("pretrain", 3)]
    labels = module.classifier_labels(batch)
    for of, values in module.VALUES.items():
        for picture, label in zip(batch, labels[of].tolist(), strict=True):
            assert (values[label] if label >= 0 else "") == picture.fact(of)
    assert labels["colour"].tolist()[0] == -1


def test_loss_is_least_when_positives_share_the_weight() -> None:
    positive = torch.tensor([[True, True, False], [False, False, False]])
    shared = multi_positive_loss(torch.tensor([[9.0, 9.0, 0.0], [0.0, 0.0, 0.0]]), positive)
    uneven = multi_positive_loss(torch.tensor([[9.0, 0.0, 0.0], [0.0, 0.0, 0.0]]), positive)
    assert shared == pytest.approx(np.log(2), abs=1e-3)
    assert uneven > shared


def test_short_texts_embed_as_with_full_padding() -> None:
    model, tokens = build_model().eval(), Tokenizer.load()(["a cup", "a photo of a sailing boat"])
    with torch.inference_mode():
        expected = model.encode_text(tokens, normalize=True)
        assert torch.allclose(embed_texts(model, tokens), expected, atol=1e-5)


def test_augmentation_keeps_shape_and_varies() -> None:
    pictures = np.random.default_rng(0).integers(0, 256, (5, IMAGE_SIZE, IMAGE_SIZE, 3), np.uint8)
    first = module.augment(pictures, np.random.default_rng(1))
    again = module.augment(pictures, np.random.default_rng(1))
    other = module.augment(pictures, np.random.default_rng(2))
    assert first.shape == (5, 3, IMAGE_SIZE, IMAGE_SIZE)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
