"""The checks find what they are named for, in every bad plugin, and nothing in a good one."""

from __future__ import annotations

import functools
import inspect
import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
import toy_plugin

from fsdil_bench import MethodInfo, RequestError, option
from fsdil_bench.checks import CHECKS, check_method, method_checks
from fsdil_bench.checks.image_search import ImageSearch
from fsdil_bench.checks.option_values import quantities, switches, values
from fsdil_bench.plugins.registry import load_registry
from fsdil_bench.records import metrics

TESTS = Path(__file__).parent.parent
TOY = TESTS / "toy_plugin.py"
BAD = TESTS / "bad_plugins"

# Which checks fail for which plugin, the one it is made for first, and what that one says.
CAUGHT = {
    "keeps_images": (["exemplars", "leaks"], "'buffer' of the state holds a training"),
    "rewrites_labels": (
        ["kept-data", "shots", "determinism", "seeds", "save-load", "device"],
        "training images or labels of domain 1 were changed",
    ),
    "peeks_at_order": (["order", "batch-size"], "change with the images backwards"),
    "ignores_seeds": (["seeds", "determinism", "save-load", "device"], "the seed is the same"),
    "changes_globals": (["side-effects"], "torch's default dtype"),
    "silent_no_op": (["learns"], "neither state nor predictions"),
    "float_logits": (["ids", "one-shot", "two-classes"], "not integer ids"),
    "grows": (["growth"], "more images"),
    "keeps_shots": (["growth"], "3 more images in a later domain make the state 48 bytes larger"),
    "hides_training": (["trained-parameters"], "returned 0, but optimizers changed 48 numbers"),
    "idle_training": (["trained-parameters"], "returned 16, but learning leaves all of them"),
    "patches_harness": (["harness"], "a plugin has changed fsdil_bench.records.metrics.scores"),
    "mixes_devices": (["device"], "learn (domain 1) raised RefusedError: Expected all tensors"),
    "class_attribute": (
        ["leaks", "side-effects", "device"],
        "class attribute ClassAttribute.seen[0]",
    ),
}


@pytest.mark.parametrize("check", method_checks("toy-means", plugins=[TOY], scenario="toy-2shot"))
def test_a_good_method_passes(check):
    """As a plugin's own tests would say it."""
    check()


@pytest.fixture(scope="module")
def failed():
    """The checks that a method class fails, with their findings."""

    def run(kind, *, only=(), **info):
        registry = load_registry([TOY])
        registry.methods["subject"] = MethodInfo("subject", "made for a test", kind, **info)
        findings = check_method("subject", only=only, registry=registry, scenario="toy-2shot")
        return {finding.name: finding for finding in findings if not finding.passed}

    return run


def test_every_bad_plugin_is_expected():
    assert {path.stem for path in BAD.glob("*.py")} == set(CAUGHT)


@pytest.mark.parametrize("name", CAUGHT)
def test_a_bad_plugin_is_caught_by_the_check_made_for_it(name, monkeypatch):
    expected, words = CAUGHT[name]
    monkeypatch.setattr(metrics, "scores", metrics.scores)  # put back what a plugin patches
    findings = check_method(
        name.replace("_", "-"), plugins=[TOY, BAD / f"{name}.py"], scenario="toy-2shot"
    )
    wrong = {finding.name: finding for finding in findings if not finding.passed}
    assert words in wrong[expected[0]].found
    assert wrong[expected[0]].remedy
    # float logits may or may not differ in the last bit between batches
    assert set(wrong) - set(expected) <= ({"batch-size"} if name == "float_logits" else set())


class InAModule(toy_plugin.Means):
    def learn(self, domain):
        HIDDEN.append(domain.images().numpy().transpose(0, 2, 3, 1) * 3 + 1)
        super().learn(domain)


class InAClosure(toy_plugin.Means):
    def learn(self, domain):
        features = domain.features()
        self.again = lambda: features.sum()
        super().learn(domain)


class InACache(toy_plugin.Means):
    def learn(self, domain):
        _remember(self, domain)
        super().learn(domain)


class InAList(toy_plugin.Means):
    def learn(self, domain):
        self.numbers = domain.features()[0].tolist()
        super().learn(domain)


