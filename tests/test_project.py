"""The files around the code: what they promise is what there is."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = SETTINGS["project"]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
PYTHONS = ["3.11", "3.12", "3.13"]


def jobs(path: Path) -> dict:
    return yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"]


def targets() -> set[str]:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))


def test_the_pythons_promised_are_those_tested():
    promised = [c.rpartition(" :: ")[2] for c in PROJECT["classifiers"] if "Python :: 3." in c]
    assert promised == PYTHONS
    assert PROJECT["requires-python"] == f">={PYTHONS[0]}"
    linux = jobs(ROOT / ".github/workflows/tests.yml")["linux"]
    assert linux["strategy"]["matrix"]["python"] == PYTHONS
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "Python 3.11, 3.12 or 3.13" in readme


def test_types_are_checked_for_the_python_that_runs():
    """numpy's stubs, read as for an older Python than numpy itself needs, are full of errors."""
    assert "python_version" not in SETTINGS["tool"]["mypy"]


def test_the_systems_promised_are_posix():
    systems = {c for c in PROJECT["classifiers"] if c.startswith("Operating System")}
    assert systems == {"Operating System :: POSIX", "Operating System :: MacOS"}


@pytest.mark.parametrize(("python", "needed"), [("3.11", False), ("3.12", True), ("3.13", True)])
def test_avalanche_gets_the_distutils_that_it_imports(python, needed):
    extra = [Requirement(text) for text in PROJECT["optional-dependencies"]["avalanche"]]
    place = {"python_version": python}
    names = {r.name for r in extra if r.marker is None or r.marker.evaluate(place)}
    assert ("setuptools" in names) == needed


def test_there_are_workflows_for_tests_docs_and_boards():
    assert [path.stem for path in WORKFLOWS] == ["boards", "docs", "tests"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_calls_what_there_is(path):
    whole = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert whole["permissions"] == {"contents": "read"}
    assert whole["concurrency"]["cancel-in-progress"] is True
    assert {"push", "pull_request"} <= set(whole[True])  # YAML reads the key `on` so
    commands = []
    for job in whole["jobs"].values():
        assert job["timeout-minutes"] <= 90
        for step in job["steps"]:
            if "uses" in step:
                assert re.fullmatch(r"actions/[a-z-]+@v\d+", step["uses"])
            if step.get("uses", "").startswith("actions/setup-python"):
                assert step["with"]["cache"] == "pip"
                assert (ROOT / step["with"]["cache-dependency-path"]).is_file()
            if "run" in step:
                commands.append(step["run"].split())
    assert commands
    for program, target, *_ in commands:
        assert program == "make"
        assert target in targets()


@pytest.mark.parametrize("target", ["test-machine", "test-lowest"])
def test_the_tests_that_the_makefile_names_are_there(target):
    done = subprocess.run(
        ["make", "--dry-run", target], cwd=ROOT, capture_output=True, text=True, check=True
    )
    named = [word for word in done.stdout.split() if word.startswith("tests/")]
    assert len(named) > 3
    assert not [name for name in named if not (ROOT / name).exists()]


def test_the_citation_is_complete():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["cff-version"] == "1.2.0"
    assert citation["authors"] == [{"name": "The fsdil-bench developers"}]
    assert citation["type"] == "software"
    assert citation["message"]
    assert citation["title"].startswith(PROJECT["name"])
    assert str(citation["version"]) == PROJECT["version"]
    assert citation["license"] == PROJECT["license"]
    assert citation["keywords"] == PROJECT["keywords"]
    known = {"cff-version", "message", "type", "title", "abstract", "authors", "version"}
    assert set(citation) <= known | {"license", "keywords", "date-released"}


def test_the_changelog_is_ready_for_a_tag():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert headings[0] == "[Unreleased]"
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", each) for each in headings[1:])
    assert f"[{PROJECT['version']}]" in " ".join(headings)
    kinds = set(re.findall(r"^### (.*)$", text, re.MULTILINE))
    assert kinds <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


#: Words that made sentences hard to read, and what to write instead.
OLD_WORDS = {
    r"\bmend": "fix",
    r"\banew\b": "again",
    r"\bgo(?:es)? on (?:with|after|behind|where|by)\b|\bgoes on\b": "resume, continue",
    r"\bare others\b": "are different",
    r"\bis dear\b": "is expensive",
    r"\bin a circle\b": "deadlock",
    r"\bknobs?\b": "option",
    r"\btold[ _]apart\b": "distinguishable, separate",
    r"_of_now\b|\bAskedPictures\b|\bToldProgress\b|\bNursery\b": "a name that explains itself",
}
#: Where they are looked for, as pathspecs of git.
PLACES = ("*.md", "*.py", "*.toml", "*.yml", "*.html", "*.js", "Makefile")
#: Never: what was, and what programs wrote.
NOT_IN = (":!CHANGELOG.md", ":!leaderboards", ":!*.safetensors", ":!*.json", ":!*.csv")
#: Files that need one of these words, and why.
NEED = {
    "fsdil_bench/__init__.py": "exports the old name `knob`",
    "fsdil_bench/plugins/options.py": "defines the old name `knob`",
    "tests/test_api.py": "imports the old name `knob`",
    "tests/test_project.py": "this list",
    "tests/test_reference.py": "names the old name `knob`",
}


def test_the_old_words_stay_out():
    command = ["git", "ls-files", "--", *PLACES, *NOT_IN]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git repository")
    found = []
    for name in sorted(set(listed.stdout.split("\n")) - {"", *NEED}):
        path = ROOT / name
        if not path.is_file():
            continue
        for number, line in enumerate(path.read_text("utf-8", "replace").splitlines(), 1):
            for old, new in OLD_WORDS.items():
                if re.search(old, line, re.IGNORECASE):
                    found.append(f"{name}:{number}: write {new}: {line.strip()}")
    assert not found, "\n".join(found)
