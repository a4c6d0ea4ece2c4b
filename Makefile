# Everything a developer types. Each step leaves a stamp in .venv, so a second run installs nothing and needs no network.

VENV   ?= .venv
PROMPT ?= Why is the sky blue?
BIN    := $(VENV)/bin

# The first Python that is new enough. Name another: make demo PYTHON=/opt/python3.13/bin/python3
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$python; break; }; done)

DEMO_EXTRAS := cli,local
TEST_EXTRAS := cli,local,otlp,prices

.DEFAULT_GOAL := help
.PHONY: help demo test check lint types coverage bench bench-quick model format clean

help:  ## what there is
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{ printf "%-17s %s\n", $$1, $$2 }'

demo: $(VENV)/.installed  ## install, fetch the toy model, stream an answer from it
	@$(BIN)/dragoman probe --provider local --prompt "$(PROMPT)"

test: $(VENV)/.developed model  ## run the tests
	$(BIN)/python -m pytest

check: lint types coverage  ## everything that must be green: lint, format, types, tests with coverage

lint: $(VENV)/.developed  ## ruff: lint and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.developed  ## pyright and mypy, strict
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/mypy

coverage: $(VENV)/.developed model  ## the tests, and how much of src they reach
	rm -f .coverage .coverage.*
	$(BIN)/coverage run -m pytest
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

bench: $(VENV)/.developed  ## measure everything, the peers too, and write docs/benchmarks.md
	$(BIN)/python bench/run.py --page

bench-quick: $(VENV)/.developed  ## the shape of our own costs, in under a minute: what CI runs
	$(BIN)/python bench/quick.py

format: $(VENV)/.developed  ## put the code into shape
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Without a network the tests that need the model are skipped, and say so.
model: $(VENV)/.developed
	@$(BIN)/dragoman local fetch >/dev/null || echo "no local model: its tests will be skipped" >&2

clean:  ## remove the environment and all that was built
	rm -rf $(VENV) build dist .coverage .coverage.* htmlcov .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/.made:
	@test -n "$(PYTHON)" || { echo "dragoman needs Python 3.11 or newer; say where it is: make demo PYTHON=…" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	@touch $@

$(VENV)/.installed: $(VENV)/.made pyproject.toml
	$(BIN)/python -m pip install --quiet --editable ".[$(DEMO_EXTRAS)]"
	@touch $@

$(VENV)/.developed: $(VENV)/.made pyproject.toml
	$(BIN)/python -m pip install --quiet --editable ".[$(TEST_EXTRAS)]" --group dev
	@touch $@ $(VENV)/.installed