class InAGenerator(toy_plugin.Means):
    def learn(self, domain):
        self.batches = domain.batches(4)
        next(self.batches)
        super().learn(domain)


class KeepsTestImages(toy_plugin.Means):
    def predict(self, batch):
        self.last = batch
        return super().predict(batch)


HIDDEN: list = []


@functools.cache
def _remember(method, domain):
    return domain.features().clone()


@pytest.fixture
def _nothing_hidden():
    HIDDEN.clear()
    _remember.cache_clear()


@pytest.mark.usefixtures("_nothing_hidden")
@pytest.mark.parametrize(
    "kind", [InAModule, InAClosure, InACache, InAList, InAGenerator, KeepsTestImages]
)
def test_images_are_found_wherever_they_are_kept(failed, kind):
    assert "leaks" in failed(kind, only=["leaks"])


@pytest.mark.usefixtures("_nothing_hidden")
def test_nothing_is_found_where_nothing_is_kept(failed):
    assert not failed(NeedsTwoShots, only=["leaks", "exemplars"])


def test_a_method_that_declares_it_may_keep_images(failed):
    assert not failed(InAClosure, only=["leaks", "exemplars"], exemplar_free=False)


class HoardsFeatures(toy_plugin.Means):
    """Every feature of every domain, in its state."""

    kept = torch.zeros(0, 16)

    def learn(self, domain):
        super().learn(domain)
        self.kept = torch.cat([self.kept, domain.features()])

    def state_dict(self):
        return super().state_dict() | {"kept": self.kept}

    def load_state_dict(self, state):
        super().load_state_dict(state)
        self.kept = state["kept"]


class HoardsImages(HoardsFeatures):
    def learn(self, domain):
        toy_plugin.Means.learn(self, domain)
        self.kept = domain.images()


def test_a_method_that_declares_it_may_keep_features(failed):
    memory = ["growth", "exemplars", "leaks"]
    assert set(failed(HoardsFeatures, only=memory)) == set(memory)
    assert not failed(HoardsFeatures, only=memory, keeps_features=True)
    found = failed(HoardsImages, only=["exemplars", "leaks"], keeps_features=True)
    assert set(found) == {"exemplars", "leaks"}, "images are another matter"


class KeepsFeatures(toy_plugin.Means):
    kept = torch.zeros(1)

    def learn(self, domain):
        super().learn(domain)
        self.kept = -2 * domain.features()[:2].bfloat16()

    def state_dict(self):
        return {"sums": self.sums, "padded": torch.nn.functional.pad(self.kept, (3, 0))}


def test_scaled_and_rounded_features_in_the_state_are_found(failed):
    assert "frozen feature" in failed(KeepsFeatures, only=["exemplars"])["exemplars"].found


class ForgetsHalf(toy_plugin.Means):
    """Predicts with what is not in its state."""

    extra = 0.0

    def learn(self, domain):
        super().learn(domain)
        self.extra = self.extra + torch.randn_like(self.sums) * 5

    def predict(self, batch):
        return (batch.features @ (self.sums + self.extra).T).argmax(1)


class LearnsFromTests(toy_plugin.Means):
    def predict(self, batch):
        classes = super().predict(batch)
        self.sums.index_add_(0, classes, batch.features)
        return classes


class BatchMean(toy_plugin.Means):
    def predict(self, batch):
        return ((batch.features - batch.features.mean(0)) @ self.sums.T).argmax(1)


class ByText(toy_plugin.Means):
    """Knows the classes by their names; what it learns is overridden below."""

    def learn(self, domain):
        pass

    def predict(self, batch):
        texts = self.context.backbone.encode_text(self.context.class_names)
        return (batch.features @ texts.T).argmax(1)

    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        pass


class ReadsAndForgets(ByText):
    def learn(self, domain):
        domain.features().mean(0)


class CountsDomains(ByText):
    """Its state changes with every domain, whatever is in it, and predictions do not use it."""

    learned = torch.zeros(1)

    def learn(self, domain):
        self.learned = self.learned + len(domain)

    def state_dict(self):
        return {"learned": self.learned}

    def load_state_dict(self, state):
        self.learned = state["learned"]


