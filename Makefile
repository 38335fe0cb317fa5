# make demo    the main job, end to end: broker, replay, Spark, table, picture    (ARGS="--limit 14" for a small one)
# make setup   virtual environment in .venv with everything the other targets need (2.1 GB; the demo alone 1.1 GB)
# make test    the tests            make compat   those that need other people's clients or brokers, and slow ones
#              (CI=true make compat, as in .ci/run: of Kafka's own tests that have passed the quickest third,
#              where all take 40 minutes, and none of the others at a second place or release)
# make peers   fetch and build the clients and brokers that make compat needs; it does so itself, when it comes to them
# make check   format, lint, types, import rules, and the tests
# make wheels  build the wheel and run the README's examples from it on every Python of 3.11 to 3.14 there is
# make first-hour  every line of README, tutorial and how-tos from a new wheel, typed into a terminal and run in a notebook
#              kernel, on every Python of 3.11 to 3.14 there is (ARGS="--python 3.12 docs/tutorial.md" for less)
# make soak    the same laws for minutes: random kills, long runs
# make attack  everything that ever harmed a broker, against one beside a good client; part of make soak
# make fuzz    what reads bytes, against a fuzzer that is guided by coverage (ARGS="--seconds 600 message")
# make verdicts   Apache Kafka's own integration tests against Penstock; writes docs/reference/verdicts.md
#              (ARGS="--failed", ARGS="TopicCommandTest" for some)
# make histories   every client on brokers that are killed, paused and cut off, by seed, held to Jepsen's checks;
#              writes docs/reference/histories.md (ARGS="--minutes 60 --seed 100 --target cluster")
# make docs    the documentation as a searchable site, in build/site
# make bench-check  what got slower than in the last commit, by CPU seconds (ARGS="--against main --rounds 15")
# make speed  the benchmarks that docs/reference/speed.md names, their tables into that page; on a quiet machine
#              (ARGS="broker.py" for those whose command contains it)
# make bench   the benchmarks       make clean    remove what the tools left behind (the environment stays)

# Tests start hundreds of Pythons, and pytest rewrites each test module: without compiled files that are kept,
# every one of them compiles all that it imports.
unexport PYTHONDONTWRITEBYTECODE

SHELL := /bin/bash
VENV := .venv
BIN := $(VENV)/bin
ARGS ?=
PYTEST := $(BIN)/python -m pytest

