# make help lists the targets. They build everything in .venv and .cache; make clean removes it.
# make PYTHON=... selects the interpreter, make LISTEN=... DATA=... SERVE=... the address, the data directory and further options of the
# broker.

# An interpreter that was built with profile-guided optimisation needs 12 % less CPU, so it comes before a newer one.
PYTHON ?= $(shell for option in --enable-optimizations ''; do for p in python3.13 python3.12 python3.11 python3; do \
    $$p -c "import sys, sysconfig as c; sys.exit(sys.version_info < (3, 11) or '$$option' not in (c.get_config_var('CONFIG_ARGS') or ''))" \
    2>/dev/null && echo $$p && exit; done; done)
LISTEN ?= 127.0.0.1:9092
DATA ?= ./data
SERVE ?=
TESTS ?=
SECONDS ?= 30
SEED ?=
RUNS ?=
MINUTES ?=
KEEP_GOING ?=
LENGTH ?=
FAULTS ?=
KAFKA ?=
COMPILED ?=
REPEATS ?= 5
KILLS ?= 20
PART ?=
COMPOSE ?= docker compose

BIN := .venv/bin
PACKAGES := broker cli client coordinator pipeline protocol runtime share storage testing
NATIVE := $(wildcard protocol/*/*.pyx protocol/*/*.pxd pipeline/*/*.pyx pipeline/*/*.pxd)
CONSOLE := broker/http/console_files/index.html
NEED_NPM := command -v npm >/dev/null || \
    { echo 'The console needs Node 18 or later, and npm: install them (nodejs and npm in Debian)' >&2; exit 1; }
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# Without bytecode each process of pytest rewrites the assertions of all tests again, and each program compiles its modules.
export PYTHONDONTWRITEBYTECODE :=

# COMPILED=1 runs the compiled modules instead of their sources: the folder is before the checkout in the path of imports.
COMPILED_FOLDER := .cache/compiled
IF_COMPILED = $(if $(COMPILED),$(COMPILED_FOLDER)/built)
IN_FORM = $(if $(COMPILED),PYTHONPATH=$(CURDIR)/$(COMPILED_FOLDER))

.PHONY: help setup run compiled test test-spark clients check pyright lint docs generate explore sim properties diff fuzz rare matrix wheel dist console console-tests images compose bench bench-spark clean

help:
	@echo 'make setup   create .venv with the dependencies of the broker'
	@echo 'make run     serve on $(LISTEN) with the data in $(DATA); LISTEN=... and DATA=... choose others;'
	@echo "             SERVE='--set log.flush=always' adds options of barnabas serve"
	@echo 'make compiled   compile the modules on the way of a record, in some minutes; COMPILED=1 with run, test or clients uses them'
	@echo 'make test    run the fast tests in two processes more than there are cores, or the tests TESTS=... in one process'
	@echo 'make test-spark   run the tests of the pipeline on Spark and beside Apache Kafka, with a process for each core'
	@echo 'make matrix  kill the pipeline and its brokers in every way, REPEATS=... times each; also on a cluster, and with Apache Kafka;'
	@echo '             PART=1/3 runs the first third of these tests'
	@echo 'make clients  run every operation of every client and tool; commands also run against Apache Kafka'
	@echo 'make rare    run what seldom finds a defect: KILLS=... kills of programs and brokers, and the recorded output of Kafka on Apache Kafka'
	@echo 'make images  build the container images without an engine, as root on Debian, and run them in chroots'
	@echo 'make compose  start docker/compose.yml, restart and kill its broker, and check that nothing is lost; COMPOSE=... selects an engine'
	@echo 'make console  build the console in the browser, with Node 18 or later; make setup does so if there is npm'
	@echo 'make console-tests  use every page and action of the console in Chromium'
	@echo 'make explore  search for failures with random choices for MINUTES=...: sim, properties, diff, fuzz, rare, matrix and dist in turn; SEED=... repeats it'
	@echo 'make sim     simulate the broker on a failing machine on all cores, with RUNS=... seeds or for MINUTES=...; the seeds are random,'
	@echo '             or count up from SEED=...; SEED=... alone is one run; KEEP_GOING=1 goes on after a failure'
	@echo 'make properties  test the properties and models with fresh examples, which follow from SEED=...'
	@echo 'make diff    compare every field of every response with Apache Kafka (KAFKA=4.3.1 selects that release), in RUNS=... histories of each kind from SEED=... on'
	@echo 'make check   check formatting, lint, types, layers, documentation and Dockerfiles: make lint, make pyright and make docs together'
	@echo 'make docs    build the documentation as a site in .cache/site, with strict links'
	@echo 'make generate  write the pages and tables of the documentation that are made from the code'
	@echo 'make wheel   build the files of a release in dist: the wheels and the source distribution'
	@echo 'make dist    the same, and build them a second time to compare, and install them in every way'
	@echo 'make fuzz    feed random bytes to the file readers on all cores, SECONDS=... for each target'
	@echo 'make bench   measure Barnabas beside other brokers'
	@echo 'make bench-spark   measure the pipeline beside alternatives on Spark'
	@echo 'make clean   remove all build results; the data stays'

