"""Names and synonyms of the published data sets: complete, distinct and in the right sense."""

from __future__ import annotations

import json
import re

import pytest
from fsdil_scenarios.names import class_folders, class_texts, dn4il_folders, rules

from fsdil_bench import DataError

SIZES = {
    "core50": 50,
    "cddb-hard": 2,
    "digits": 10,
    "domainnet": 345,
    "pacs": 7,
    "office-home": 65,
    "vlcs": 5,
}
TEMPLATES = ("{}", "{} ..", "This is a good {} ..", "It is about the {} ..")
#: Without enough images in some domain of DomainNet.
TOO_FEW_IMAGES = """angel, shovel, sleeping bag, snail, belt, stereo, stitches, blackberry, stove,
    leaf, light bulb, syringe, line, bush, calculator, toe, microwave, cannon, toothbrush, t-shirt,
    underwear, van, oven, compass, computer, washing machine, cooler, waterslide, pants, cow,
    wristwatch, crown, diamond, diving board, dresser, eraser, fan, fireplace, floor lamp"""
#: Ambiguous classes, and words of the sense that is not pictured.
OTHER_SENSES = {
    "domainnet": {
        "apple": "mac|iphone|computer|company",
        "bat": "baseball|wooden|club|stick|cricket|racket",
        "bear": "market|teddy|carry|plush|toy",
        "belt": "conveyor|seat ?belt|drive",
        "blackberry": "phone|smartphone|device",
        "bush": "president|george",
        "compass": "circle|geometry|drafting",
        "cooler": "cpu|water cooler|fan",
        "crown": "dental|tooth|coin",
        "diamond": "baseball|card|rhombus",
        "drill": "exercise|sergeant|rehearsal|practice",
        "dresser": "stylist|costumer|hairdresser",
        "fan": "supporter|admirer|enthusiast|follower|spectator",
        "fork": "road|branch|pitchfork|garden",
        "jacket": "book|dust jacket|potato",
        "key": "keyboard|keypad|piano|legend|button",
        "keyboard": "piano|synthesizer|music",
        "lighter": "barge|lightweight|brighter",
        "line": "queue|fishing|railway|phone",
        "marker": "gene|tomb|milestone|gravestone",
        "matches": "games|tournament|football",
        "mouse": "computer|wireless|usb|click",
        "nail": "finger|toe|manicure|polish",
        "pool": "billiard|table|snooker",
        "saw": "saying|seen|film",
        "square": "plaza|piazza|town",
        "star": "celebrity|actor|movie",
        "stitches": "laughter|pain",
        "submarine": "sandwich|roll",
        "table": "data|chart|spreadsheet",
        "train": "coach|dress|teach",
        "triangle": "percussion|love",
        "wheel": "steering|fortune|ferris",
    },
    "office-home": {
        "Fan": "supporter|admirer|follower",
        "Folder": "directory|computer",
        "Glasses": "drinking|wine",
        "Keyboard": "piano|synthesizer|music",
        "Monitor": "lizard|supervisor|school",
        "Mouse": "rodent|animal|rat",
        "Notebook": "laptop|computer",
        "Pan": "god|peter",
        "Pen": "animal|enclosure|prison",
        "Ruler": "king|queen|monarch|sovereign",
        "Soda": "baking|bicarbonate",
        "Speaker": "orator|lecturer|talker",
    },
}


def texts_of(data_set):
    folders = class_folders(data_set)
    names, synonyms = class_texts(data_set, folders)
    return dict(zip(folders, zip(names, synonyms, strict=True), strict=True))


@pytest.mark.parametrize("data_set", SIZES)
def test_every_class_has_ten_good_synonyms(data_set):
    texts = texts_of(data_set)
    assert len(texts) == SIZES[data_set]
    assert all(len(synonyms) == 10 for _, synonyms in texts.values())
    assert rules.problems(texts) == []


