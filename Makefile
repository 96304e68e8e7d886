# `make help` lists the targets. Everything runs in .venv, which the first target that needs it sets up.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CAPTURES ?= samples
JOBS ?= 2
# Tests wait for brokers, Spark and browsers too.
WORKERS ?= 3
# Seconds that `make fuzz` gives each harness.
FUZZ_SECONDS ?= 120
HARNESSES ?= $(patsubst tests/fuzz/%.py,%,$(wildcard tests/fuzz/fuzz_*.py))

export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Tests start the program hundreds of times: its modules are compiled once, wherever this was set.
export PYTHONDONTWRITEBYTECODE :=

# Tests that break first: what is on the wire, TCP, rules, rows of captures.
FIRST := tests/spec tests/tcp tests/session/rules tests/golden/test_rows.py

# Modules that Cython compiles, and what they are compiled against.
COMPILED := $(shell grep -rl --include='*.py' '^. cython:' amqpsniff)
DECLARED := $(shell find amqpsniff -name '*.pxd')
# What Cython would else put into each of them; pyproject.toml names it too.
SHARED := amqpsniff._cython

SET_UP := $(VENV)/.compiled $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help demo check test suite test-all lint format compile docs man fuzz bench wheel clean

help: ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  make \1\t\2/' | expand -t 18

demo: $(SET_UP) ## set up, then run the program on the bundled captures
	@bash .ci/system-packages tshark default-jre-headless > $(VENV)/skipped.txt
	@PATH="$(CURDIR)/$(BIN):$$PATH" bash samples/demo.sh
	@if [ -s $(VENV)/skipped.txt ]; then echo; cat $(VENV)/skipped.txt; fi

check: lint ## linters, types, and the tests that break first, for the loop of work
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal $(FIRST)

test: lint suite ## set up, then linters, types, import contracts and the test-suite

suite: $(SET_UP) ## the test-suite alone
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal

test-all: lint ## all random cases, then each Python of this machine, then lowest versions
	AMQPSNIFF_THOROUGH=1 $(MAKE) suite
	bash .ci/every-python
	bash .ci/lowest $(BIN)/python

lint: $(SET_UP) ## linters, types and import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@$(tree)
	cd build/tree && "$(CURDIR)/$(BIN)/mypy" --config-file ../../pyproject.toml -p amqpsniff
	cd build/tree && "$(CURDIR)/$(BIN)/lint-imports" --no-logo --config ../../pyproject.toml

format: $(SET_UP) ## put the sources into house format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

compile: $(SET_UP) ## compile the hot modules again where they changed

docs: $(SET_UP) ## build the documentation as a site, build/site/index.html
	$(BIN)/python -m sphinx -q -W --keep-going -E -c docs -d build/doctrees . build/site
	@echo build/site/index.html

man: $(SET_UP) ## write the manual page, build/amqpsniff.1
	@mkdir -p build
	$(BIN)/amqpsniff --show-man > build/amqpsniff.1

fuzz: $(SET_UP) ## run every fuzz harness for FUZZ_SECONDS
	@$(plain)
	@$(BIN)/python -m tests.fuzz.seeds build/seeds
	@set -e; for name in $(HARNESSES); do \
		mkdir -p build/fuzz/$$name build/seeds/$$name; \
		echo "== $$name"; \
		(cd build/plain && PYTHONPATH=. "$(CURDIR)/$(BIN)/python" -m tests.fuzz.$$name \
			-max_total_time=$(FUZZ_SECONDS) -artifact_prefix=../fuzz/ ../fuzz/$$name ../seeds/$$name); \
		echo "== $$name, what was found, compiled"; \
		$(BIN)/python -m tests.fuzz.$$name -runs=0 -artifact_prefix=build/fuzz/ build/fuzz/$$name build/seeds/$$name; \
	done

bench: $(SET_UP) ## measure against the bars
	@for script in benchmarks/bench_*.py; do \
		[ -e "$$script" ] || { echo "no benchmark"; exit 0; }; \
		echo "== $$script"; $(BIN)/python "$$script" || exit 1; \
	done

wheel: ## build the sdist and a wheel for each Python of this machine, check and try them
	bash .ci/wheels

clean: ## remove everything that was built, .venv included
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find amqpsniff cli spark_jobs tests \( -name '*.so' -o -name '*.c' -o -name __pycache__ \) -prune -exec rm -rf {} +

# The package without its compiled modules: coverage of plain Python is what guides the fuzzers.
define plain
rm -rf build/plain && mkdir -p build/plain && \
tar cf - --exclude='*.so' --exclude='*.c' --exclude=__pycache__ amqpsniff | tar xf - -C build/plain && \
ln -s "$(CURDIR)/tests" "$(CURDIR)/samples" build/plain
endef

# The installed layout, for tools that read files and not the import system: to them a cimport is
# an import.
define tree
rm -rf build/tree && mkdir -p build/tree && \
tar cf - --exclude='*.so' --exclude='*.c' --exclude=__pycache__ amqpsniff | tar xf - -C build/tree && \
find build/tree -name '*.py' -exec sed -i.orig 's/^from cython\.cimports\.amqpsniff/from amqpsniff/' {} + && \
ln -s "$(CURDIR)/cli" "$(CURDIR)/spark_jobs" build/tree/amqpsniff
endef

# The command of that name does not take the module that is shared.
cythonize = import sys; from Cython.Build import cythonize; \
hushed = {"show_performance_hints": False, "warn.unreachable": False}; \
cythonize(sys.argv[3:], nthreads=int(sys.argv[1]), shared_utility_qualified_name=sys.argv[2], quiet=True, \
compiler_directives=hushed)

# Cython's build_ext takes that option and does not list it, which setuptools warns of.
build := import logging; logging.getLogger("setuptools.config._apply_pyprojecttoml").addFilter( \
lambda record: "build_ext.shared_utility_qualified_name is not defined" not in record.getMessage()); \
from setuptools import setup; setup()

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed: make PYTHON=/path/to/python3"; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || bash .ci/system-packages python3-venv
	$(PYTHON) -m venv $(VENV)

$(VENV)/.tools: | $(VENV)/bin/python
	$(BIN)/python -m pip install -qq --upgrade pip 'setuptools>=77' 'Cython>=3.3' wheel
	@touch $@

# Both steps take several modules at a time, and only those that changed; without a C compiler
# the second leaves them as they are.
$(VENV)/.compiled: $(COMPILED) $(DECLARED) | $(VENV)/.tools
	@$(BIN)/python -c '$(cythonize)' $(JOBS) $(SHARED) $(COMPILED)
	@echo "compiling the hot modules, for two or three minutes the first time"
	@$(BIN)/python -W ignore -c '$(build)' -q build_ext --inplace -j $(JOBS)
	@touch $@

# The modules are compiled already: a compiler that fails keeps the first step from doing it again.
$(VENV)/.installed: pyproject.toml | $(VENV)/.compiled
	CC=false $(BIN)/python -m pip install -qq --no-build-isolation --no-deps -e .
	$(BIN)/python -m pip install -qq 'amqpsniff[dev]'
	@$(BIN)/python -m compileall -q amqpsniff cli spark_jobs
	@touch $@
