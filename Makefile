# Everything a developer runs. Every target does its own set-up; a second run is quick.
#   make demo       a node, an engine, a gateway, an answer
#   make test       every check, as CI runs it
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.ONESHELL:
MAKEFLAGS += --no-print-directory
# With byte code, as for users. Without byte code, each process on the controller compiles its imports again.
unexport PYTHONDONTWRITEBYTECODE

NODES ?= 1
IMAGE ?= inference-engine:cpu
SCENARIO ?=
MINUTES ?= 60
export INFERENCE_CACHE ?= $(HOME)/.cache/baremetal-inference
# Recordings of real machines, for the tests of parsers. Without recordings, these tests read only the repository's own samples.
export INFERENCE_SAMPLES ?= $(abspath $(wildcard ../shared/fixtures))

VENV := .cache/venv
IN_VENV := source $(VENV)/bin/activate; export PYTHONPATH=.cache;

.PHONY: help setup demo demo-update demo-down docs lint sanity unit coverage units molecule test test-full soak bench catalogue

help: ## This list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## */  make \1\t/' | expand -t 20

setup: ## Tools, Docker engine and test images (idempotent)
	@tests/tools/setup all

demo: ## A bare Debian node becomes an inference node, and answers through a gateway (NODES=2 for two)
	@tests/tools/setup demo
	$(IN_VENV) tests/tools/demo up --nodes $(NODES)

demo-update: ## Swap the demo's model while clients send requests
	@$(IN_VENV) tests/tools/demo update

demo-down: ## Remove the nodes of make demo
	@tests/tools/demo down

docs: $(VENV)/.ready ## The pages of reference, and the tables of docs/hardware.md
	@$(IN_VENV) tests/tools/reference.py --write
	tests/tools/hardware_tables.py --write

lint: $(VENV)/.ready ## ansible-lint, yamllint, ruff, mypy, documentation and changelog
	@$(IN_VENV) tests/tools/lint

sanity: $(VENV)/.ready ## ansible-test sanity on a copy of the collection
	@$(IN_VENV) tests/tools/sanity

unit: ## Unit tests on this machine's Python
	@tests/tools/setup unit
	$(IN_VENV) tests/tools/unit

coverage: ## Unit tests, and how much of each source its own test file runs (twice as long)
	@tests/tools/setup unit
	$(IN_VENV) tests/tools/unit --coverage

units: setup ## Unit tests and syntax checks on every supported ansible-core
	@$(IN_VENV) tests/tools/controllers

molecule: setup ## Molecule scenarios on real nodes (SCENARIO=default for one)
	@$(IN_VENV) tests/tools/scenarios $(SCENARIO)

test: ## Every check that CI runs
	@tests/tools/setup checks
	# The step `images` builds the images of nodes, while the first checks run.
	$(IN_VENV) tests/tools/test

test-full: setup ## Everything, SCENARIO=… for one scenario
	@$(IN_VENV) tests/tools/test --full $(SCENARIO)

soak: setup ## An engine under saturating load for an hour is not restarted once (MINUTES=60)
	@$(IN_VENV) INFERENCE_SOAK_MINUTES=$(MINUTES) PYTEST_ADDOPTS="-k saturation" tests/tools/scenarios recovery

bench: setup ## Speed against a plain shell script, then what each fault costs (FLEET=100: a simulated fleet alone)
	@$(IN_VENV) tests/tools/bench $(if $(FLEET),--fleet $(FLEET))
	# The scenario prints its table itself, at its end.
	$(if $(FLEET),,tests/tools/scenarios recovery)

catalogue: $(VENV)/.ready ## Write the engine's flags and classes of models, from its image, into the collection (IMAGE=… for another)
	@$(IN_VENV) tests/tools/catalogue $(IMAGE)
	@$(IN_VENV) tests/tools/class_defaults $(IMAGE)
	@$(IN_VENV) tests/tools/architectures $(IMAGE)

$(VENV)/.ready: requirements.txt
	@tests/tools/setup tools
