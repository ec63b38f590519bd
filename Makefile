# `make test` is the whole check: it makes .venv, installs, lints, checks types and imports, and runs the tests.
SHELL := /bin/sh
.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup fuzz dist audit test coverage fast lint types imports format docs notebooks demo bench bench-scale clean

PYTHON ?= $(shell for p in python3.11 python3 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
BENCH := .venv-bench
# Workers begin with whole stretches of tests, since those of a file share what is made once for it, and then steal from
# each other; a third one fills the time in which others wait.
WORKERS ?= 3
COMPILED := src/harmonium/native.c src/harmonium/native.h src/harmonium/updates.c
CODE := $(wildcard src tests examples benchmarks docs/tools setup.py)

# The public data sets, where they are kept beside the checkout; tests that need them skip otherwise.
ifneq ($(wildcard ../shared/data),)
HARMONIUM_DATA ?= $(abspath ../shared/data)
export HARMONIUM_DATA
endif

help: ## say what there is to make
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | awk -F '\t' '{ printf "  make %-9s %s\n", $$1, $$2 }'

setup: $(VENV)/.installed ## make .venv and install harmonium with all extras, once

$(VENV)/.installed: pyproject.toml setup.py constraints.txt $(COMPILED)
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed: make setup PYTHON=/path/to/python3.11" >&2; exit 1; }
	@echo "== setup"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -q -c constraints.txt -e ".[all,dev,docs]"
	@touch $@

test: lint types imports ## lint, types, imports, and the tests
	@echo "== tests"
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal $(ARGS)

coverage: setup ## the tests with branch coverage, which takes them half as long again
	@rm -f .coverage .coverage.*
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal --cov --cov-report=term $(ARGS)

fast: setup ## the tests alone, stopping at the first failure
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest -x -q -n $(WORKERS) --dist worksteal $(ARGS)

lint: setup ## ruff: rules and format
	@echo "== lint"
	@$(BIN)/ruff check -q $(CODE)
	@$(BIN)/ruff format -q --check $(CODE)

types: setup ## mypy on src
	@echo "== types"
	@$(BIN)/mypy --no-error-summary

imports: setup ## import-linter: who may import whom
	@echo "== imports"
	@$(BIN)/lint-imports --no-logo

format: setup ## ruff: fix and format in place
	@$(BIN)/ruff check -q --fix $(CODE)
	@$(BIN)/ruff format -q $(CODE)

docs: setup ## the site of the documentation, into site/; every link must hold
	@echo "== docs"
	@$(BIN)/python -m docs.tools.notebooks --check
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build -q
	@echo "site/index.html"

notebooks: setup ## the notebooks of the tutorials, made from their pages and run
	@PATH="$(abspath $(BIN)):$$PATH" OMP_NUM_THREADS=1 $(BIN)/python -m docs.tools.notebooks

demo: setup ## the demonstration of the command line
	@$(BIN)/harmonium demo

bench: $(BENCH)/.installed ## side by side with peers, in a virtual environment of its own
	@$(BENCH)/bin/python -m benchmarks $(ARGS)

bench-scale: setup ## several workers against one: the same numbers, speed, kills, memory
	@$(BIN)/python -m benchmarks.scale $(ARGS)

$(BENCH)/.installed: pyproject.toml setup.py constraints.txt $(COMPILED) benchmarks/requirements.txt
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed: make bench PYTHON=/path/to/python3.11" >&2; exit 1; }
	@test -x $(BENCH)/bin/python || $(PYTHON) -m venv $(BENCH)
	@$(BENCH)/bin/python -m pip install -q -c constraints.txt -e ".[all]" -r benchmarks/requirements.txt
	@touch $@

fuzz: setup ## hostile inputs for every reader and command: make fuzz ARGS="--mutations 5000 --seed 1"
	@OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.hostile $(ARGS)

dist: setup ## a wheel and an sdist in dist/, each tried in a new environment outside of the checkout
	@PYTHON=$(BIN)/python sh .ci/dist $(ARGS)

audit: setup ## compare what is installed with the list of versions known to be weak that is shipped
	@$(BIN)/python -m benchmarks.audit

clean: ## remove virtual environments, caches and builds
	@rm -rf $(VENV) $(BENCH) build dist site src/harmonium/_native* .coverage .coverage.* htmlcov
	@rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	@find src tests examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
