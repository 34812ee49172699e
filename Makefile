# Every target explains itself in `make help`; `make setup` is part of each, and costs nothing when nothing changed.
PYTHON ?= python3
SETUP_FLAGS ?=
SEEDS ?= 200
BIN := .venv/bin
PACKAGES := $(wildcard reminders scheduler scanner expander dispatcher gateway)
CHECKED := $(PACKAGES) $(wildcard tests tools protos bench)

.DEFAULT_GOAL := help
.PHONY: help setup run test test-all chaos simulate oracle lint verify generate bench lock migrate clean

help: ## this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## .venv from the lock file: quick when nothing changed
	@$(PYTHON) tools/setup_env.py $(SETUP_FLAGS)

run: setup ## start everything here, create a few reminders and show them ring; Ctrl-C stops it
	@$(BIN)/tocsin demo || [ $$? -eq 130 ]  # Ctrl-C is how it ends

test: setup ## unit, contract, integration and acceptance tests and some chaos, against real servers
	@$(BIN)/pytest -n 2 --dist loadgroup tests/unit tests/contract tests/integration tests/acceptance tests/simulation tests/chaos

test-all: setup ## every suite, the long ones as well
	@$(BIN)/pytest -n 2 --dist loadgroup tests
	@$(BIN)/python -m tests.simulation $(SEEDS)
	@$(BIN)/python -m tests.simulation --planted
	@$(BIN)/python -m tests.chaos

simulate: setup ## SEEDS=200 runs of the real services in virtual time, with every kind of fault
	@$(BIN)/python -m tests.simulation $(SEEDS)

chaos: setup ## every fault on rings of real servers, and a table of what came of it (docs/chaos.md)
	@$(BIN)/python -m tests.chaos

oracle: setup ## local times against a scan of every zone's clock, every transition from 1990 to 2050; minutes
	@$(BIN)/python -m tests.oracle

lint: setup ## ruff, mypy and the import rules
	$(BIN)/ruff check $(CHECKED)
	$(BIN)/ruff format --check $(CHECKED)
	$(BIN)/mypy $(CHECKED)
	$(BIN)/lint-imports

generate: setup ## the Python stubs, from protos/
	@$(BIN)/python protos/generate.py

verify: setup ## fail if the committed stubs differ from what protos/ generates
	@$(BIN)/python protos/generate.py --verify

bench: setup ## the benchmarks, beside their ceilings (see docs/performance.md)
	@$(BIN)/python -m bench

migrate: setup ## bring the schema of the configured Cassandra up to date
	@$(BIN)/tocsin migrate

lock: setup ## resolve requirements.lock anew from pyproject.toml
	$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --no-emit-package tocsin-client --custom-compile-command "make lock" \
	  --group dev pyproject.toml --output-file requirements.lock

clean: ## remove .venv, caches, and the data of local runs
	rm -rf .venv .local .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
