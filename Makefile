PYTHON ?= python3
WORKERS ?= 2
GAMES ?= 1000

VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
INSTALL := $(BIN)/python -m pip install --quiet --constraint constraints.txt
# The workers share the cores, so waiting torch threads must not spin.
PYTEST := OMP_WAIT_POLICY=passive $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist worksteal

.DEFAULT_GOAL := help
.PHONY: help train setup browser engines kernels quick test exhaustive test-all golden public-api fuzz lint lint-page check-page format-page types coverage docs docs-trainers match ratings speed clean

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

train: $(INSTALLED)  ## train a network from scratch and plot its progress; resumes a stopped run
	$(BIN)/ninetka train --config configs/quick.yaml --games $(GAMES) --resume

setup: $(INSTALLED)  ## create .venv and install everything for development

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) --editable ".[dev]"
	@touch $@

browser:  ## install Chromium for the browser tests, if it is missing
	command -v chromium || command -v chromium-browser || command -v google-chrome || \
		(apt-get update -q && apt-get install -qy --no-install-recommends chromium)

SABAKI := build/sabaki
engines:  ## install GNU Go and Sabaki's engine controller for the GTP tests, if they are missing
	command -v gnugo || test -x /usr/games/gnugo || \
		(apt-get update -q && apt-get install -qy --no-install-recommends gnugo)
	command -v npm || (apt-get update -q && apt-get install -qy --no-install-recommends nodejs npm)
	test -d $(SABAKI)/node_modules/@sabaki/gtp || npm install --no-audit --no-fund --prefix $(SABAKI) @sabaki/gtp@3.0.0

kernels: $(INSTALLED)  ## install numba-cuda for the tests of compiled kernels, which need no GPU
	$(INSTALL) --editable ".[gpu]"

# CONTRIBUTING.md describes the three tiers of tests.
quick: $(INSTALLED)  ## run the fast tests
	NINETKA_TEST_GAMES=20 $(PYTEST) -m "not slow and not exhaustive"

test: $(INSTALLED)  ## run all tests except the exhaustive ones
	$(PYTEST) -m "not exhaustive"

exhaustive: $(INSTALLED)  ## run the tests that `make test` leaves out, with many more games
	NINETKA_TEST_GAMES=2000 $(PYTEST) -m "exhaustive or scaled"

test-all: test exhaustive lint types docs  ## run all tests and check style, types and docs

golden: $(INSTALLED)  ## rewrite the golden playthroughs, if the package agrees with the references at every ply
	PYTHONPATH=tests $(BIN)/python -m golden.regenerate

public-api: $(INSTALLED)  ## update the snapshot of the public API
	PYTHONPATH=tests $(BIN)/python -m public_api

fuzz: $(INSTALLED)  ## try 300,000 random inputs and 1,000 random command lines: each must succeed or print a one-line error
	PYTHONPATH=tests $(BIN)/python -m fuzz

lint: $(INSTALLED)  ## check style, format and words, and the types of the page's JavaScript
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	git ls-files '*.md' | xargs $(BIN)/ruff format --check --line-length 88
	$(BIN)/python tools/words.py
	@$(MAKE) --no-print-directory lint-page

PAGE := build/page
PAGE_FILES := "ninetka_web/static/**/*.js" tools/page
PRETTIER := $(PAGE)/node_modules/.bin/prettier --config tools/page/prettier.json --log-level warn
lint-page:
	@if command -v npm > /dev/null && node -e 'process.exit(+(parseInt(process.versions.node) < 18))'; \
	then $(MAKE) --no-print-directory check-page; \
	else echo "lint: JavaScript is not checked, because that needs Node.js 18 or later and npm"; fi

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

# Coverage does not see compiled code, so the tests of 9tka run again as plain Python, with few games because it is slow.
coverage: UNCOMPILED := $(addprefix tests/ninetka/test_,rules.py game.py observation.py uncompiled.py)
coverage: $(INSTALLED)  ## report line and branch coverage of ninetka_env and agents
	$(PYTEST) --cov --cov-report=
	NUMBA_DISABLE_JIT=1 NINETKA_TEST_GAMES=24 $(PYTEST) --cov --cov-append -W ignore::RuntimeWarning $(UNCOMPILED)

# Turns off the theme's warning about MkDocs 2, which does not concern these pages. (`--quiet` would also hide warnings
# from `--strict`.)
docs: export NO_MKDOCS_2_WARNING := 1
docs: $(INSTALLED)  ## build the documentation site into site/; warnings are errors
	$(BIN)/mkdocs build --strict --clean

match: $(INSTALLED)  ## play MaxN, a tree search and a random player against each other
	$(BIN)/ninetka evaluate maxn mcts:simulations=2000 random --players 3 --games 120

ratings: $(INSTALLED)  ## rate all agents and networks of 9tka, Go and Kropki; write docs/ratings
	$(BIN)/ninetka rate --game ninetka --anchor maxn --games 20 --markdown docs/ratings/ninetka.md
	$(BIN)/ninetka rate --game go --anchor mcts:simulations=200,rave,playouts=heavy --games 20 --markdown docs/ratings/go.md
	$(BIN)/ninetka rate --game kropki --anchor mcts:simulations=200 --games 20 --markdown docs/ratings/kropki.md

speed: $(INSTALLED)  ## measure speed, compared with OpenSpiel and pgx in the same run
	$(INSTALL) --editable ".[bench]"
	$(BIN)/ninetka speed

docs-trainers:  ## run the guides to other trainers, each in its own environment in .venvs (GUIDES="sb3 rllib")
	$(PYTHON) docs/trainers/run.py $(GUIDES)

clean:  ## remove .venv and all files created by tools
	rm -rf $(VENV) .venvs build dist site htmlcov .coverage .coverage.* .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -prune -exec rm -rf {} +
