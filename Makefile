# Two commands do everything from a fresh clone: `make demo` and `make test`.
# Both make the virtual environment themselves; needed beforehand: Python 3.11, 3.12 or 3.13 with pip, and make;
# `make test PYTHON=python3.12 VENV=.venv312` takes another one.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo test test-slow test-slurm test-machine test-lowest lint boards results bench docs clean

demo: $(VENV)/.installed  ## run the main job on the embedded world
	$(BIN)/fsdil-bench run --method cvlc --scenario shelf-1shot

test: $(VENV)/.installed-dev lint  ## style, types and all tests but the slow ones
	$(BIN)/python -m pytest -n auto --dist worksteal

test-slow: $(VENV)/.installed-dev  ## the tests that take minutes
	$(BIN)/python -m pytest -m slow

test-slurm: $(VENV)/.installed-dev  ## the Slurm launcher on a real Slurm of one node (Debian: slurm-wlm, munge)
	$(BIN)/python -m pytest -m slurm tests/sweeps/test_real_slurm.py

test-machine: $(VENV)/.installed-dev  ## what depends on the system: locks, processes, resuming
	$(BIN)/python -m pytest $(addprefix tests/,system/test_locks.py runs/test_sealed.py runs/test_resume.py cache)

test-lowest:  ## the core tests with the lowest versions that pyproject.toml allows, in .venv-lowest
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/python -m pip install --quiet uv
	.venv-lowest/bin/uv pip install --quiet --python .venv-lowest/bin/python --resolution lowest-direct --editable '.[test]'
	.venv-lowest/bin/python -m pytest $(addprefix tests/,runs/test_loop.py runs/test_resume.py runs/test_sealed.py system/test_locks.py cache/test_array_store.py analysis/test_statistics.py report/test_leaderboard.py cli/test_cli.py)

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy fsdil_bench methods scenarios

boards: BOARDS := leaderboards fsdil_bench/analysis/published.json
boards: $(VENV)/.installed  ## the leaderboards again from their records; fails where they differ
	$(BIN)/fsdil-bench leaderboard leaderboards/records --out leaderboards --thumbnails
	$(BIN)/python -m fsdil_bench.report.leaderboards.publish leaderboards/leaderboards.json
	@git --no-pager diff --stat -- $(BOARDS)
	@test -z "$$(git status --porcelain -- $(BOARDS))" || \
		{ echo "the boards are not what their records say: commit what is there now"; exit 1; }

results: $(VENV)/.installed-dev  ## docs/results.md and its pictures, from the leaderboards
	$(BIN)/python docs/make_results.py

bench: $(VENV)/.installed  ## speed, as ratios measured in one run
	$(BIN)/python -m benchmarks

docs: $(VENV)/.installed-docs  ## the documentation site, in site/
	$(BIN)/python -m mkdocs build --strict

clean:
	rm -rf $(VENV) .venv-lowest build dist site *.egg-info

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
