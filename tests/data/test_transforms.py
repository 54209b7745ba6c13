from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision.transforms import InterpolationMode, v2

from fsdil_bench.data.scenario import TRANSFORMS
from fsdil_bench.data.transforms import PRESETS, ImageSpec, build_transform
from fsdil_bench.errors import RequestError
from fsdil_bench.system.prefetch import ordered_map

IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
BICUBIC, BILINEAR = InterpolationMode.BICUBIC, InterpolationMode.BILINEAR

# What the presets should do at 224 pixels, written down once more.
AUGMENTATION = {
    "clip": [v2.RandomResizedCrop(224, (0.7, 1), interpolation=BICUBIC), v2.RandomHorizontalFlip()],
    "core50": [
        v2.RandomResizedCrop(224, (0.08, 1), interpolation=BILINEAR),
        v2.RandomHorizontalFlip(0.5),
    ],
    "cddb": [
        v2.RandomResizedCrop(224, (0.08, 1), interpolation=BICUBIC),
        v2.RandomHorizontalFlip(0.5),
        v2.ColorJitter(brightness=63 / 255),
    ],
    "domainnet": [
        v2.RandomResizedCrop(224, (0.7, 1), interpolation=BICUBIC),
        v2.RandomHorizontalFlip(0.5),
        v2.RandomGrayscale(p=0.1),
    ],
}
ALL = sorted(AUGMENTATION)


def picture(seed=0, height=120, width=160):
    """Soft coloured spots."""
    spots = np.random.default_rng(seed).integers(0, 256, (9, 12, 3), dtype=np.uint8)
    return np.asarray(Image.fromarray(spots).resize((width, height), Image.Resampling.BICUBIC))


