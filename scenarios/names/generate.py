"""Ask a language model for the synonyms of a data set, through any OpenAI-compatible endpoint.

    python -m fsdil_scenarios.names.generate --classes classes.json --out synonyms.json --model NAME

`--classes` is a JSON object {folder: name}, as for `--names`, or a tree root/<domain>/<class>/
of images. `--out` is a file for `--synonyms`. It is written after every class, and the same
command continues where it was interrupted. Answers that break the rules are sent back a few times;
the exit code is 1 if some classes have no synonyms in the end. Nothing else in this project calls
a language model, and the results deserve a reader: only a person sees that a "mouse" is the
wrong one.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeGuard

from fsdil_bench import DataError, FsdilError, RequestError

from . import read_names, read_object, rules

ATTEMPTS = 4
PROMPT = """\
A data set of pictures has these classes: {classes}.
Write {count} short noun phrases that a caption could use instead of "{name}" for a picture of \
that class, in the sense that fits this data set: other words for it, or a few words that \
describe it.
Each phrase has one to {longest} words in plain ASCII, lower case except for proper names, \
without an article at the beginning and without a full stop. The phrases differ from the name, \
from each other and from what one would call any other class. No filler such as "kind of" or \
"object".
Answer with a JSON array of {count} strings and nothing else."""
AGAIN = """\
That does not fit: {problems}.
Answer again with a complete JSON array of {count} strings and nothing else."""

#: Sends a conversation of {"role", "content"} messages and returns the answer.
Ask = Callable[[list[dict[str, str]]], str]


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    options = _parser().parse_args(arguments)
    try:
        classes = read_classes(options.classes)
        ask = connect(options.model, options.endpoint, options.key_variable)
        failed = generate(classes, ask, options.out, options.count)
    except FsdilError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("interrupted; the same command continues from here", file=sys.stderr)
        return 130
    if failed:
        print(f"no good synonyms for: {', '.join(failed)}", file=sys.stderr)
        print("Run the command again, or write them by hand.", file=sys.stderr)
    return 1 if failed else 0


def read_classes(path: Path) -> dict[str, str]:
    """{folder: name} from such a JSON file, or from a tree root/<domain>/<class>/ of images."""
    if not path.is_dir():
        folders = list(read_object(path))
        return dict(zip(folders, read_names(path, folders), strict=True))
    classes = {c.name for c in path.glob("*/*") if c.is_dir() and not c.name.startswith(".")}
    if not classes:
        raise DataError(
            f"'{path}' has no class folders", "It must be a tree root/<domain>/<class>/<image>."
        )
    return {folder: folder.replace("_", " ") for folder in sorted(classes)}


def connect(model: str, endpoint: str | None, key_variable: str) -> Ask:
    """A function that asks `model` at `endpoint` (by default OpenAI's own)."""
    try:
        openai = importlib.import_module("openai")
    except ImportError:
        raise RequestError(
            "generating synonyms needs the package 'openai'",
            "Install it with: pip install 'fsdil-bench[synonyms]'",
        ) from None
    key = os.environ.get(key_variable, "")
    if not key and endpoint is None:
        raise RequestError(
            f"the environment variable {key_variable} holds no API key",
            "Set it, or name another one with --key-variable. Endpoints of your own "
            "(--endpoint) may do without.",
        )
    client = openai.OpenAI(api_key=key or "none", base_url=endpoint, timeout=120)

    def ask(messages: list[dict[str, str]]) -> str:
        try:
            answer = client.chat.completions.create(model=model, messages=messages)
        except openai.OpenAIError as error:
            raise FsdilError(
                f"'{model}' did not answer: {error}",
                "Check --model, --endpoint and the key; the same command continues from here.",
            ) from None
        return answer.choices[0].message.content or ""

    return ask


def generate(classes: Mapping[str, str], ask: Ask, out: Path, count: int) -> list[str]:
    """Fill the file `out` with synonyms of `classes`; returns the classes it could not do."""
    entries = read_object(out) if out.exists() else {}
    taken = {rules.key(name) for name in classes.values()}
    todo = []
    for folder, name in classes.items():
        synonyms = entries.get(folder)
        if _are_texts(synonyms) and not rules.synonym_problems(name, synonyms, taken, count):
            taken.update(map(rules.key, synonyms))
        else:
            todo.append(folder)
    failed = []
    for number, folder in enumerate(todo, len(classes) - len(todo) + 1):
        synonyms, problems = _synonyms_of(classes[folder], classes, taken, ask, count)
        if problems:
            failed.append(folder)
        else:
            taken.update(map(rules.key, synonyms))
            entries[folder] = synonyms
            _write(out, entries)
        result = f"given up: {'; '.join(problems)}" if problems else ", ".join(synonyms)
        print(f"[{number}/{len(classes)}] {classes[folder]}: {result}", file=sys.stderr, flush=True)
    return failed


def _synonyms_of(
    name: str, classes: Mapping[str, str], taken: set[str], ask: Ask, count: int
) -> tuple[list[str], list[str]]:
    """Synonyms of one class, and what is wrong with them after the last attempt."""
    prompt = PROMPT.format(
        classes=", ".join(classes.values()), name=name, count=count, longest=rules.LONGEST
    )
    messages = [{"role": "user", "content": prompt}]
    for _ in range(ATTEMPTS):
        answer = ask(messages)
        synonyms = _parse(answer)
        if synonyms is None:
            problems = ["the answer is not a JSON array of strings"]
        else:
            problems = rules.synonym_problems(name, synonyms, taken, count)
        if not problems:
            break
        again = AGAIN.format(problems="; ".join(problems), count=count)
        messages += [
            {"role": "assistant", "content": answer or "[]"},
            {"role": "user", "content": again},
        ]
    return synonyms or [], problems


def _parse(answer: str) -> list[str] | None:
    """The JSON array in an answer; models like to wrap it in a sentence or a code block."""
    try:
        array = json.loads(answer[answer.index("[") : answer.rindex("]") + 1])
    except ValueError:
        return None
    return [text.strip() for text in array] if _are_texts(array) else None


def _are_texts(value: Any) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def _write(path: Path, entries: Mapping[str, Any]) -> None:
    """Replace the file as a whole, so that it is never half written."""
    rows = [f"  {json.dumps(folder)}: {json.dumps(texts)}" for folder, texts in entries.items()]
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    temporary.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")
    temporary.replace(path)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m fsdil_scenarios.names.generate",
        description="Ask a language model for the synonyms of a data set's classes.",
    )
    add = parser.add_argument
    add("--classes", type=Path, required=True, help="JSON {folder: name}, or a tree of images")
    add("--out", type=Path, required=True, help="the file for --synonyms; kept where it is good")
    add("--model", required=True, help="the model's name at the endpoint")
    add("--endpoint", help="URL of an OpenAI-compatible endpoint (default: OpenAI's)")
    add("--key-variable", default="OPENAI_API_KEY", help="environment variable with the API key")
    add("--count", type=_positive, default=rules.COUNT, help="synonyms per class (default: 10)")
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number above 0")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