# Bytecode is compiled here because starts would be slow if PYTHONDONTWRITEBYTECODE keeps Python from writing it.
# The broker runs without its console, so a build that fails, as without Node or internet, is only reported.
setup: .venv/installed
	@$(BIN)/python -m compileall -q $(PACKAGES) src/barnabas/*.py
	@$(MAKE) --no-print-directory --silent console 2>/dev/null || \
		echo 'The console in the browser is not built, and the broker runs without it: make console builds it, or says why not' >&2

run: setup $(IF_COMPILED)
	@echo 'Point any Kafka client at bootstrap.servers=$(LISTEN); Ctrl-C stops. A share consumer in ten lines: README.md'
	@echo 'Other addresses and settings: $(BIN)/barnabas serve --help'
	$(IN_FORM) $(BIN)/barnabas serve --listen $(LISTEN) --data-dir $(DATA) $(SERVE)

compiled: $(COMPILED_FOLDER)/built

# Each test belongs to one of the targets test, test-spark, matrix, clients, images and dist: tests/test_targets.py checks it.
IN_PROCESSES := --numprocesses auto --dist loadscope
# Two processes more than there are cores that make may use: a test that waits for a program of its own, or for time to pass, leaves its core
# to others.
IN_MORE_PROCESSES = --numprocesses $(shell $(BIN)/python -c 'import os; print(len(os.sched_getaffinity(0)) + 2)') --dist loadscope

# The folders whose tests run modules that are compiled.
COMPILED_TESTS := $(addprefix tests/,broker client conformance coordinator protocol runtime share storage)

test: setup .venv/installed-tests $(IF_COMPILED)
	$(IN_FORM) $(BIN)/python -m pytest $(if $(TESTS),$(TESTS),$(if $(COMPILED),$(COMPILED_TESTS)) -m 'not (spark or kafka or matrix or long or clients or rare or release or images)' $(IN_MORE_PROCESSES))

test-spark: setup .venv/installed-tests
	$(BIN)/python -m pytest tests/pipeline -m '(spark or kafka) and not (matrix or long)' $(IN_PROCESSES)

matrix: setup .venv/installed-tests
	$(BIN)/python -m pytest tests/pipeline -m 'matrix or long' --matrix-repeats $(REPEATS) $(if $(PART),--part $(PART)) $(IN_PROCESSES)

clients: setup .venv/installed-tests $(IF_COMPILED)
	$(IN_FORM) $(BIN)/python -m pytest tests/clients -m 'clients and not rare' --clients $(IN_MORE_PROCESSES)

rare: setup .venv/installed-tests
	$(BIN)/python -m pytest tests/clients -m 'rare' --clients --kills $(KILLS) $(if $(PART),--part $(PART)) $(IN_MORE_PROCESSES)

console: $(CONSOLE)

console-tests: setup .venv/installed-tests $(CONSOLE)
	$(BIN)/python -m pytest tests/clients/console --clients $(IN_PROCESSES)

images: setup .venv/installed-tests
	$(BIN)/python -m pytest tests/containers -m 'images' --images --timeout 3600

compose:
	COMPOSE='$(COMPOSE)' docker/check.sh

# A search with random choices, for as long as you like: .ci/run has none of it.
explore: setup .venv/installed-tests
	@$(BIN)/python -m tests.explore $(if $(MINUTES),--minutes $(MINUTES)) $(if $(SEED),--seed $(SEED))

properties: setup .venv/installed-tests
	$(BIN)/python -m pytest -m 'hypothesis or seeds' --hypothesis-profile explore --hypothesis-seed $(or $(SEED),$(shell date +%s)) $(IN_PROCESSES)

sim: setup .venv/installed-tests
	@$(BIN)/python -m tests.simulation.run $(if $(SEED),--seed $(SEED)) $(if $(RUNS),--runs $(RUNS)) $(if $(MINUTES),--minutes $(MINUTES)) \
		$(if $(KEEP_GOING),--keep-going) $(if $(LENGTH),--length $(LENGTH)) $(if $(FAULTS),--faults $(FAULTS))

diff: setup .venv/installed-tests
	@$(BIN)/python -m tests.differential $(if $(SEED),--seed $(SEED)) $(if $(RUNS),--runs $(RUNS)) $(if $(KAFKA),--kafka-version $(KAFKA))

# Pyright takes as long as all other checks together, so it runs beside them.
check: setup .venv/installed-tests $(if $(shell command -v npm),$(CONSOLE))
	@$(MAKE) --no-print-directory --jobs 2 --output-sync pyright docs lint

pyright:
	$(BIN)/pyright --threads 2

lint:
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports
	$(BIN)/mypy
	$(BIN)/python -m tests.flaky
	$(if $(shell command -v npm),npm --prefix console run --silent check && npm --prefix console test --silent)
	$(BIN)/hadolint docker/Dockerfile docker/*/Dockerfile