@pytest.mark.parametrize(
    ("kind", "needs_text", "found"),
    [
        (ByText, True, None),
        (ByText, False, "neither state nor predictions"),
        (ReadsAndForgets, True, "neither state nor predictions"),
        (CountsDomains, True, "other images with other labels leave the same state"),
    ],
)
def test_only_a_zero_shot_method_may_learn_nothing(failed, kind, needs_text, found):
    wrong = failed(kind, only=["learns"], needs_text=needs_text)
    assert list(wrong) == (["learns"] if found else [])
    assert not found or found in wrong["learns"].found


class DrawsThere(toy_plugin.Means):
    def learn(self, domain):
        super().learn(domain)
        generator = self.context.generator("more", domain.index)
        self.sums += torch.randn(self.sums.shape, generator=generator, device=self.context.device)


class UsesNumpy(toy_plugin.Means):
    def predict(self, batch):
        return (batch.features.numpy() @ self.sums.numpy().T).argmax(1)


class ForgetsToMoveWhatItLoads(toy_plugin.Means):
    """Counts on the CPU; a resumed run hands the count over on the device."""

    def __init__(self, context):
        super().__init__(context)
        self.counts = torch.zeros(3)

    def learn(self, domain):
        super().learn(domain)
        self.counts += torch.bincount(domain.labels.cpu(), minlength=3)

    def state_dict(self):
        return super().state_dict() | {"counts": self.counts}

    def load_state_dict(self, state):
        super().load_state_dict(state)
        self.counts = state["counts"].clone()


class WritesIntoACopy(toy_plugin.Means):
    """Works where `cpu()` gives the tensor itself."""

    def learn(self, domain):
        self.sums.cpu().index_add_(0, domain.labels.cpu(), domain.features().cpu())


@pytest.mark.parametrize(
    ("kind", "found", "remedy"),
    [
        (
            DrawsThere,
            "learn (domain 1) raised RefusedError: Expected a 'cuda' device",
            "on the CPU",
        ),
        (UsesNumpy, "predict (after domain 1) raised NoArrayError: can't conv", ".cpu().numpy()"),
        (ForgetsToMoveWhatItLoads, "learn (domain 2) raised", "context.device"),
        (WritesIntoACopy, "predictions change after domain 1 on a CUDA device", "are copies"),
    ],
)
def test_what_only_a_gpu_refuses_is_found_with_its_line(failed, kind, found, remedy):
    finding = failed(kind, only=["cpu", "device"])["device"]
    assert found in finding.found
    assert remedy in finding.remedy
    if "raised" in found:
        line = int(re.search(r"line (\d+) of .*test_checks.py", finding.remedy)[1])
        code, start = inspect.getsourcelines(kind)
        assert start < line < start + len(code)


class SpoilsWeights(toy_plugin.Means):
    def learn(self, domain):
        super().learn(domain)
        self.context.backbone.model.visual[1].bias.data[0] += 1.0  # not counted by torch


class LooksInside(toy_plugin.Means):
    def learn(self, domain):
        assert len(domain._samples.ids)
        super().learn(domain)


class SeedsItself(toy_plugin.Means):
    def learn(self, domain):
        super().learn(domain)
        np.random.seed(3)  # noqa: NPY002 - what is looked for
        self.sums += torch.from_numpy(np.random.rand(*self.sums.shape)).float()  # noqa: NPY002


class ChangesThePath(toy_plugin.Means):
    """At every building, or once, as the import of a library does."""

    once = False

    def __init__(self, context):
        super().__init__(context)
        if not (self.once and IMPORTED):
            sys.path.append(f"nowhere-{len(sys.path)}")
        IMPORTED.add("library")


class ImportsALibrary(ChangesThePath):
    once = True


IMPORTED: set[str] = set()


def test_what_an_import_changes_is_not_the_methods_doing(failed):
    IMPORTED.clear()
    assert not failed(ImportsALibrary, only=["side-effects"])
    assert "sys.path" in failed(ChangesThePath, only=["side-effects"])["side-effects"].found


class NeedsTwoShots(toy_plugin.Means):
    def learn(self, domain):
        counts = torch.bincount(domain.labels)
        if counts.min() < 2:
            raise ValueError("a covariance needs two images")
        super().learn(domain)


