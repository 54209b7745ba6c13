"""What the documentation tells a reader to type does what it says, and nothing is left out.

Every code block of every page is run, page by page in an empty folder. A command that cannot be
(it downloads, installs or trains for minutes) stands in `INSTEAD` with the reason and with what is
run in its place; without such, it is checked as far as it goes without running it.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import tomllib
from dataclasses import dataclass
from pathlib import Path

import doc_blocks as docs
import published_trees as trees
import pytest
from packages import as_if_installed

from fsdil_bench.plugins.registry import load_registry

ROOT = docs.ROOT
FIRST_METHOD = "docs/first-method.md"


@dataclass(frozen=True)
class Instead:
    """Why a command is not run as it stands; what is run: with options `more`, or another one."""

    why: str
    more: str = ""
    run: str = ""
    code: int = 0


#: CVLC without training.
SHORT = "--set base_epochs=0 --set epochs=0 --set least_views=1 --set synonyms=false --base-limit 1"
WEIGHTS = "needs ViT-B/16's weights"
TRAINS = "trains for minutes"
DOWNLOADS = "downloads gigabytes"
REHEARSES = "rehearses for long"
INSTALLS = "installs a package"
CLUSTER = "needs a cluster; tests/sweeps runs these launchers on small ones"
SLOW = "run by the slow tests of tests/test_examples.py"

INSTEAD = {
    "fsdil-bench view runs": Instead("serves until it is interrupted; tests/view does that"),
    "make demo": Instead(f"{INSTALLS}, {TRAINS}"),
    "make test": Instead("is what runs this test"),
    "pip install 'fsdil-bench[avalanche]'": Instead(INSTALLS),
    "pip install 'fsdil-bench[hub]'": Instead(INSTALLS),
    "pip install 'fsdil-bench[mlflow]'": Instead(INSTALLS),
    "pip install 'fsdil-bench[plots]'": Instead(INSTALLS),
    "pip install 'fsdil-bench[ray]'": Instead(INSTALLS),
    "pip install 'fsdil-bench[slurm]'": Instead(INSTALLS),
    "pip install 'fsdil-bench[synonyms]'": Instead(INSTALLS),
    **{
        f"fsdil-bench sweep sweeps/embedded.toml --launcher {options}": Instead(CLUSTER)
        for options in (
            "ray --launcher-set address=head:6379",
            "slurm --launcher-set partition=gpu --launcher-set time=240",
        )
    },
    "pip install --editable '.[test]'": Instead(INSTALLS),
    "pip install --editable examples/fsdil-hello": Instead(INSTALLS),
    "python -m pytest": Instead(SLOW),
    "python -m pytest examples/fsdil-hello": Instead(SLOW),
    "fsdil-bench sweep --methods ncm,slda,ranpac --scenarios drawn --shots 1,2,4,8 --seeds 0-2 "
    "--jobs 2": Instead("36 runs", more="--shots 1 --seeds 0"),
    "fsdil-bench sweep sweeps/embedded.toml --jobs 2 --dry-run": Instead(
        REHEARSES, more="--on records"
    ),
    "fsdil-bench sweep sweeps/paper.toml --dry-run --on rtx-4090": Instead(
        REHEARSES, more="--methods lwf --scenarios cddb-hard-1shot --seeds 0"
    ),
    "fsdil-bench cost cvlc core50-1shot --on rtx-4090 --on a100": Instead(
        REHEARSES, more="--set synonyms=false --order s1,s2 --set epochs=1"
    ),
    "fsdil-bench data get core50": Instead(DOWNLOADS, more="--dry-run"),
    "fsdil-bench data get cddb-hard": Instead("is had by hand", more="--dry-run"),
    "fsdil-bench data get domainnet": Instead(DOWNLOADS, more="--dry-run"),
    "fsdil-bench data verify core50": Instead("the tree of the tests is small", code=1),
    "fsdil-bench data verify core50 --quick": Instead("the tree of the tests is small", code=1),
    "fsdil-bench run --method ncm --scenario folder-4shot --data ~/pacs "
    "--scenario-set drop_duplicates=true": Instead(
        "the tree of the tests has few images, over and over; tests/scenarios drops them"
    ),
    "fsdil-bench run --method ncm --scenario imagenet-c-4shot@corrupted --data ~/imagenet-c "
    "--scenario-set severity=5": Instead("needs 50 GB; tests/scenarios runs it on a small tree"),
    "fsdil-bench run --method ncm --scenario sources-4shot --data ~/sets --scenario-set "
    'domains=\'{"written": "torchvision:MNIST", "street": "torchvision:SVHN"}\'': Instead(
        "needs published files; tests/scenarios runs it on small ones"
    ),
    "ln -s /datasets/CORe50 $FSDIL_DATA/core50": Instead("a place of the reader's"),
    "fsdil-bench run --method ncm --scenario core50-1shot": Instead(
        WEIGHTS, more="--backbone tiny-clip"
    ),
    "fsdil-bench run --method cvlc --scenario core50-1shot": Instead(
        TRAINS, more=f"--backbone tiny-clip --order s1,s2 {SHORT}"
    ),
    "fsdil-bench run --method cvlc --scenario core50-1shot "
    "--order s8,s3,s2,s7,s1,s5,s4,s6 --seeds 0-2 --precision tf32": Instead(
        TRAINS,
        run="fsdil-bench run --method zero-shot --scenario core50-1shot --backbone tiny-clip "
        "--order s8,s3,s2,s7,s1,s5,s4,s6",
    ),
    "fsdil-bench run --method cvlc --scenario cddb-hard-1shot --seeds 0-4 "
    "--precision tf32": Instead(
        TRAINS, more=f"--backbone tiny-clip --seeds 0 --precision fp32 {SHORT}"
    ),
    "fsdil-bench run --method cvlc --scenario domainnet-1shot --seeds 0-2 "
    "--precision tf32": Instead(
        TRAINS, more=f"--backbone tiny-clip --seeds 0 --precision fp32 {SHORT}"
    ),
    "fsdil-bench run --method cvlc --scenario folder-4shot --data ~/pets --names names.json "
    "--synonyms synonyms.json": Instead(TRAINS, more=SHORT.replace("--set synonyms=false", "")),
    "fsdil-bench run --method avalanche-ewc --scenario drawn-1shot": Instead(
        TRAINS, more="--order real,sketch --base-limit 2 --set steps=1"
    ),
    "fsdil-bench run --plugin my_mas.py --method my-mas --scenario drawn-1shot "
    "--set strength=2": Instead(TRAINS, more="--order real,sketch --base-limit 2 --set steps=1"),
    "fsdil-bench run --method avalanche-mas --scenario drawn-1shot": Instead(
        TRAINS, more="--order real,sketch --base-limit 2 --set steps=1"
    ),
    "fsdil-bench run --method l2p --scenario pacs-4shot --data ~/pacs "
    "--backbone ViT-B-16-quickgelu:openai --base-limit 40 --set base_epochs=2 "
    "--set batch_size=14 --set steps=20": Instead(
        WEIGHTS, more="--backbone tiny-clip --set base_epochs=1 --set steps=1"
    ),
    **{
        f"fsdil-bench run --method {method} --scenario folder-4shot --data ~/pacs "
        f"--backbone ViT-B-16-quickgelu:{weights}": Instead(WEIGHTS)
        for method, weights in [
            ("ncm", "openai"),
            ("ncm", "~/weights/ViT-B-16.pt"),
            ("zero-shot", "visual.safetensors+names.npz"),
        ]
    },
    "hf download timm/vit_base_patch16_clip_224.openai open_clip_model.safetensors "
    "open_clip_config.json --local-dir vit-b-16": Instead("downloads, by another program"),
    "python -m fsdil_scenarios.forged.profile": Instead("draws and embeds for a minute"),
    "python -m fsdil_scenarios.tiny_clip.profile": Instead("draws and embeds for a minute"),
    "export OPENAI_API_KEY=...": Instead("a secret of the reader's"),
    'eval "$(fsdil-bench completion bash)"': Instead(
        "sets up the reader's shell", run="fsdil-bench completion bash"
    ),
    "python -m fsdil_scenarios.names.generate --classes names.json --out synonyms.json "
    "--model gpt-4o-mini": Instead("asks a language model"),
    "python -m fsdil_scenarios.names.generate --classes ~/pets --out synonyms.json "
    "--model llama3.1 --endpoint http://localhost:11434/v1 --count 10": Instead(
        "asks a language model"
    ),
}  # fmt: skip


@pytest.fixture(scope="session")
def home(tmp_path_factory):
    """A reader's home folder, with small stand-ins for the images that pages talk about."""
    place = tmp_path_factory.mktemp("home")
    trees.pacs(place / "pacs", per_class=8)
    for domain in ("farm", "flat"):
        for number, pet in enumerate(("dog", "guinea_pig", "horse")):
            for i in range(8):
                trees.write(place / "pets" / domain / pet / f"{i}.png", number + i)
    trees.core50(place / "data" / "core50", frames=3)
    trees.cddb(place / "data" / "cddb-hard", train=dict.fromkeys(trees.CDDB_DOMAINS, (4, 4)))
    trees.domainnet(place / "data" / "domainnet")
    return place


