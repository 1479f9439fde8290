# Two commands do all the set-up: `make demo` and `make test`. Both create .venv the first time and reuse it after that.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
# Passed to pip, for example to take a CPU build of torch from another index: make demo PIP_ARGS="--extra-index-url ..."
PIP_ARGS ?=
BIN := .venv/bin
INSTALLED := .venv/installed

.PHONY: demo test large check format install golden gallery bench clean

demo: $(INSTALLED)  ## run the quickstart experiment and leave a report
	$(BIN)/stagecraft run e01 --scale demo

test: $(INSTALLED)  ## the whole test suite
	OMP_NUM_THREADS=1 $(BIN)/pytest -n auto

large: $(INSTALLED)  ## a hundred thousand problems per split of every testbed: no shared key
	OMP_NUM_THREADS=1 $(BIN)/pytest -n auto -m large

check: $(INSTALLED)  ## format, lint, types, direction of imports
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

install: $(INSTALLED)  ## create .venv with everything

format: $(INSTALLED)  ## write what `make check` wants
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

golden: $(INSTALLED)  ## write tests/golden after a revision was raised
	$(BIN)/python tests/write_golden.py

gallery: $(INSTALLED)  ## write docs/gallery.md from the code
	$(BIN)/python -m testbeds.gallery docs/gallery.md

bench: $(INSTALLED)  ## measure against peers, side by side
	$(BIN)/python -m benchmarks.policy
	$(BIN)/python -m benchmarks.workers
	$(BIN)/python -m benchmarks.rl_step
	$(BIN)/python -m benchmarks.generation
	$(BIN)/python -m benchmarks.chess_reading
	$(BIN)/python -m benchmarks.chess_verification
	$(BIN)/python -m benchmarks.chess_endgames

# torch first, at the one tested version: an open range could pull a build of several gigabytes.
$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "stagecraft needs Python 3.11 or newer; name one with make PYTHON=/path/to/python3.11" >&2; exit 2; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet $(PIP_ARGS) --constraint constraints.txt torch
	$(BIN)/pip install --quiet $(PIP_ARGS) --constraint constraints.txt --editable ".[dev]"
	touch $@

clean:  ## remove the environment and all caches; the store with its results stays
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -not -path "./store/*" -prune -exec rm -rf {} +
