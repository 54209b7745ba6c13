"""Write docs/api.md, docs/hooks.md and tables of docs/checking.md, commands.md and sealed.md.

    python docs/make_reference.py

Signatures and docstrings are copied, so that the pages can be read on a code host as well as on
the site. `tests/test_reference.py` fails when the pages are not what this script writes.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
ROOT = DOCS.parent
NOTE = "<!-- Made by docs/make_reference.py from docstrings: change those, then run it again. -->"
WIDTH = 100

API_INTRO = """\
Everything on this page is imported from `fsdil_bench`, except where it says otherwise. Built-in
plugins use nothing else but `fsdil_bench.adapters`, which puts trainable parts into CLIP's blocks.
"""

#: The sections of docs/api.md: a sentence below the heading, and names of `fsdil_bench`, or with
#: the module where they are in another.
API: dict[str, tuple[str, list[str]]] = {
    "Methods": ("", ["Method", "RouterMethod", "Context", "option", "numpy_generator"]),
    "What a method is shown": ("", ["TrainDomain", "TrainBatch", "Batch", "Backbone"]),
    "Scenarios": (
        "",
        ["Stream", "Domain", "Samples", "ScenarioRequest", "DataSource", "Download", "Remark",
         "Outline"],
    ),
    "Images in files": (
        "",
        [
            "file_samples", "image_names", "is_image_name", "read_image", "missing_files",
            "starts_like_an_image", "find_copies", "drop_copies", "describe_copies",
        ],
    ),
    "Backbones": ("", ["open_clip_backbone", "KnownTexts", "ImageSpec"]),
    "Runs": (
        "The options of `run` are the fields of `RunRequest` (`fsdil_bench.runs.request`);\n"
        "`fsdil-bench run --help` explains them.",
        ["run", "fsdil_bench.runs.request:RunRequest", "load_stream"],
    ),
    "Results": (
        "",
        [
            "Record", "find_records", "load_boards", "Boards", "Board", "compare", "Comparison",
            "plot", "Picture", "load_runs", "load_accuracies", "scores", "write_leaderboards",
        ],
    ),
    "Launchers": (
        "[Sweeps](sweeps.md#other-machines) says how they are used.",
        ["Launcher", "LauncherSetup", "Task", "Resources", "Event"],
    ),
    "Trackers": (
        "[Trackers](tracking.md) says how they are used.",
        ["Tracker", "TrackedRun", "FinishedDomain"],
    ),
    "Avalanche": (
        "[Avalanche](avalanche.md) has examples.",
        ["stream_from_avalanche", "avalanche_method", "AvalancheConfig"],
    ),
    "Errors": (
        "The command line prints them as one message, without a traceback.",
        ["FsdilError", "RequestError", "DataError", "PluginError", "RecordError"],
    ),
    "Checks": (
        "From `fsdil_bench.checks`; [Checking a method](checking.md) says what they look for.",
        ["fsdil_bench.checks:method_checks", "fsdil_bench.checks:check_method"],
    ),
    "Adapters": ("From `fsdil_bench.adapters`.", ["fsdil_bench.adapters:*"]),
}  # fmt: skip

#: What the harness builds itself: how is none of a plugin's business.
BUILT_BY_HARNESS = {"TrainDomain", "Batch"}
#: Public members that are for the harness.
HIDDEN = {
    "TrainDomain": {"close"},
    "Backbone": {
        "ask_for_texts", "check_untouched", "frozen_features", "notes", "place",
        "tokenizer_version",
    },
}  # fmt: skip

HOOKS_INTRO = """\
A plugin is a module with functions of these names, marked with `fsdil_bench.hookimpl`. It is a file
given with `--plugin`, or a package with an entry point.
"""

HOOKS_REST = """\
## Found by an entry point

In the `pyproject.toml` of a package:

```toml
[project.entry-points.fsdil_bench]
my-package = "my_package"
```

A plugin may say which version of this interface it was written for (`FSDIL_API = 1`); another
version is refused with a message. `fsdil-bench list plugins` shows what a plugin does wrong.

## Descriptors