class NeedsThreeClasses(toy_plugin.Means):
    def __init__(self, context):
        super().__init__(context)
        self.third = self.sums[2]


class DoublesItsState(toy_plugin.Means):
    def __init__(self, context):
        super().__init__(context)
        self.history = torch.ones(100)

    def learn(self, domain):
        super().learn(domain)
        self.history = torch.cat([self.history, self.history])

    def state_dict(self):
        return super().state_dict() | {"history": self.history}

    def load_state_dict(self, state):
        super().load_state_dict(state)
        self.history = state["history"]


class CountsPredictions(toy_plugin.Means):
    def __init__(self, context):
        super().__init__(context)
        self.past = []

    def predict(self, batch):
        classes = super().predict(batch)
        self.past.append(classes)
        return classes


class CountsOnly(toy_plugin.Means):
    """Its state changes, but nothing of it comes from the images."""

    def learn(self, domain):
        domain.features()
        self.sums = self.sums + 1

    def predict(self, batch):
        return batch.features.argmax(1) % len(self.sums)


class TrainsUnused(toy_plugin.Means):
    """Learns properly, and predicts with something else."""

    def predict(self, batch):
        return batch.features.argmax(1) % len(self.sums)


class ReturnsSomething(toy_plugin.Means):
    def learn(self, domain):
        super().learn(domain)
        return 0.5


@pytest.mark.parametrize(
    ("check", "kind"),
    [
        ("contract", ReturnsSomething),
        ("contract", toy_plugin.OddState),
        ("save-load", ForgetsHalf),
        ("quiet-prediction", LearnsFromTests),
        ("batch-size", BatchMean),
        ("frozen-backbone", SpoilsWeights),
        ("side-effects", SeedsItself),
        ("shots", LooksInside),
        ("shots", toy_plugin.KeepsDomains),
        ("one-shot", NeedsTwoShots),
        ("two-classes", NeedsThreeClasses),
        ("growth", DoublesItsState),
        ("growth", CountsPredictions),
        ("learns", CountsOnly),
        ("learns", TrainsUnused),
        ("ids", toy_plugin.ReturnsOutOfRange),
        ("ids", toy_plugin.ReturnsTooFew),
    ],
)
def test_each_check_can_fail(failed, check, kind):
    assert check in failed(kind, only=[check])


def test_a_run_that_fails_is_told_once(failed):
    findings = failed(toy_plugin.RaisesInLearn)
    said = [name for name, finding in findings.items() if "learn says the test" in finding.found]
    assert said == ["contract", "one-shot", "two-classes"]
    assert "because a plain run fails" in findings["leaks"].found


@dataclass(frozen=True)
class Config:
    strength: float = option(0.3, "of the noise", minimum=0.0)
    noisy: bool = option(False, "add noise")
    unused: int = option(3, "nothing")


class Options(toy_plugin.Means):
    Config = Config

    def learn(self, domain):
        self.sums.index_add_(0, domain.labels, domain.features())
        if self.context.config.noisy:
            self.sums += self.context.config.strength


class Declared(Options):
    inert = {"unused": "it is for larger data"}  # noqa: RUF012 - as a plugin would write it


class Misspelt(Options):
    inert = {"unsued": "a slip"}  # noqa: RUF012


def test_a_dead_knob_is_named_and_one_behind_a_switch_is_not(failed):
    found = failed(Options, only=["options"])["options"].found
    assert found.endswith(": unused")


def test_a_knob_may_be_declared_inert(failed):
    assert not failed(Declared, only=["options"])
    assert "unsued" in failed(Misspelt, only=["options"])["options"].found


class Refuses(Options):
    """Takes no value of a option but its own."""

    def learn(self, domain):
        super().learn(domain)
        if self.context.config.unused != 3:
            raise ValueError("three, please")


def test_values_that_are_refused_show_nothing(failed):
    assert failed(Refuses, only=["options"])["options"].found.endswith(": unused")