def test_the_200_classes_of_imagenet_have_five():
    texts = texts_of("imagenet-r")
    assert len(texts) == 200
    assert list(texts) == sorted(texts)
    assert rules.problems(texts, count=5) == []


@pytest.mark.parametrize("data_set", [*SIZES, "imagenet-r"])
def test_every_sentence_fits_into_clip(data_set):
    from open_clip.tokenizer import SimpleTokenizer

    encode = SimpleTokenizer().encode
    for name, synonyms in texts_of(data_set).values():
        for text in (name, *synonyms):
            # Two more for the marks of beginning and end.
            assert max(len(encode(t.format(text))) for t in TEMPLATES) + 2 <= 77


def test_domainnet_is_in_the_order_of_its_official_labels():
    folders = class_folders("domainnet")
    # The published lists were sorted without regard to case, blanks and hyphens.
    assert list(folders) == sorted(folders, key=rules.key)
    labels = {"aircraft_carrier": 0, "crayon": 83, "dog": 91, "sea_turtle": 255, "tornado": 318}
    labels |= {"The_Eiffel_Tower": 308, "t-shirt": 327, "zigzag": 344}
    assert {folder: folders.index(folder) for folder in labels} == labels


def test_domainnet_names_are_its_folders():
    texts = texts_of("domainnet")
    assert {folder.replace("_", " ") for folder in texts} == {name for name, _ in texts.values()}
    removed = {name.strip() for name in TOO_FEW_IMAGES.split(",")}
    assert len(removed) == 39
    assert removed <= {name for name, _ in texts.values()}


def test_dn4il_is_twenty_groups_of_five_domainnet_classes():
    folders = dn4il_folders()
    assert len(set(folders)) == len(folders) == 100
    assert set(folders) <= set(class_folders("domainnet"))
    assert (folders[0], folders[17], folders[99]) == ("aircraft_carrier", "bush", "zebra")


def test_folders_of_the_other_data_sets():
    assert class_folders("core50") == tuple(f"o{i}" for i in range(1, 51))
    assert class_folders("cddb-hard") == ("0_real", "1_fake")
    assert class_texts("cddb-hard", ("1_fake", "0_real"))[0] == ("deep fake image", "real image")
    assert class_folders("pacs") == (
        *("dog", "elephant", "giraffe", "guitar", "horse", "house", "person"),
    )
    office = class_folders("office-home")
    assert list(office) == sorted(office)
    assert {"Alarm_Clock", "Flipflops", "Postit_Notes", "TV", "ToothBrush", "Webcam"} <= set(office)


@pytest.mark.parametrize(
    ("data_set", "folder", "words"),
    [(d, f, w) for d, senses in OTHER_SENSES.items() for f, w in senses.items()],
)
def test_synonyms_mean_what_is_pictured(data_set, folder, words):
    _, synonyms = texts_of(data_set)[folder]
    wrong = [text for text in synonyms if re.search(rf"\b(?:{words})", text, re.IGNORECASE)]
    assert wrong == []


def test_names_and_synonyms_follow_the_order_asked_for():
    names, synonyms = class_texts("pacs", ("horse", "dog"))
    assert names == ("horse", "dog")
    assert "stallion" in synonyms[0]
    assert "puppy" in synonyms[1]


@pytest.fixture
def write(tmp_path):
    def write(text):
        path = tmp_path / "given.json"
        path.write_text(text if isinstance(text, str) else json.dumps(text))
        return path

    return write


def test_a_users_names_replace_ours(write):
    path = write({"dog": "hound", "horse": "steed", "cat": "not asked for"})
    names, synonyms = class_texts("pacs", ("horse", "dog"), names=path)
    assert names == ("steed", "hound")
    assert synonyms == class_texts("pacs", ("horse", "dog"))[1]


def test_a_users_synonyms_replace_ours(write):
    path = write({"dog": ["hound", "pup"], "horse": ["steed", "pony"]})
    names, synonyms = class_texts("pacs", ("horse", "dog"), synonyms=path)
    assert names == ("horse", "dog")
    assert synonyms == (("steed", "pony"), ("hound", "pup"))


