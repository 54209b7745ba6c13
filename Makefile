# Two commands do everything from a fresh clone: `make demo` and `make test`.
# Both make the virtual environment themselves; needed beforehand: Python 3.11 with pip, and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo test test-slow lint bench docs clean

demo: $(VENV)/.installed  ## run the main job on the embedded world
	$(BIN)/fsdil-bench run --method cvlc --scenario drawn-1shot

test: $(VENV)/.installed-dev lint  ## style, types and all tests but the slow ones
	$(BIN)/python -m pytest -n auto --dist worksteal

test-slow: $(VENV)/.installed-dev  ## the tests that take minutes
	$(BIN)/python -m pytest -m slow

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy fsdil_bench methods scenarios

bench: $(VENV)/.installed  ## speed, as ratios measured in one run
	$(BIN)/python -m benchmarks

docs: $(VENV)/.installed-docs  ## the documentation site, in site/
	$(BIN)/python -m mkdocs build --strict

clean:
	rm -rf $(VENV) build dist site *.egg-info

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.installed: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/.installed-docs: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	touch $@ $(VENV)/.installed

$(VENV)/.installed-dev: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@ $(VENV)/.installed $(VENV)/.installed-docs
