# Everything that one does with this project. `make` alone lists it.

PYTHON ?= python3.11
VENV := .venv
LOWEST := .venv-lowest
BIN := $(VENV)/bin
SEEDS ?= 0:2000
SUITE ?= base
FORMAT ?= delta

# Python compiles each module once, not again in each of the hundreds of processes that the tests start.
unexport PYTHONDONTWRITEBYTECODE

# Three workers, because those on Spark and on S3 often wait for another process.
PYTEST := $(BIN)/python -m pytest -n 3 --dist loadgroup

.DEFAULT_GOAL := help
.PHONY: help setup lock demo test test-long check format docs soak soak-bank storm hermitage hermitage-all compliance kill-stream conformance bench-base bench-rows bench-large lowest clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

setup: $(VENV)/.installed ## Make .venv with the locked dependencies and this package in it

$(VENV)/.installed: requirements.lock pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "LakeVilla needs Python 3.11: install it, or run make PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

lock: ## Resolve pyproject.toml anew into requirements.lock
	$(BIN)/uv pip compile --quiet --no-header --python-version 3.11 --universal --generate-hashes --no-emit-index-url --no-annotate \
	  --extra bench --extra dev --extra docs --extra spark --extra iceberg --extra shell --output-file requirements.lock pyproject.toml

demo: setup ## Run the main job on a local directory, and say what happens
	$(BIN)/lakevilla demo

test: setup ## Run the tests, but for those marked long
	$(PYTEST) -m "not long"

test-long: setup ## Run the tests marked long: more seeds, more formats, planted bugs; a part of them: make test-long PART=0/4
	$(PYTEST) -m long $(if $(PART),--part $(PART))

check: setup ## Lint, formatting and strict types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: setup ## Format the code, and fix what the linter can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: setup ## Build the documentation site into site/, and fail on broken links
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

soak: setup ## Run the simulator long: make soak SUITE=recovery FORMAT=mixed SEEDS=0:20000; or the whole crash matrix: SUITE=crash
ifeq ($(SUITE),crash)
	LAKEVILLA_CRASH=all $(BIN)/python -m pytest -n 2 tests/crash
else
	$(BIN)/python -m sim.run --suite $(SUITE) --format $(FORMAT) --seeds $(SEEDS) --processes 2
endif

soak-bank: setup ## Kill and pause the clients of a bank on SeaweedFS for five minutes
	$(BIN)/python -m bench.bank --seconds 300

storm: setup ## Storms of deadlocks over four tables, in the simulator and on SeaweedFS (many minutes)
	$(BIN)/python -m bench.storm

hermitage: setup ## Print the paper's table of anomalies: the plain format's clients, and LakeVilla
	$(BIN)/python -m tests.hermitage.table

hermitage-all: setup ## Play every order of every step of that table with R, R,CT and I (an hour)
	$(BIN)/python -m tests.hermitage.everything --processes 2

compliance: setup ## Run the compliance suite of PEP 249 from PyPI against lakevilla.dbapi
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --target $(VENV)/compliance dbapi-compliance==1.15.0
	PYTHONPATH=$(VENV)/compliance $(BIN)/python -m tests.support.dbapi_suite

kill-stream: setup ## Kill a Spark stream into two tables 20 times, and look for each row in both (15 minutes)
	$(BIN)/python -m bench.kills

conformance: setup ## Compare the engines on all statements, and on many generated ones: make conformance SEEDS=0:5000
	LAKEVILLA_CONFORMANCE_SEEDS=$(SEEDS) $(BIN)/python -m pytest tests/conformance/engines \
	  tests/spark/servers/test_connect.py::test_files_are_pruned_as_the_session_reads_the_condition_through_connect

bench-base: setup ## Compare statements with deltalake, Spark + Delta and Spark + Iceberg, in one run
	$(BIN)/python -m bench.base

bench-rows: setup ## Change few rows of 10 million and scan them, compared with deltalake, Spark + Delta and Spark + Iceberg
	$(BIN)/python -m bench.rows $(if $(ROWS),--rows $(ROWS))

bench-large: setup ## Append, update and scan 100 million rows on Spark, in a driver of 2 GB
	$(BIN)/python -m bench.large

lowest: setup ## Try the oldest libraries that pyproject.toml allows, in a virtual environment of their own
	$(BIN)/uv venv --quiet --clear --python $(PYTHON) $(LOWEST)
	$(BIN)/uv pip install --quiet --python $(LOWEST)/bin/python --resolution lowest-direct --editable '.[dev,bench,spark,iceberg,shell]'
	$(LOWEST)/bin/python -m pytest -n 2 $(addprefix tests/unit/,engines sql store files delta iceberg formats cli transaction)

clean: ## Remove what was built
	rm -rf $(VENV) $(LOWEST) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis site
