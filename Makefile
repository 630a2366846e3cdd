# Works on a fresh machine with Python 3.11+ and make: the environment is made here, once.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test check flags golden answers pictures lint types bench clean

.venv/core: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	touch $@

.venv/dev: .venv/core
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@

demo: .venv/core
	$(BIN)/headway plan deepseek-v3 --on gb200-nvl72 --prompt 8k --output 1k --ttft 2s --tpot 50ms --price-metric rental_3yr

# Tests run on all cores, at most eight; one after another, to debug: .venv/bin/python -m pytest FILE
PYTEST := $(BIN)/python -m pytest -n auto --maxprocesses 8 --dist worksteal

test: .venv/dev
	$(PYTEST)

# While one works: lint, types and the tests that are not marked slow, about a minute on two cores.
check: lint types
	$(PYTEST) -m "not slow"

# Writes the stored answers of tests/contract/golden again and prints what changed; `python tests/contract/golden/golden.py --check` only compares.
golden: .venv/dev
	$(BIN)/python tests/contract/golden/golden.py

# Prints the whole answers of README.md and docs/serve.md again.
answers: .venv/dev
	$(BIN)/python tests/support/page_answers.py

# Draws the files of docs/pictures/ again, each by the command that docs/pictures.md prints above it.
pictures: .venv/dev
	$(BIN)/python bench/draw_pictures.py > /dev/null

lint: .venv/dev
	$(BIN)/ruff check .

types: .venv/dev
	$(BIN)/pyright

flags: .venv/dev
	HEADWAY_FLAGS=1 $(BIN)/python -m pytest -n 0 -q tests/contract/test_flags.py

bench: .venv/dev
	for file in bench/bench_*.py; do $(BIN)/python $$file || exit 1; done

clean:
	rm -rf .venv