The hooks return descriptors. They are cheap: a `factory` written as text (`"package.module:name"`)
is imported only when a run needs it, so that listing never imports torch. In a single file it may
be the object itself.
"""
DESCRIPTORS = ["MethodInfo", "ScenarioInfo", "BackboneInfo", "LauncherInfo", "TrackerInfo"]


def main() -> None:
    """Write all pages."""
    for page, text in pages().items():
        page.write_text(text, encoding="utf-8")


def pages() -> dict[Path, str]:
    """What each page should say."""
    checking, commands = DOCS / "checking.md", DOCS / "commands.md"
    sealed = DOCS / "sealed.md"
    return {
        DOCS / "api.md": api_page(),
        DOCS / "hooks.md": hooks_page(),
        checking: with_checks(checking.read_text(encoding="utf-8")),
        commands: with_exit_codes(commands.read_text(encoding="utf-8")),
        sealed: with_attacks(sealed.read_text(encoding="utf-8")),
    }


def api_page() -> str:
    """All names that plugins and scripts use."""
    parts = ["# What plugins use", NOTE, API_INTRO.strip()]
    for title, (intro, names) in API.items():
        parts += [f"## {title}", *([intro] if intro else [])]
        for name in expanded(names):
            parts += entry(*located(name))
    return joined(parts)


def hooks_page() -> str:
    """All hooks with their examples, and the descriptors that they return."""
    from fsdil_bench.plugins import hookspecs

    parts = ["# Hooks", NOTE, HOOKS_INTRO.strip()]
    for name, hook in vars(hookspecs).items():
        if hasattr(hook, f"{hookspecs.GROUP}_spec"):
            parts += [f"## {name}", code(signature(definition(hook))), markdown(hook)]
    parts.append(HOOKS_REST.strip())
    for name in DESCRIPTORS:
        parts += entry(*located(name))
    return joined(parts)


def with_checks(page: str) -> str:
    """The page with the table of all checks between its two marks."""
    from fsdil_bench.checks import CHECKS

    asked = {name: (check.__doc__ or "").partition("\n")[0] for name, check in CHECKS.items()}
    rows = [f"| `{name}` | {what} |" for name, what in asked.items()]
    table = "\n".join(["| check | what it asks |", "|---|---|", *rows])
    return between(page, "<!-- checks -->", "<!-- end of checks -->", table)


def with_exit_codes(page: str) -> str:
    """The page with the table of exit codes between its two marks."""
    from fsdil_bench.exit_codes import MEANINGS

    rows = [f"| {code} | {meaning} |" for code, meaning in MEANINGS.items()]
    table = "\n".join(["| exit code | meaning |", "|---|---|", *rows])
    return between(page, "<!-- exit codes -->", "<!-- end of exit codes -->", table)


def with_attacks(page: str) -> str:
    """The page with the table of all attacks between its two marks, as their files say it."""
    rows: list[str] = []
    for file in sorted((ROOT / "tests/attacks").glob("a*.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        [ends] = [
            ast.literal_eval(node.value)
            for node in tree.body
            if isinstance(node, ast.Assign) and unparse(node.targets[0]) == "EXPECTED"
        ]
        if not rows:
            rows = [f"| {' | '.join(['attack', *ends])} |", "|---" * (1 + len(ends)) + "|"]
        what = (ast.get_docstring(tree) or "").partition("\n")[0].rstrip(".")
        link = f"[{what}](../{file.relative_to(ROOT).as_posix()})"
        rows.append(f"| {' | '.join([link, *ends.values()])} |")
    return between(page, "<!-- attacks: begin -->", "<!-- attacks: end -->", "\n".join(rows))


def between(page: str, start: str, end: str, table: str) -> str:
    """The page with the table between two marks."""
    before, _, rest = page.partition(start)
    return f"{before}{start}\n\n{table}\n\n{end}{rest.partition(end)[2]}"


def expanded(names: list[str]) -> Iterator[str]:
    """The names, with `module:*` replaced by all that the module exports."""
    for name in names:
        module, _, last = name.rpartition(":")
        if last == "*":
            yield from (f"{module}:{each}" for each in importlib.import_module(module).__all__)
        else:
            yield name


def located(name: str) -> tuple[str, Any]:
    """The last part of a name, and what it means."""
    module, _, last = name.rpartition(":")
    return last, getattr(importlib.import_module(module or "fsdil_bench"), last)


def entry(name: str, value: Any) -> list[str]:
    """The part of the page about one class, function or constant."""
    if not (inspect.isclass(value) or inspect.isfunction(value)):
        return [f"### {name}", f"`{name} = {value}`"]
    tree = definition(value)
    file = Path(inspect.getsourcefile(inspect.unwrap(value)) or "").relative_to(ROOT).as_posix()
    parts = [f"### {name}", code(outline(tree)), markdown(value)]
    if isinstance(tree, ast.ClassDef):
        for member in members(tree, name):
            parts += [f"#### {name}.{member.name}", code(signature(member))]
            parts.append(markdown(inspect.getattr_static(value, member.name)))
    return [*parts, f"Source: [{file}](../{file})"]


def definition(value: Any) -> ast.ClassDef | ast.FunctionDef:
    """The definition of a class or function, as it stands in its file."""
    source = textwrap.dedent(inspect.getsource(inspect.unwrap(value)))
    [tree] = ast.parse(source).body
    assert isinstance(tree, ast.ClassDef | ast.FunctionDef)
    return tree


def outline(tree: ast.ClassDef | ast.FunctionDef) -> str:
    """A function's signature; a class with its fields and its constructor."""
    if isinstance(tree, ast.FunctionDef):
        return signature(tree)
    bases = ", ".join(unparse(base) for base in tree.bases if unparse(base) != "ABC")
    lines = [f"class {tree.name}({bases}):" if bases else f"class {tree.name}:"]
    for node in tree.body:
        match node:
            case ast.AnnAssign(target=ast.Name(id=field)) if not field.startswith("_"):
                lines += textwrap.indent(field_text(node), "    ").splitlines()
            case ast.FunctionDef(name="__init__") if tree.name in BUILT_BY_HARNESS:
                lines += [f"    {each}" for each in attributes(node)]
            case ast.FunctionDef(name="__init__"):
                lines += [""] if len(lines) > 1 else []
                lines += textwrap.indent(signature(node, indent=4), "    ").splitlines()
    return "\n".join(lines if len(lines) > 1 else [f"{lines[0]} ..."])