def by_torchvision(preset, image, seed):
    """A random view as one gets it from the global generator."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return v2.Compose(AUGMENTATION[preset])(image)


def as_tensor(image):
    return torch.from_numpy(np.array(image)).permute(2, 0, 1)


def cut(image, size):
    left, top = (image.width - size) // 2, (image.height - size) // 2
    return image.crop((left, top, left + size, top + size))


def test_the_names_told_without_torch_are_the_presets():
    assert sorted(PRESETS) == sorted(TRANSFORMS) == ALL


@pytest.mark.parametrize("preset", ALL)
def test_augmented_views_are_torchvisions_bit_for_bit(preset):
    transform = build_transform(preset, ImageSpec(224))
    for seed in range(25):
        # Some pictures are so long and narrow that no random crop fits.
        image = picture(seed, 90 + 7 * seed, 140 if seed % 5 else 12)
        expected = by_torchvision(preset, as_tensor(image), seed)
        view = transform.augmented(image, seed)
        assert view.dtype == torch.uint8
        assert view.stride() == expected.stride()  # the layout, too, may decide a last bit
        assert torch.equal(view, expected)


@pytest.mark.parametrize("preset", ALL)
def test_augmented_views_are_what_pillow_makes_of_them(preset):
    transform = build_transform(preset, ImageSpec(224))
    for seed in range(12):
        image = picture(seed)
        expected = as_tensor(by_torchvision(preset, Image.fromarray(image), seed)).int()
        difference = (transform.augmented(image, seed).int() - expected).abs()
        assert difference.max() <= 3
        assert difference.float().mean() < 0.5


# Shapes whose long side and margins are whole numbers of pixels in every preset.
@pytest.mark.parametrize("shape", [(112, 140), (336, 420), (420, 336)])
def test_plain_views_are_what_pillow_makes_of_them(shape):
    image = Image.fromarray(picture(1, *shape))
    short = min(image.size)

    def resized(side, method):
        return image.resize([n * side // short for n in image.size], method)

    cubic, linear = Image.Resampling.BICUBIC, Image.Resampling.BILINEAR
    expected = {
        "clip": cut(resized(224, cubic), 224),
        "core50": cut(resized(256, linear), 224),
        "cddb": cut(resized(256, cubic), 224),
        "domainnet": image.resize((224, 224), cubic),
    }
    for preset, view in expected.items():
        plain = build_transform(preset, ImageSpec(224)).plain(np.asarray(image))
        assert plain.shape == (3, 224, 224)
        difference = (plain.int() - as_tensor(view).int()).abs()
        assert difference.max() <= 2, preset
        assert difference.float().mean() < 0.05, preset  # another interpolation gives more


def test_exact_plain_views():
    image = picture(2, 256, 256)
    middle = as_tensor(image)[:, 16:240, 16:240]
    for preset in ("core50", "cddb"):  # nothing to resize
        assert torch.equal(build_transform(preset, ImageSpec(224)).plain(image), middle)
    image = picture(2, 224, 224)
    for preset in ("clip", "domainnet"):
        assert torch.equal(build_transform(preset, ImageSpec(224)).plain(image), as_tensor(image))


@pytest.mark.parametrize(("size", "side"), [(224, 256), (336, 384), (48, 55)])
def test_sizes_follow_the_backbone(size, side):
    for preset in ALL:
        transform = build_transform(preset, ImageSpec(size))
        assert transform.plain(picture()).shape == (3, size, size)
        assert transform.augmented(picture(), 0).shape == (3, size, size)
    for preset in ("core50", "cddb"):
        steps = build_transform(preset, ImageSpec(size)).describe()["plain"]
        assert f"size=[{side}]" in steps


@pytest.mark.parametrize("preset", ALL)
def test_statistics(preset):
    spec = ImageSpec(8, mean=(0.1, 0.2, 0.3), std=(0.5, 0.6, 0.7))
    transform = build_transform(preset, spec)
    mean, std = (spec.mean, spec.std) if preset == "clip" else IMAGENET
    views = torch.randint(0, 256, (4, 3, 8, 8), dtype=torch.uint8)
    expected = (views.numpy() / 255 - np.reshape(mean, (3, 1, 1))) / np.reshape(std, (3, 1, 1))
    normalised = transform.normalise(views, torch.device("cpu"))
    assert normalised.dtype == torch.float32
    assert np.allclose(normalised.numpy(), expected, atol=1e-5)
    assert transform.describe()["mean"] == list(mean)
    assert transform.describe()["std"] == list(std)


def test_presets_have_caches_of_their_own():
    digests = {build_transform(preset, ImageSpec(224)).digest() for preset in ALL}
    assert len(digests) == len(ALL)
    # This one names files in users' caches.
    assert build_transform("clip", ImageSpec(224)).digest() == (
        "62558131515d50fdab2204e62be684d3fbc99148d481ea9ae7bcc73454f34fd5"
    )


@pytest.mark.parametrize("preset", ALL)
def test_a_view_is_a_function_of_picture_and_seed(preset):
    transform = build_transform(preset, ImageSpec(32))
    views = [transform.augmented(picture(), seed) for seed in (5, 6, 5)]
    assert torch.equal(views[0], views[2])
    assert not torch.equal(views[0], views[1])


@pytest.mark.parametrize("preset", ALL)
def test_threads_do_not_disturb_each_other_nor_the_global_generator(preset):
    transform = build_transform(preset, ImageSpec(32))
    image = picture()
    expected = [transform.augmented(image, seed) for seed in range(200)]
    torch.manual_seed(3)
    drawn = torch.rand(200)

    torch.manual_seed(3)
    meanwhile = []
    views = []
    for view in ordered_map(lambda seed: transform.augmented(image, seed), range(200), 4, 20):
        meanwhile.append(torch.rand(1))
        views.append(view)
    assert all(torch.equal(a, b) for a, b in zip(views, expected, strict=True))
    assert torch.equal(torch.cat(meanwhile), drawn)


def test_randomness_ends_with_the_view():
    transform = build_transform("clip", ImageSpec(16))
    torch.manual_seed(0)
    before = torch.random.get_rng_state()
    transform.augmented(picture(), 1)
    assert torch.equal(torch.random.get_rng_state(), before)
    with pytest.raises(RuntimeError):
        transform.augmented(np.zeros((4, 4), np.uint8), 1)
    first = torch.rand(3)
    torch.random.set_rng_state(before)
    assert torch.equal(torch.rand(3), first)


def test_brightness_and_grey_are_drawn_as_often_as_they_should():
    grey = np.full((16, 16, 3), 100, np.uint8)
    cddb = build_transform("cddb", ImageSpec(8))
    levels = [cddb.augmented(grey, seed).float().mean().item() for seed in range(200)]
    assert 100 * (1 - 63 / 255) - 1 <= min(levels) < 80
    assert 120 < max(levels) <= 100 * (1 + 63 / 255) + 1
    domainnet = build_transform("domainnet", ImageSpec(8))
    red = np.zeros((16, 16, 3), np.uint8) + np.array([200, 0, 0], np.uint8)
    views = [domainnet.augmented(red, seed) for seed in range(400)]
    assert 0.06 < np.mean([torch.equal(view[0], view[1]) for view in views]) < 0.14


def test_an_unknown_preset_lists_the_known():
    with pytest.raises(RequestError, match="unknown transform 'imagenet'") as error:
        build_transform("imagenet", ImageSpec(8))
    assert all(name in str(error.value) for name in ALL)


def test_a_run_can_take_another_preset(toy_run):
    own, same, other = toy_run(), toy_run(transform="clip"), toy_run(transform="core50")
    assert same.run_id == own.run_id
    assert other.run_id != own.run_id
    assert other.scenario["transform"]["preset"] == "core50"
    assert other.scenario["transform"]["mean"] == list(IMAGENET[0])
    assert other.matrix != own.matrix
    with pytest.raises(RequestError, match="unknown transform"):
        toy_run(transform="core-50")


# Large pictures are shrunk before they are augmented


@pytest.mark.parametrize(("preset", "side"), [("clip", 310), ("domainnet", 310), ("cddb", 672)])
def test_the_short_side_is_what_the_smallest_crop_needs_up_to_a_bound(preset, side):
    transform = build_transform(preset, ImageSpec(224))
    assert transform.short_side == side
    scale, ratio = AUGMENTATION[preset][0].scale[0], 3 / 4
    smallest = (side**2 * scale * ratio) ** 0.5  # the narrow side of the smallest crop of a square
    assert smallest >= 224 or side == 3 * 224
    assert build_transform(preset, ImageSpec(32)).short_side == 128


def test_small_pictures_stay_as_they_are_and_large_ones_keep_their_proportions():
    transform = build_transform("clip", ImageSpec(224))
    for height, width in ((64, 64), (310, 900), (2000, 310)):
        image = picture(0, height, width)
        assert transform.shrunk(image) is image
    assert transform.shrunk(picture(0, 620, 1000)).shape == (310, 500, 3)
    assert transform.shrunk(picture(0, 1500, 1000)).shape == (465, 310, 3)


@pytest.mark.parametrize("preset", ALL)
def test_augmented_views_come_from_the_shrunk_picture_and_plain_ones_from_the_whole(preset):
    transform = build_transform(preset, ImageSpec(224))
    large = picture(1, 1400, 1100)
    small = transform.shrunk(large)
    assert torch.equal(transform.augmented(large, 5), transform.augmented(small, 5))
    as_tensor = torch.from_numpy(large.copy()).permute(2, 0, 1)
    assert not torch.equal(transform.augmented(large, 5), by_torchvision(preset, as_tensor, 5))
    assert torch.equal(transform.plain(large), transform.plain_steps(as_tensor))
    assert not torch.equal(transform.plain(large), transform.plain(small))


def test_a_gpu_gets_the_channels_last_and_the_same_numbers():
    from fsdil_bench.checks.pretended_device import pretended_device

    transform = build_transform("clip", ImageSpec(8))
    views = torch.arange(2 * 3 * 8 * 8).reshape(2, 3, 8, 8).to(torch.uint8)
    expected = transform.normalise(views, torch.device("cpu"))
    assert expected.is_contiguous()
    with pretended_device() as device:
        found = transform.normalise(views, device)
        assert found.is_contiguous(memory_format=torch.channels_last)
        assert torch.equal(found.cpu(), expected)