def test_values_keep_to_type_and_limits():
    config = Config(strength=0.0)
    tried = values(config, Config(unused=50))
    assert all(isinstance(value, float) and value > 0 for value in tried["strength"])
    assert tried["noisy"] == [True]
    assert 50 in tried["unused"]
    assert 3 not in tried["unused"]
    assert switches(config, config) == [("noisy", True)]
    assert [name for name, _ in quantities(config, config)][:3] == ["strength", "unused", "unused"]


def test_a_gallery_knows_its_images_in_disguise_but_not_their_mean():
    generator = torch.Generator().manual_seed(0)
    images = torch.randn(6, 3, 8, 8, generator=generator)
    features = torch.randn(6, 20, generator=generator)
    search = ImageSearch([images], [features])
    span = images.max() - images.min()
    for disguise in (
        images[4],
        images.permute(0, 2, 3, 1),
        ((images - images.min()) / span * 255).round().to(torch.uint8),
        images * torch.tensor([0.2, 3.0, 1.0]).view(1, 3, 1, 1) + 5,
        images[1].half().flatten(),
        torch.cat([torch.zeros(5, 1), features[:5]], 1),
        7 * features[2],
    ):
        assert search.found_in(disguise)
    for harmless in (
        images[:2].mean(0),
        features[:2].mean(0),
        torch.randn(50, 20, generator=generator),
        torch.randn(5, 192, generator=generator),
        torch.tensor(3),
        torch.zeros(40, 20),
    ):
        assert not search.found_in(harmless)


@pytest.fixture
def call(call):
    return lambda *arguments: call("check", *arguments, "--plugin", TOY, "-s", "toy-2shot")


def test_command_line(call):
    code, out, err = call("toy-means")
    assert code == 0, err
    assert f"toy-means: {len(CHECKS)} of {len(CHECKS)} checks passed" in out
    assert "check determinism" in err
    code, out, err = call("toy-returnslogits", "--only", "ids", "--only", "cpu", "--quiet")
    assert code == 1
    assert not err
    assert "toy-returnslogits: 1 of 2 checks passed" in out
    assert "To fix it: Return integers" in out


def test_command_line_as_json(call):
    code, out, _ = call("toy-returnslogits", "--only", "ids", "--json")
    [finding] = json.loads(out)
    assert code == 1
    assert finding["name"] == "ids"
    assert not finding["passed"]
    assert "float32" in finding["found"]


def test_command_line_lists_and_refuses(call):
    code, out, _ = call("--list")
    assert code == 0
    assert all(name in out for name in CHECKS)
    code, _, err = call("toy-means", "--only", "exemplar")
    assert code == 2
    assert "Did you mean 'exemplars'?" in err
    assert call()[0] == 2
    code, _, err = call("toy-means", "--set", "x=1")
    assert code == 2
    assert "unknown option" in err
    with pytest.raises(RequestError, match="unknown check"):
        method_checks("toy-means", only=["nothing"])


def test_options_and_the_length_of_training_reach_the_method(toy_registry):
    from fsdil_bench.checks.small_world import open_small_world

    given = {"steps": 7}
    world = open_small_world("finetune", registry=toy_registry, scenario="toy-2shot", config=given)
    assert world.job.config.steps == 7
    assert world.job.config.base_epochs <= 2


def test_listing_imports_no_checks():
    code = (
        "import sys\nfrom fsdil_bench import cli\n"
        "sys.argv = ['fsdil-bench', 'list', 'methods']\ncli.main()\n"
        "assert 'torch' not in sys.modules and 'fsdil_bench.checks' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_a_slice_is_small_and_wrong_on_demand():
    from fsdil_bench.checks.small_stream import WorldSize, small_stream

    stream = toy_plugin.build_stream()
    small = small_stream(stream, WorldSize(classes=2, domains=3, base=5, shots=1), tests=4)
    assert [domain.name for domain in small.domains] == ["d0", "d2", "d3"]
    assert [len(domain.train) for domain in small.domains] == [10, 2, 2]
    assert small.class_names == ("red", "green")
    other = small_stream(
        stream, WorldSize(classes=2, domains=3, base=5, shots=1, altered=True), tests=4
    )
    assert not set(other.domains[0].train.ids) & set(small.domains[0].train.ids)
    truth = np.array([int(name.split("/")[2]) for name in other.domains[1].train.ids])
    assert (other.domains[1].train.labels != truth).all()