# What an installation depends on. A stamp file that is newer than these says that nothing is left to do.
PINS := pyproject.toml constraints.txt native/kernels.c $(wildcard native/*.h) native/hatch_build.py
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.DEFAULT_GOAL := help
.PHONY: help setup docs demo lint test check compat peers soak attack fuzz verdicts histories wheels first-hour \
	bench speed bench-check clean

help:
	@sed -n 's/^# \{0,1\}//p; /^$$/q' Makefile

setup: $(VENV)/.everything

demo: $(VENV)/.demo
	@$(BIN)/penstock demo $(ARGS)

lint: $(VENV)/.everything
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports

# Seven, whatever the number of processors: a test waits for disks, sockets, clocks and other processes two thirds
# of its time, so that five leave a fifth of two processors idle. tests/parts_of_tests.py says what each of the
# seven begins with. Each collects all there is, but for the tests with other people's software, which all have a
# mark (tests/compat/conftest.py). Their files are in memory where it has 4 GB for them: a quarter of the CPU of
# tests of logs, and half of their time, went into a disk.
MEMORY = $(shell [ "$$(df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 {print $$4}')" -gt 4000000 ] 2>/dev/null && echo /dev/shm)

# Where no person looks on, the tests that take longest are named at the end.
SLOWEST := $(if $(CI),--durations 25 --durations-min 10)

test: $(VENV)/.everything
	$(if $(MEMORY),PYTEST_DEBUG_TEMPROOT=$(MEMORY)) $(PYTEST) -n 7 --dist worksteal --ignore tests/compat -m "not compat and not slow and not soak" $(SLOWEST)

check: lint test

# Only files that have such tests: each process would collect all of them, and throw away nineteen of twenty tests.
marked = $(shell grep -rlE 'mark\.($(1))\b' tests --include='test_*.py' | sort)

# Tests of clients wait more than they compute: four at a time keep two cores busy. Of Apache Kafka's own tests
# those of .ci/run, where CI is set, are the quick third of all that have passed; all take 40 minutes. Nor does
# it repeat the tests marked "again", at a second place or release.
compat: $(VENV)/.everything
	$(PYTEST) -n 4 --dist loadfile --no-loadscope-reorder -m "(compat or slow) and not alone and not soak$(if $(CI), and not again)" $(SLOWEST) $(ARGS) \
	    tests/compat $(filter-out tests/compat/%,$(call marked,compat|slow))
	$(PYTEST) -m "alone and not soak" $(call marked,alone)
	$(if $(CI),,$(PYTEST) -m soak tests/compat/test_verdicts.py)

peers: $(VENV)/.everything
	$(BIN)/python tests/compat/fetch_peers.py

soak: $(VENV)/.everything
	$(PYTEST) -m soak --timeout 3600
	$(PYTEST) -m "hypothesis and not compat and not slow" --timeout 3600 --hypothesis-profile soak

attack: $(VENV)/.everything
	$(BIN)/python tests/attack/run.py $(ARGS)

fuzz: $(VENV)/.fuzz
	$(BIN)/python tests/fuzz/run.py $(ARGS)

verdicts: $(VENV)/.everything
	PYTHONPATH=tests $(BIN)/python tests/compat/verdicts/run.py $(ARGS)

histories: $(VENV)/.everything
	PYTHONPATH=tests $(BIN)/python tests/histories/run.py $(ARGS)

wheels: $(VENV)/.everything
	$(BIN)/python tools/try_wheel.py

first-hour: $(VENV)/.everything
	$(BIN)/python tools/first_hour.py $(ARGS)

docs: $(VENV)/.everything
	$(BIN)/python tools/build_site.py

bench: $(VENV)/.everything
	@set -e; for benchmark in benchmarks/*.py; do echo "== $$benchmark"; $(BIN)/python "$$benchmark"; done

speed: $(VENV)/.everything
	$(BIN)/python tools/write_speed.py $(ARGS)

bench-check: $(VENV)/.everything
	$(BIN)/python tools/bench_check.py $(ARGS)

clean:
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .coverage htmlcov spark-warehouse
	find src tests benchmarks tools -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# What pip and the operating system say of these two stands above our words, or is left out where it says less.
define PIP_FAILED
{ echo "make: pip could not install what $(VENV) needs; its own words are above." >&2; \
  echo "make: It needs the network (pypi.org, or the index that pip is set to) and some room on disk." >&2; \
  echo "make: Behind a proxy set HTTPS_PROXY, with a mirror PIP_INDEX_URL; without a network, PIP_NO_INDEX=1 and" >&2; \
  echo "make: PIP_FIND_LINKS=DIRECTORY with wheels that 'pip download' has fetched elsewhere. Then run make again:" >&2; \
  echo "make: it goes on where it stopped." >&2; exit 1; }
endef

$(VENV)/.python:
	@{ mkdir -p "$(VENV)" && touch "$(VENV)/.writable" && rm "$(VENV)/.writable"; } 2>/dev/null || { \
	    echo "make: $$(id -un) may not write to $(abspath $(VENV)) (the clone belongs to $$(ls -ld . | awk '{print $$3}'))." >&2; \
	    echo "make: Clone into a directory of your own, or have an administrator run: chown -R $$(id -un) '$(CURDIR)'" >&2; \
	    exit 1; }
	@command -v python3 >/dev/null || { echo "make: python3 is missing; on Debian: apt install python3 python3-venv" >&2; exit 1; }
	@set -e; for candidate in $(PYTHON) python3 python3.13 python3.12 python3.11; do \
	    if command -v "$$candidate" >/dev/null \
	        && "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then python=$$candidate; break; fi; \
	done; \
	if [ -z "$$python" ]; then \
	    echo "make: Python 3.11 or newer is needed, $$(python3 --version) is here; name another with: make PYTHON=/path/to/python" >&2; \
	    exit 1; \
	fi; \
	if ! "$$python" -c 'import ensurepip, venv' 2>/dev/null; then \
	    echo "make: this Python cannot make virtual environments; on Debian: apt install python3-venv" >&2; exit 1; \
	fi; \
	"$$python" -m venv $(VENV)
	@$(PIP) --upgrade 'pip>=25.1' || $(PIP_FAILED)
	@touch $@

$(VENV)/.demo: $(VENV)/.python $(PINS)
	@echo "make: installing Penstock and what its demo needs into $(VENV) (once; 1.1 GB on disk, mostly Spark)"
	@$(PIP) --editable '.[demo]' || $(PIP_FAILED)
	@touch $@

$(VENV)/.everything: $(VENV)/.demo
	@echo "make: installing the tools for tests and checks into $(VENV) (once; another 1 GB on disk)"
	@$(PIP) --group dev || $(PIP_FAILED)
	@touch $@

$(VENV)/.fuzz: $(VENV)/.everything
	@$(PIP) --only-binary atheris --group fuzz || { \
	    echo "make: there is no atheris for $$($(BIN)/python --version) here; it comes for Python 3.11 to 3.13 on Linux" >&2; exit 1; }
	@touch $@