docs: setup .venv/installed-tests
	$(BIN)/python -m sphinx --builder html --fresh-env --fail-on-warning --keep-going --nitpicky --quiet docs .cache/site

generate: setup .venv/installed-tests
	$(BIN)/python -m tests.reference

wheel: setup .venv/installed-release
	$(BIN)/python -m release

dist: setup .venv/installed-tests wheel
	$(BIN)/python -m pytest tests/release -m 'release' --release $(if $(PART),--part $(PART))

# Atheris has no build for some Python versions; without it Hypothesis generates the bytes, and the program says so.
fuzz: setup .venv/installed-tests
	@$(PIP_INSTALL) --only-binary :all: atheris || echo 'Atheris cannot be installed for this Python' >&2
	$(BIN)/python -m tests.fuzz --seconds $(SECONDS)

bench: setup .venv/installed-tests
	$(BIN)/python -m benchmarks

bench-spark: setup .venv/installed-tests
	$(BIN)/python -m benchmarks.spark

clean:
	rm -rf .venv .cache build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	rm -rf broker/http/console_files console/node_modules
	rm -f protocol/*/_native.c protocol/*/_native.*.so pipeline/*/_native.c pipeline/*/_native.*.so
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/bin/python:
	@test -n '$(PYTHON)' || { echo 'Python 3.11 or later is needed: install it, or run make PYTHON=/path/to/python' >&2; exit 1; }
	$(PYTHON) -m venv .venv

console/node_modules/installed: console/package.json console/package-lock.json
	@$(NEED_NPM)
	@npm --prefix console ci --loglevel=error >/dev/null
	@touch $@

$(CONSOLE): console/node_modules/installed console/build.mjs console/tsconfig.json $(shell find console/src -type f)
	@$(NEED_NPM)
	@npm --prefix console run --silent build

.venv/installed: pyproject.toml $(NATIVE) | .venv/bin/python
	@echo 'Installing into .venv: this takes a minute or two.'
	@$(PIP_INSTALL) --editable .
	@touch $@

# The folder is a copy of the whole package. A folder of sources is newer when a file in it has been added or removed.
$(COMPILED_FOLDER)/built: release/compiled.py .venv/installed-release $(wildcard src/barnabas/*.py) \
    $(shell find $(PACKAGES) -name __pycache__ -prune -o \( -name '*.py' -o -name '*.so' -o -type d \) -print)
	@rm -rf $(COMPILED_FOLDER)
	@mkdir -p $(COMPILED_FOLDER)
	@cp -rL src/barnabas $(COMPILED_FOLDER)
	@echo 'Compiling: this takes some minutes.'
	@$(BIN)/python -m release.compiled $(COMPILED_FOLDER)
	@touch $@

# Most modules of the tools are never imported, so bytecode is compiled when one is.
.venv/installed-tests: pyproject.toml .venv/installed
	@echo 'Installing the tools of the tests into .venv: this takes some minutes.'
	@$(PIP_INSTALL) --no-compile --editable '.[http,security,otel,spark,schemas,delta,iceberg,test,check,docs,compiled,release]'
	@touch $@ .venv/installed-release

.venv/installed-release: pyproject.toml .venv/installed
	@$(PIP_INSTALL) --editable '.[compiled,release]'
	@touch $@
