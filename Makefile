# Each goal sets up .venv by itself; nothing but Python 3.11+ is needed.
#   make demo | test | check | proof | format | bench | chaos | planted | audit | docs | clean
#   make test PYTHON=python3.13 TENURE_TEST_DSN=postgresql://...   another Python, your own PostgreSQL

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Most tests wait for processes and timers: twice as many as there are cores.
JOBS ?= $(shell expr 2 \* $$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2))

# How much of each kind `make proof` runs: seconds of the campaign, combinations of sessions,
# steps of the model, lists of fuzzed values, requests to the web server, planted bugs.
CAMPAIGN_SECONDS ?= 120
INTERLEAVINGS ?= 20
PROPERTY_STEPS ?= 15000
FUZZ_EXAMPLES ?= 30
API_REQUESTS ?= 2000
PLANTED ?= 10
# Of samples, the same in every run. Others: make proof SEED=1 INTERLEAVINGS_SEED=1
SEED ?= 58080103
INTERLEAVINGS_SEED ?= 193020394

# In CI: a command that runs what failed once more, and no second run of tests that have just passed.
TWICE ?=
PLANTED_OPTIONS ?=
PYTEST := $(BIN)/pytest -n $(JOBS) --dist worksteal

# Tests and campaigns start hundreds of interpreters, which would each compile all modules again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo test check proof format bench chaos planted audit docs clean

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
	$(TWICE) $(PYTEST) -m "not slow" $(TESTS)

check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/basedpyright --level error
	$(BIN)/lint-imports --no-logo

# What takes too long for `make test`: slow tests, more orders of statements, more steps of the model, a campaign, a failover, and a
# sample of the planted bugs (all of them: `make planted`).
proof: setup
	$(TWICE) $(PYTEST) -m slow
	TENURE_INTERLEAVINGS=$(INTERLEAVINGS) TENURE_INTERLEAVINGS_SEED=$(INTERLEAVINGS_SEED) $(PYTEST) tests/interleavings/test_interleavings.py
	TENURE_PROPERTY_STEPS=$(PROPERTY_STEPS) $(PYTEST) --timeout=0 tests/properties
	TENURE_FUZZ_EXAMPLES=$(FUZZ_EXAMPLES) $(PYTEST) tests/fuzz
	$(BIN)/python -m tests.web.fuzz_api --requests $(API_REQUESTS)
	$(BIN)/tenure chaos run --seconds $(CAMPAIGN_SECONDS)
	$(BIN)/tenure chaos failover
	$(BIN)/python -m tests.planted --jobs $(JOBS) --sample $(PLANTED) --seed $(SEED) $(PLANTED_OPTIONS)

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: setup
	$(BIN)/python -m benchmarks $(ARGS)

# A million jobs and three thousand faults on real processes and a real server, then failovers and the drills: about an hour.
chaos: setup
	$(BIN)/tenure chaos run --jobs 1000000 --faults 3000 $(ARGS)
	$(BIN)/tenure chaos failover --times 5
	$(BIN)/tenure chaos drills

# Small bugs in a copy of the code, one at a time: each must be seen by the tests.
planted: setup
	$(BIN)/python -m tests.planted $(ARGS)

# Looks for known vulnerabilities in what the image installs. Needs the network.
audit:
	$(PYTHON) -m venv .audit-venv && .audit-venv/bin/pip install --quiet pip-audit
	.audit-venv/bin/pip-audit --strict --require-hashes --disable-pip -r deploy/requirements.txt

# The documentation site, in site/. `make test` runs every code block in it (tests/docs). All pages, because each contains the menu.
docs: setup
	$(BIN)/sphinx-build --write-all --fail-on-warning --keep-going --quiet --jobs auto -b html docs site
	@echo "open site/index.html"

clean:
	rm -rf $(VENV) .bench-venvs .fuzz-venv .audit-venv .tenure site .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