def test_classes_of_a_users_own_need_both(write):
    names, synonyms = write({"cat": "cat"}), None
    with pytest.raises(DataError, match="no synonyms for the class cat of the data set 'pacs'"):
        class_texts("pacs", ("cat",), names, synonyms)
    with pytest.raises(DataError, match="no name for the class cat") as error:
        class_texts("pacs", ("cat",))
    assert "--names" in error.value.remedy


def test_a_class_may_have_no_synonyms(write):
    path = write({"dog": [], "horse": ["steed", "pony"]})
    assert class_texts("pacs", ("horse", "dog"), synonyms=path)[1] == (("steed", "pony"), ())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "cannot be read"),
        ('["dog"]', "not a JSON object"),
        ('{"horse": "steed"}', "lacks the class dog$"),
        ('{"dog": "hound", "horse": 3}', "has 3 where the class 'horse' needs a text"),
        ('{"dog": " ", "horse": "steed"}', "where the class 'dog' needs a text"),
    ],
)
def test_unfit_names(write, text, message):
    with pytest.raises(DataError, match=r"given\.json") as error:
        class_texts("pacs", ("dog", "horse"), names=write(text))
    assert re.search(message, error.value.message)
    assert error.value.remedy


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[", "cannot be read"),
        ('"dog"', "not a JSON object"),
        ("{}", "lacks the classes dog, horse$"),
        ('{"dog": "hound", "horse": ["a"]}', "no list of texts for the class 'dog'"),
        ('{"dog": ["hound", null], "horse": ["a", "b"]}', "has null where the class 'dog'"),
        ('{"dog": ["hound", ""], "horse": ["a", "b"]}', 'has "" where the class'),
        ('{"dog": ["hound"], "horse": ["a", "b"]}', "1 synonyms for some classes and 2 for"),
    ],
)
def test_unfit_synonyms(write, text, message):
    with pytest.raises(DataError, match=r"given\.json") as error:
        class_texts("pacs", ("dog", "horse"), synonyms=write(text))
    assert re.search(message, error.value.message)
    assert error.value.remedy


def test_missing_file(tmp_path):
    with pytest.raises(DataError, match=r"nothing\.json' cannot be read"):
        class_texts("pacs", ("dog",), names=tmp_path / "nothing.json")


def test_a_long_list_of_missing_classes_is_cut(write):
    with pytest.raises(DataError, match=r"o1, o2, o3, o4, o5 and 45 more"):
        class_texts("core50", class_folders("core50"), names=write("{}"))


@pytest.mark.parametrize(
    ("synonym", "problem"),
    [
        ("Canine.", "ASCII"),
        ("ch\u00e2teau dog", "ASCII"),
        ("dog, pup", "ASCII"),
        ("good  dog", "ASCII"),
        ("", "ASCII"),
        ("very good dog that guards the house", "more than 6 words"),
        ("a canine", "article"),
        ("The canine", "article"),
        ("kind of animal", "filler"),
        ("photo of pet", "filler"),
        ("canine object", "filler"),
        ("DOG", "repeats"),
        ("pup-py", "repeats"),
        ("Feline", "another class"),
        ("cat", "another class"),
    ],
)
def test_the_rules_name_every_fault(synonym, problem):
    good = {"d": ("dog", ["puppy", "hound"]), "c": ("cat", ["feline", "kitten"])}
    assert rules.problems(good, count=2) == []
    found = rules.problems(good | {"d": ("dog", ["puppy", synonym])}, count=2)
    assert any(text.startswith("d: ") and problem in text for text in found)


def test_the_rules_count_and_compare_names():
    texts = {"d": ("dog", ["puppy"]), "e": ("Dog", ["hound", "pooch"])}
    found = rules.problems(texts, count=2)
    assert "d: there are 1 synonyms, not 2" in found
    assert "e: the name 'Dog' is also used for another class" in found
