PYTHON ?= python3
WORKERS ?= 2
GAMES ?= 1000

VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
INSTALL := $(BIN)/python -m pip install --quiet --constraint constraints.txt
# The workers share the cores, so a thread of torch that waits must not spin.
PYTEST := OMP_WAIT_POLICY=passive $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist worksteal

.DEFAULT_GOAL := help
.PHONY: help train setup browser engines quick test exhaustive test-all golden public-api fuzz lint lint-page check-page format-page types coverage docs docs-trainers match ratings bench clean

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

train: $(INSTALLED)  ## train a network from scratch, then draw how it does; goes on with a run that was stopped
	$(BIN)/ninetka train --config configs/quick.yaml --games $(GAMES) --resume

setup: $(INSTALLED)  ## create .venv and install everything for development

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) --editable ".[dev]"
	@touch $@

browser:  ## install Chromium, which the tests of the page drive, if there is none
	command -v chromium || command -v chromium-browser || command -v google-chrome || \
		(apt-get update -q && apt-get install -qy --no-install-recommends chromium)

SABAKI := build/sabaki
engines:  ## install GNU Go, and Sabaki's controller of engines, which tests play Go with, if they are not there
	command -v gnugo || test -x /usr/games/gnugo || \
		(apt-get update -q && apt-get install -qy --no-install-recommends gnugo)
	command -v npm || (apt-get update -q && apt-get install -qy --no-install-recommends nodejs npm)
	test -d $(SABAKI)/node_modules/@sabaki/gtp || npm install --no-audit --no-fund --prefix $(SABAKI) @sabaki/gtp@3.0.0

# CONTRIBUTING.md describes the three tiers of tests.
quick: $(INSTALLED)  ## run the fast tests, as after an edit
	NINETKA_TEST_GAMES=20 $(PYTEST) -m "not slow and not exhaustive"

test: $(INSTALLED)  ## run the tests, without the exhaustive ones
	$(PYTEST) -m "not exhaustive"

exhaustive: $(INSTALLED)  ## run what `make test` leaves out, and many more games
	NINETKA_TEST_GAMES=2000 $(PYTEST) -m "exhaustive or scaled"

test-all: test exhaustive lint types docs  ## run all tests, and check style, types, docs

golden: $(INSTALLED)  ## rewrite the golden playthroughs, if package and references agree at every ply
	PYTHONPATH=tests $(BIN)/python -m golden.regenerate

public-api: $(INSTALLED)  ## update the snapshot of the public API
	PYTHONPATH=tests $(BIN)/python -m public_api

fuzz: $(INSTALLED)  ## try 300,000 odd inputs and 1,000 odd command lines: all must end in success or one sentence
	PYTHONPATH=tests $(BIN)/python -m fuzz

lint: $(INSTALLED)  ## check style and format, and the types of the page's JavaScript
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	@$(MAKE) --no-print-directory lint-page

PAGE := build/page
PAGE_FILES := "ninetka_web/static/**/*.js" tools/page
PRETTIER := $(PAGE)/node_modules/.bin/prettier --config tools/page/prettier.json --log-level warn
lint-page:
	@if command -v npm > /dev/null && node -e 'process.exit(+(parseInt(process.versions.node) < 18))'; \
	then $(MAKE) --no-print-directory check-page; \
	else echo "lint: JavaScript is not checked, that needs Node.js 18 or later and npm"; fi

check-page: $(PAGE)/.installed
	$(PRETTIER) --check $(PAGE_FILES)
	$(PAGE)/node_modules/.bin/tsc --project tools/page

format-page: $(PAGE)/.installed  ## format the page's JavaScript
	$(PRETTIER) --write $(PAGE_FILES)

$(PAGE)/.installed: tools/page/package.json tools/page/package-lock.json
	mkdir -p $(PAGE)
	cp $^ $(PAGE)
	npm ci --no-audit --no-fund --include=dev --fetch-retries=1 --prefix $(PAGE) || \
		{ echo "lint: npm cannot install Prettier and TypeScript; is there a network?"; exit 1; }
	@touch $@

types: $(INSTALLED)  ## check types
	$(BIN)/mypy

# Compiled code is invisible to coverage, so the tests of the game run once more as plain Python: slowly, hence few games.
coverage: UNCOMPILED := $(addprefix tests/ninetka/test_,rules.py game.py observation.py uncompiled.py)
coverage: $(INSTALLED)  ## report line and branch coverage of ninetka_env and agents
	$(PYTEST) --cov --cov-report=
	NUMBA_DISABLE_JIT=1 NINETKA_TEST_GAMES=24 $(PYTEST) --cov --cov-append -W ignore::RuntimeWarning $(UNCOMPILED)

# The theme would warn of what a later MkDocs may bring; that says nothing about these pages. (`--quiet` would hide
# warnings from `--strict` as well.)
docs: export NO_MKDOCS_2_WARNING := 1
docs: $(INSTALLED)  ## build the documentation site into site/; a warning is an error
	$(BIN)/mkdocs build --strict --clean

match: $(INSTALLED)  ## play MaxN, a tree search and a random player against each other
	$(BIN)/ninetka evaluate maxn mcts:simulations=2000 random --players 3 --games 120

ratings: $(INSTALLED)  ## rate everybody who plays 9tka, Go and Kropki, all networks included, into docs/ratings
	$(BIN)/ninetka rate --game ninetka --anchor mcts:simulations=2000 --games 20 --table docs/ratings/ninetka.md
	$(BIN)/ninetka rate --game go --anchor mcts:simulations=200,rave,playouts=heavy --games 20 --table docs/ratings/go.md
	$(BIN)/ninetka rate --game kropki --anchor mcts:simulations=200 --games 20 --table docs/ratings/kropki.md

bench: $(INSTALLED)  ## measure speed, beside OpenSpiel's and pgx's in the same run
	$(INSTALL) --editable ".[bench]"
	$(BIN)/ninetka bench

docs-trainers:  ## run the guides to other people's trainers, each in an environment of its own in .venvs (GUIDES="sb3 rllib")
	$(PYTHON) docs/trainers/run.py $(GUIDES)

clean:  ## remove .venv and everything that tools left behind
	rm -rf $(VENV) .venvs build dist site htmlcov .coverage .coverage.* .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -prune -exec rm -rf {} +