@pytest.fixture
def reader(drawn_cache, home, tmp_path, monkeypatch):
    """Read a page from top to bottom in an empty folder, doing all it says."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("FSDIL_DATA", str(home / "data"))

    def read(page):
        PREPARED.get(page, lambda patch: None)(monkeypatch)
        found = docs.blocks(page)
        for block in found:
            if block.title and block.language != "text":
                Path(block.title).write_text(block.text, encoding="utf-8")
        names, printed = {"__name__": "page"}, ""
        for block in found:
            if block.language == "python":
                printed = docs.run_python(block, names)
            elif block.title == "output":
                assert printed == block.text, f"{block}: it prints\n{printed}"
            elif block.title.startswith(docs.PROGRAM):
                check_shown(block)
            elif block.language == "console":
                for command in docs.commands(block):
                    run_command(command, page)

    return read


def check_shown(block: docs.Block) -> None:
    """Every line of the block is a line that the command in its title prints."""
    code, output = docs.call(docs.expanded(block.title))
    assert code == 0, output
    printed = [line.rstrip() for line in output.splitlines()]
    assert not [line for line in block.text.splitlines() if line.rstrip() not in printed], block


def run_command(command: str, page: str) -> None:
    instead = INSTEAD.get(command)
    if instead is None:
        typed, expected = command, 0
    elif instead.more or instead.code:
        typed, expected = f"{command} {instead.more}", instead.code
    else:
        check_without_running(shlex.split(command), page)
        typed, expected = instead.run, 0
    if typed:
        code, output = docs.call(docs.expanded(typed))
        assert code == expected, f"{page}: {typed}\n{output}"


def check_without_running(words: list[str], page: str) -> None:
    """As much as can be said about a command that is not run."""
    match words:
        case ["fsdil-bench", *_]:
            docs.check_parses(words, load_registry())
        case ["make", target]:
            makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
            assert re.search(rf"^{target}:", makefile, re.MULTILINE)
        case ["pip", "install", *_, what]:
            place, _, extras = what.removesuffix("]").partition("[")
            project = (ROOT / page).parent if place == "." else ROOT / place
            if place == "fsdil-bench":
                project = ROOT
            declared = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))
            known = declared["project"].get("optional-dependencies", {})
            assert not extras or extras in known
        case ["python", "-m", "pytest", *where]:
            folder = ROOT.joinpath(*where) if where else (ROOT / page).parent
            assert list(folder.glob("tests/test_*.py"))
        case ["python", "-m", module, *options]:
            code, text = docs.call(["python", "-m", module, "--help"])
            assert code == 0
            assert {word for word in options if word.startswith("--")} <= set(
                re.findall(r"--[\w-]+", text)
            )
        case ["hf", "download", repository, *_]:
            import open_clip

            known = open_clip.get_pretrained_cfg("ViT-B-16-quickgelu", "openai")
            assert known["hf_hub"].strip("/") == repository
        case ["ln" | "export" | "eval", *_]:
            pass  # shell
        case _:
            raise AssertionError(f"{page}: {shlex.join(words)}: there is no way to check it")


def small_weights(patch: pytest.MonkeyPatch) -> None:
    """A small model in place of ViT-B/16, a checkpoint with a config beside it, and both towers in
    files of their own."""
    import open_clip
    from clip_world import CONFIG, random_model
    from safetensors.torch import save_file

    model = random_model(0)
    patch.setattr(open_clip, "create_model", lambda *_, **__: model)
    Path("folder").mkdir()
    state = model.state_dict()
    image = {name: value for name, value in state.items() if name.startswith("visual.")}
    save_file(state, "folder/open_clip_model.safetensors")
    save_file(image, "visual.safetensors")
    save_file({n: v for n, v in state.items() if n not in image}, "text.safetensors")
    Path("config.json").write_text(json.dumps(CONFIG))
    Path("folder/open_clip_config.json").write_text(json.dumps({"model_cfg": CONFIG}))


def published(*places: str, method: str = "ncm"):
    """One of the published records, in these places."""

    def copy(patch: pytest.MonkeyPatch) -> None:
        [record] = (ROOT / "leaderboards/records/drawn-1shot" / method).glob("seed0-*")
        for place in places:
            shutil.copytree(record, Path(place) / record.name)

    return copy


def sweep_files(patch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / "sweeps", "sweeps")


def a_submission(patch: pytest.MonkeyPatch) -> None:
    names = ("ncm", "my-idea")
    published("leaderboards/records", *(f"runs/drawn-1shot/{name}" for name in names))(patch)
    words = ["fsdil-bench", "submit", "leaderboards/records", "--out", "submission.zip"]
    code, output = docs.call(words)
    assert code == 0, output


def installed(name: str):
    return lambda patch: as_if_installed(patch, ROOT / "examples" / name)


#: What must be there before a page is read.
PREPARED = {
    "README.md": published("leaderboards/records/drawn-1shot/slda", method="slda"),
    "docs/backbones.md": small_weights,
    "docs/commands.md": sweep_files,
    "docs/cost.md": sweep_files,
    "docs/leaderboards.md": published("runs/drawn-1shot/ncm"),
    "docs/paper.md": published("runs/drawn-1shot/ncm"),
    "docs/reproducing.md": published("leaderboards/records/drawn-1shot/ncm"),
    "docs/submissions.md": a_submission,
    "docs/sweeps.md": sweep_files,
    "examples/README.md": installed("fsdil-hello"),
    **{
        f"examples/{folder.name}/README.md": installed(folder.name)
        for folder in (ROOT / "examples").iterdir()
        if folder.is_dir()
    },
}


@pytest.mark.parametrize("page", [page for page in docs.PAGES if page != FIRST_METHOD])
def test_a_page_does_what_it_says(reader, page):
    reader(page)


def test_from_nothing_to_a_new_method_on_a_board(reader, tmp_path):
    """With the exact commands of the page, and nothing else."""
    blocks = [b for b in docs.blocks(FIRST_METHOD) if b.language == "console"]
    typed = [c for b in blocks for c in docs.commands(b)]
    assert not set(typed) & set(INSTEAD)
    verbs = [command.split()[1] for command in typed]
    assert [v for v in dict.fromkeys(verbs) if v != "list"] == [
        "new-method", "run", "check", "show", "leaderboard",
    ]  # fmt: skip
    assert not list(tmp_path.iterdir())
    reader(FIRST_METHOD)
    [board] = tmp_path.glob("boards/drawn-1shot*.md")
    rows = re.findall(r"^\| ([\w-]+) .*±", board.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(rows) == ["my-idea", "ncm"]


@pytest.mark.parametrize("page", docs.PAGES)
def test_every_block_says_what_it_is(page):
    for block in docs.blocks(page):
        assert block.language in {"python", "py", "console", "json", "toml", "text"}, block
        if block.language == "py":  # a signature: shown, not run
            compile(block.text, str(block), "exec")
        if block.language == "json":
            json.loads(block.text)
        if block.language == "toml":
            tomllib.loads(block.text)
        if block.language == "text":
            known = block.title in {"output", "diagram"} or block.title.startswith(docs.PROGRAM)
            assert known, f"{block}: what prints it?"


def test_no_exception_without_a_command():
    typed = {c for page in docs.PAGES for b in docs.blocks(page) for c in docs.commands(b)}
    assert set(INSTEAD) <= typed
    assert all(instead.why for instead in INSTEAD.values())


def test_exactly_two_set_up_commands_of_one_line():
    made = [b.text.strip() for b in docs.blocks("README.md") if b.text.startswith("make")]
    assert made == ["make demo", "make test"]


@pytest.mark.parametrize("page", [page for page in docs.PAGES if not page.startswith("docs/")])
def test_links_outside_the_site_lead_somewhere(page):
    """MkDocs looks at those of the site."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
        if not target.startswith("http"):
            assert ((ROOT / page).parent / target).exists(), target


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 120


def test_the_board_in_the_readme_is_the_published_one():
    [published_board] = (ROOT / "leaderboards").glob("shelf_*.md")
    real, shown = ({}, {})
    for cells, path in ((real, published_board), (shown, ROOT / "README.md")):
        for table in re.findall(r"(?:^\|.*\n)+", path.read_text(encoding="utf-8"), re.MULTILINE):
            head, _, *rows = [
                [cell.strip() for cell in line.strip("|").split("|")]
                for line in table.replace("\\*", "*").splitlines()
            ]
            cells.update(
                {(row[0], name): cell for row in rows for name, cell in zip(head, row, strict=True)}
            )
    assert len(shown) >= 20
    assert shown.items() <= real.items()


def test_every_command_is_on_the_page_of_commands():
    from fsdil_bench import cli

    text = (ROOT / "docs/commands.md").read_text(encoding="utf-8")
    told = {name for row in re.findall(r"^\| (`.*?) \|", text, re.M) for name in row.split(", ")}
    assert {f"`{name}`" for name in cli.cli.commands} == told
