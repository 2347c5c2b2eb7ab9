# Each goal sets up .venv by itself; nothing but Python 3.11+ is needed.
#   make demo | test | check | bench | chaos | planted | docs
#   make test PYTHON=python3.13 TENURE_TEST_DSN=postgresql://...   another Python, your own PostgreSQL

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
JOBS ?= 2

.PHONY: help setup demo test check format bench chaos planted docs clean

help:
	@grep -E '^#  ' Makefile | cut -c4-

setup: $(VENV)/.ready

# uv when it is there, plain venv and pip when not.
$(VENV)/.ready: pyproject.toml
	@if command -v uv >/dev/null 2>&1; then \
		uv venv --quiet --allow-existing --python $(PYTHON) $(VENV) && uv pip install --quiet --python $(BIN)/python -e '.[dev]'; \
	else \
		$(PYTHON) -m venv $(VENV) && $(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'; \
	fi
	@touch $@

demo: setup
	$(BIN)/tenure demo

test: setup
	$(BIN)/pytest -n $(JOBS) $(TESTS)

check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/basedpyright --level error
	$(BIN)/lint-imports --no-logo

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: setup
	$(BIN)/python -m benchmarks $(ARGS)

# Ten minutes of faults on real processes and a real server, then the drills; ARGS for the first: --seconds 60 --seed 7
chaos: setup
	$(BIN)/tenure chaos run --faults 1500 $(ARGS)
	$(BIN)/tenure chaos drills

# Small bugs in a copy of the code, one at a time: each must be seen by the tests.
planted: setup
	$(BIN)/python -m tests.planted $(ARGS)

# Runs every code block of the README and the docs.
docs: setup
	$(BIN)/pytest tests/docs

clean:
	rm -rf $(VENV) .tenure .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