def attributes(constructor: ast.FunctionDef) -> list[str]:
    """Public attributes that take over a parameter, `self.name = name`, with its type."""
    kept = {unparse(node) for node in constructor.body if isinstance(node, ast.Assign)}
    arguments = [*constructor.args.args, *constructor.args.kwonlyargs]
    return [unparse(each) for each in arguments if f"self.{each.arg} = {each.arg}" in kept]


def field_text(node: ast.AnnAssign) -> str:
    """A field on one line, or over several if it is long."""
    text = unparse(node)
    if len(text) <= WIDTH - 4 or not isinstance(node.value, ast.Call):
        return text
    head = f"{unparse(node.target)}: {unparse(node.annotation)}"
    call = node.value
    arguments = [unparse(each) for each in (*call.args, *call.keywords)]
    inner = "".join(f"    {each},\n" for each in arguments)
    return f"{head} = {unparse(call.func)}(\n{inner})"


def members(tree: ast.ClassDef, name: str) -> list[ast.FunctionDef]:
    """Public methods and properties with a docstring, in the order of the file."""
    return [
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
        and not node.name.startswith("_")
        and node.name not in HIDDEN.get(name, ())
        and ast.get_docstring(node)
    ]


def signature(tree: ast.FunctionDef | ast.ClassDef, indent: int = 0) -> str:
    """`def name(...) -> type: ...`, one parameter per line if it is long; `name: type`, if it is a
    property."""
    assert isinstance(tree, ast.FunctionDef)
    kinds = {unparse(each) for each in tree.decorator_list}
    result = unparse(tree.returns) if tree.returns else ""
    if "property" in kinds:
        return f"{tree.name}: {result}"
    head = f"@classmethod\ndef {tree.name}" if "classmethod" in kinds else f"def {tree.name}"
    end = f" -> {result}: ..." if result else ": ..."
    found = [each for each in parameters(tree.args) if each not in ("self", "cls")]
    whole = f"{head}({', '.join(found)}){end}"
    if len(whole) <= WIDTH - indent:
        return whole
    return f"{head}(\n{''.join(f'    {each},{chr(10)}' for each in found)}){end}"


def parameters(arguments: ast.arguments) -> list[str]:
    """Each parameter as it stands in the source, `*` and `/` included."""
    positional = [*arguments.posonlyargs, *arguments.args]
    without = len(positional) - len(arguments.defaults)
    defaults = [*[None] * without, *arguments.defaults]
    found = [parameter(a, d) for a, d in zip(positional, defaults, strict=True)]
    if arguments.posonlyargs:
        found.insert(len(arguments.posonlyargs), "/")
    if arguments.vararg:
        found.append(f"*{unparse(arguments.vararg)}")
    elif arguments.kwonlyargs:
        found.append("*")
    named = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    found += [parameter(a, d) for a, d in named]
    return [*found, *([f"**{unparse(arguments.kwarg)}"] if arguments.kwarg else [])]


def parameter(argument: ast.arg, default: ast.expr | None) -> str:
    """`name: type = default`."""
    return unparse(argument) + (f" = {unparse(default)}" if default is not None else "")


def unparse(node: ast.AST) -> str:
    """The source of a node, strings in double quotes as everywhere in the project."""
    return re.sub(r"'([^'\"\\]*)'", r'"\1"', ast.unparse(node))


def code(text: str) -> str:
    """A block that is shown and not run: tests run the `python` blocks of pages."""
    return f"```py\n{text}\n```"


def markdown(value: Any) -> str:
    """A docstring as Markdown. Code in it is shown, and examples stand at the margin."""
    text = inspect.getdoc(value) or ""
    head, example, body = text.partition("\nExample:\n")
    if example:
        text = f"{head}\nExample:\n\n{textwrap.dedent(body)}"
    text = re.sub(r'(?<![`"])\b(AA|FA)\*(?![`"])', r"\1\\*", text)  # a star would begin italics
    return text.replace("```python", "```py")


def joined(parts: list[str]) -> str:
    """Parts with an empty line between them."""
    return "\n\n".join(part.strip("\n") for part in parts if part) + "\n"


if __name__ == "__main__":
    main()
