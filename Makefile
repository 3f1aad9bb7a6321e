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

# Where this is set, each of the thousands of programs that tests start would compile everything that it imports anew.
unexport PYTHONDONTWRITEBYTECODE

help:            ## list the targets
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

# Installs what is given; says of each package that it is fetched, as the first time takes a while. pip's complaints come
# unfiltered. uv is several times as fast, and is taken where it is there.
UV := $(shell command -v uv)
ifdef UV
new_venv = $(UV) venv --quiet --seed --python $(PYTHON) $(VENV)
install = $(UV) pip install --python $(PY) -e $(1)
else
new_venv = $(PYTHON) -m venv $(VENV) 2>/dev/null || { \
  echo "python3 has no venv module; installing it (apt-get install python3-venv)"; \
  apt-get update -qq && apt-get install -y -qq python3-venv && $(PYTHON) -m venv $(VENV); }
install = { $(PY) -m pip install --disable-pip-version-check --no-compile -e $(1) && touch $(VENV)/.installed; } \
  | sed -un 's/^ *Collecting \([A-Za-z0-9._-]*\).*/  fetches \1/p; s/^Installing collected.*/  installs them/p' \
  && rm $(VENV)/.installed
endif

PROJECTS := pyproject.toml packages/workspace.py packages/client/pyproject.toml packages/fleet/pyproject.toml

# What runs, without the tools of those who work on it.
$(VENV)/.programs: $(PROJECTS)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Muster needs Python 3.11 or newer"; exit 1; }
	@[ -x $(PY) ] || { $(new_venv); }
	@echo "installing Muster into $(VENV) ..."
	@$(call install,.)
	@touch $@

# A name of its own, as a comma would end what is given to `install`.
EVERYTHING := '.[ssh,bundle,dev]'

$(VENV)/.ready: $(VENV)/.programs
	@echo "installing what tests and checks need into $(VENV) ..."
	@$(call install,$(EVERYTHING))
	@touch $@

setup: $(VENV)/.ready  ## install Muster and its tools into .venv

demo: $(VENV)/.programs ## run a distributed job on three local nodes; no Docker needed
	$(VENV)/bin/muster demo

wheels: setup    ## build the distributions muster-client and muster-fleet into dist/
	$(PY) -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist packages/client packages/fleet

test: setup      ## all tests; those that need root and Docker where these are there (docs/testing.md)
	$(PY) -m tests.lanes

e2e: setup       ## only the tests on the fleet testbed; needs root and Docker
	MUSTER_REQUIRE_E2E=1 $(PYTEST) tests/e2e

chaos: setup     ## jobs on the fleet testbed while things break, for MINUTES; SEED decides which (docs/testing.md)
	$(PY) -m tests.e2e.chaos --minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) $(if $(KEEP),--keep $(KEEP))

frameworks: setup ## jobs of the real PyTorch, JAX, TensorFlow, Horovod and others; the first run takes half an hour (docs/testing.md)
	$(PYTEST) tests/frameworks tests/large_frameworks

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

sync: setup      ## make the synchronous client from the asynchronous one
	$(PY) tests/house/generate_sync_client.py

web: setup       ## build the pages of the console from web/; needs Node.js 18 or newer and npm
	$(PY) tests/house/generate_pages.py

docs: setup      ## print the documents that follow from the code
	$(PY) tests/house/generate_docs.py
	$(PY) -m muster.jobfile.reference --write docs/job-file.md

story: setup     ## run a job and paste what is told of it into docs/events.md
	$(PY) -m tests.integration.story_page

.PHONY: help setup demo wheels test e2e chaos frameworks fuzz simulate soak bench check protos sync web docs story
