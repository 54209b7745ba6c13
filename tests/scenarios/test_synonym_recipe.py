"""The recipe for synonyms of a new data set, against a small endpoint on this machine."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from fsdil_scenarios.names import generate, read_synonyms

from fsdil_bench import DataError, FsdilError

DOCS = Path(__file__).parents[2] / "docs" / "synonyms.md"
ANSWERS = {
    "dog": ["puppy", "hound"],
    "horse": ["pony", "steed"],
    "guinea pig": ["cavy", "small pet rodent"],
}


class Endpoint:
    """Answers /chat/completions with what `answer(name, attempt)` says, and keeps the requests."""

    def __init__(self, server):
        self.url = f"http://127.0.0.1:{server.server_port}/v1"
        self.requests = []
        self.keys = []
        self.status = 200

    def answer(self, name, attempt):
        return json.dumps(ANSWERS[name])

    @property
    def asked(self):
        return [self.name_in(request) for request in self.requests]

    @staticmethod
    def name_in(request):
        return re.search(r'instead of "([^"]*)"', request["messages"][0]["content"])[1]

    def respond(self, request):
        self.requests.append(request)
        content = self.answer(self.name_in(request), len(request["messages"]) // 2)
        return {
            "id": "1",
            "object": "chat.completion",
            "created": 0,
            "model": request["model"],
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "stop",
                    "message": {"role": "assistant", "content": content},
                }
            ],
        }


@pytest.fixture
def endpoint(monkeypatch):
    pytest.importorskip("openai", reason="the extra 'synonyms' is not installed")

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            found.keys.append(self.headers["Authorization"])
            if self.path != "/v1/chat/completions":
                status, reply = 404, {}
            elif found.status != 200:
                status, reply = found.status, {"error": {"message": "no such key"}}
            else:
                status, reply = 200, found.respond(json.loads(body))
            data = json.dumps(reply).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found = Endpoint(server)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield found
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def classes(tmp_path):
    path = tmp_path / "classes.json"
    path.write_text(json.dumps({"dog": "dog", "n02": "horse", "guinea_pig": "guinea pig"}))
    return path


@pytest.fixture
def command(tmp_path, classes, endpoint):
    def command(*more):
        given = f"--classes {classes} --out {tmp_path / 'out.json'} --model some-model --count 2"
        return generate.main([*given.split(), "--endpoint", endpoint.url, *more])

    return command


def test_all_classes_in_one_go(command, endpoint, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("MY_KEY", "secret")
    assert command("--key-variable", "MY_KEY") == 0
    folders = ("dog", "n02", "guinea_pig")
    assert read_synonyms(tmp_path / "out.json", folders) == tuple(map(tuple, ANSWERS.values()))
    assert endpoint.asked == ["dog", "horse", "guinea pig"]
    assert set(endpoint.keys) == {"Bearer secret"}
    assert {request["model"] for request in endpoint.requests} == {"some-model"}
    prompt = endpoint.requests[0]["messages"][0]["content"]
    assert "dog, horse, guinea pig" in prompt
    assert "JSON array of 2 strings" in prompt
    progress = capsys.readouterr().err.splitlines()
    assert progress[0] == "[1/3] dog: puppy, hound"
    assert len(progress) == 3
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".tmp"] == []


def test_a_second_run_keeps_what_is_good(command, endpoint, tmp_path, capsys):
    out = tmp_path / "out.json"
    # One entry is good, one breaks the rules, and one belongs to no class of this data set.
    out.write_text(json.dumps({"n02": ["mare", "foal"], "dog": ["a dog", "pup"], "cat": ["tom"]}))
    assert command() == 0
    assert endpoint.asked == ["dog", "guinea pig"]
    entries = json.loads(out.read_text())
    assert entries["n02"] == ["mare", "foal"]
    assert entries["dog"] == ANSWERS["dog"]
    assert entries["cat"] == ["tom"]
    assert capsys.readouterr().err.startswith("[2/3] dog")


def test_what_was_done_is_kept_when_the_endpoint_fails(command, endpoint, tmp_path, capsys):
    endpoint.answer = lambda name, attempt: (
        setattr(endpoint, "status", 401) or json.dumps(ANSWERS[name])
    )
    assert command() == 1
    assert "'some-model' did not answer" in capsys.readouterr().err
    assert json.loads((tmp_path / "out.json").read_text()) == {"dog": ANSWERS["dog"]}
    endpoint.status = 200
    del endpoint.answer
    assert command() == 0
    assert endpoint.asked == ["dog", "horse", "guinea pig"]


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        ("I would rather not.", "not a JSON array of strings"),
        ("", "not a JSON array of strings"),
        ('["pony", 3]', "not a JSON array of strings"),
        ('["pony"]', "there are 1 synonyms, not 2"),
        ('["pony", "Pony"]', "'Pony' repeats"),
        ('["pony", "hound"]', "'hound' is also used for another class"),
        ('["pony", "guinea-pig"]', "'guinea-pig' is also used for another class"),
        ('["pony", "type of animal"]', "filler"),
    ],
)
def test_a_bad_answer_is_sent_back_with_the_reason(command, endpoint, tmp_path, bad, problem):
    good = ANSWERS["horse"]
    endpoint.answer = lambda name, attempt: (
        bad if (name, attempt) == ("horse", 0) else json.dumps(ANSWERS[name])
    )
    assert command() == 0
    assert endpoint.asked == ["dog", "horse", "horse", "guinea pig"]
    roles = [message["role"] for message in endpoint.requests[2]["messages"]]
    assert roles == ["user", "assistant", "user"]
    assert problem in endpoint.requests[2]["messages"][2]["content"]
    assert json.loads((tmp_path / "out.json").read_text())["n02"] == good


def test_an_array_in_a_code_block_is_understood(command, endpoint, tmp_path):
    endpoint.answer = lambda name, attempt: f"Sure:\n```json\n{json.dumps(ANSWERS[name])}\n```"
    assert command() == 0
    assert len(endpoint.requests) == 3


def test_hopeless_classes_are_reported(command, endpoint, tmp_path, capsys):
    endpoint.answer = lambda name, attempt: "[]" if name == "horse" else json.dumps(ANSWERS[name])
    assert command() == 1
    assert endpoint.asked.count("horse") == generate.ATTEMPTS
    assert list(json.loads((tmp_path / "out.json").read_text())) == ["dog", "guinea_pig"]
    error = capsys.readouterr().err
    assert "horse: given up: there are 0 synonyms, not 2" in error
    assert "no good synonyms for: n02" in error


def test_classes_from_a_tree_of_images(tmp_path):
    for folder in ("photo/dog", "photo/guinea_pig", "sketch/dog", "sketch/.cache"):
        (tmp_path / "tree" / folder).mkdir(parents=True)
    (tmp_path / "tree" / "photo" / "notes.txt").write_text("")
    expected = {"dog": "dog", "guinea_pig": "guinea pig"}
    assert generate.read_classes(tmp_path / "tree") == expected
    with pytest.raises(DataError, match="no class folders"):
        generate.read_classes(tmp_path / "tree" / "photo" / "dog")


def test_unfit_files_are_one_message(tmp_path, classes, command, capsys):
    (tmp_path / "out.json").write_text("half a fi")
    assert command() == 2
    assert "out.json' cannot be read" in capsys.readouterr().err
    classes.write_text('{"dog": ["dog"]}')
    assert command() == 2
    assert "the class 'dog' needs a text" in capsys.readouterr().err


def test_openai_itself_needs_a_key(monkeypatch):
    pytest.importorskip("openai", reason="the extra 'synonyms' is not installed")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(FsdilError, match="OPENAI_API_KEY holds no API key") as error:
        generate.connect("some-model", None, "OPENAI_API_KEY")
    assert error.value.exit_code == 2


def test_without_the_package_the_extra_is_named(monkeypatch, classes, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "openai", None)
    arguments = ["--classes", str(classes), "--out", str(tmp_path / "o.json"), "--model", "m"]
    assert generate.main(arguments) == 2
    assert "fsdil-bench[synonyms]" in capsys.readouterr().err


def test_an_interrupted_run_says_that_it_continues(command, endpoint, monkeypatch, capsys):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(generate, "generate", interrupt)
    assert command() == 130
    assert "the same command continues" in capsys.readouterr().err


@pytest.mark.parametrize("count", ["0", "-1", "ten"])
def test_unfit_count(count, capsys):
    with pytest.raises(SystemExit, match="2"):
        generate.main(["--classes", "c", "--out", "o", "--model", "m", "--count", count])
    assert "not a whole number above 0" in capsys.readouterr().err


def test_it_runs_as_a_module_and_imports_no_openai_before_it_must():
    code = (
        "import runpy, sys; sys.argv = ['generate', '--help']\n"
        "try: runpy.run_module('fsdil_scenarios.names.generate', run_name='__main__')\n"
        "except SystemExit as end: assert not end.code\n"
        "assert 'openai' not in sys.modules and 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "--key-variable" in done.stdout


def test_the_page_shows_the_prompt_and_options_as_they_are():
    page = DOCS.read_text(encoding="utf-8")
    prompt = generate.PROMPT.format(
        classes="dog, guinea pig, horse", name="guinea pig", count=10, longest=6
    )
    assert " ".join(prompt.split()) in " ".join(page.replace(">", " ").split())
    for block in re.findall(r"```json\n(.*?)```", page, re.DOTALL):
        assert json.loads(block)
    options = set(re.findall(r"--[a-z-]+", generate._parser().format_help()))
    commands = [c for c in re.findall(r"```console\n(.*?)```", page, re.DOTALL) if "generate" in c]
    assert commands
    for text in commands:
        assert set(re.findall(r"--[a-z-]+", text)) <= options
