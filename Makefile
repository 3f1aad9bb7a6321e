# Every target sets up what it needs first; `make help` lists them.
VENV ?= .venv
PYTHON ?= python3
BENCH_VENV ?= .venv-bench
BENCH_PYTHON ?= $(firstword $(wildcard /usr/bin/python3) python3)
PY   := $(VENV)/bin/python
PYTEST := $(PY) -m pytest -p tests.tiers
SEEDS ?= 200
SEED_BASE ?= 1
MINUTES ?= 10
JOBS ?= 1
HOURS ?= 1

.DEFAULT_GOAL := help

help:            ## list the targets
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

$(VENV)/.ready: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Muster needs Python 3.11 or newer"; exit 1; }
	@$(PYTHON) -m venv $(VENV) 2>/dev/null || { \
	  echo "python3 has no venv module; installing it (apt-get install python3-venv)"; \
	  apt-get update -qq && apt-get install -y -qq python3-venv && $(PYTHON) -m venv $(VENV); }
	@echo "installing Muster and its tools into $(VENV) ..."
	@$(PY) -m pip install --quiet --disable-pip-version-check -e '.[coordinator,agent,ssh,bundle,dev]'
	@touch $@

setup: $(VENV)/.ready  ## install Muster and its tools into .venv

demo: setup      ## run a distributed job on three local nodes; no Docker needed
	$(VENV)/bin/muster demo examples/ring/job.yaml

test: setup      ## all tests; those that need root and Docker where these are there (docs/testing.md)
	$(PYTEST)

e2e: setup       ## only the tests on the fleet testbed; needs root and Docker
	MUSTER_REQUIRE_E2E=1 $(PYTEST) tests/e2e

chaos: setup     ## jobs on the fleet testbed while things break, for MINUTES; SEED decides which (docs/testing.md)
	$(PY) -m tests.e2e.chaos --minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) $(if $(KEEP),--keep $(KEEP))

fuzz: setup      ## what others send and write, at random for MINUTES; SEED decides what comes first (docs/testing.md)
	$(PY) -m tests.fuzz --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

simulate: setup  ## fleets in virtual time, SEEDS of them from SEED_BASE on, in JOBS processes (docs/simulation.md)
	$(PY) -m tests.simulation --seeds $(SEEDS) --seed $(SEED_BASE) --jobs $(JOBS)

soak: setup      ## strangers, viewers and large jobs against one coordinator with 200 nodes, for HOURS (docs/testing.md)
	$(PY) -m tests.soak --hours $(HOURS)

bench:           ## Muster beside Slurm, Ray, torchrun and Docker; QUICK=1, ONLY=gangs,core, WITHIN=40 minutes, WRITE_DOCS=1 (docs/performance.md)
	@$(MAKE) --no-print-directory setup VENV=$(BENCH_VENV) PYTHON=$(BENCH_PYTHON)
	$(BENCH_VENV)/bin/python -m bench $(if $(QUICK),--quick) $(if $(ONLY),--only $(ONLY)) $(if $(WITHIN),--within $(WITHIN)) $(if $(WRITE_DOCS),--write-docs)

check: setup     ## formatting, lint, types, layers
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports

protos: setup    ## generate the stubs from protos/
	$(PY) tests/house/generate_stubs.py

docs: setup      ## print the documents that follow from the code
	$(PY) tests/house/generate_docs.py
	$(PY) -m muster.spec.reference --write docs/job-file.md

.PHONY: help setup demo test e2e chaos fuzz simulate soak bench check protos docs
