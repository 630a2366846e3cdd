# Works on a fresh machine with Python 3.11+ and make: the environment is made here, once.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test check golden lint types bench clean

.venv/core: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	touch $@

.venv/dev: .venv/core
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@

demo: .venv/core
	$(BIN)/headway plan deepseek-v3 --on gb200-nvl72 --prompt 8k --output 1k --ttft 2s --tpot 50ms

# All tests, on two cores; more cores: make test WORKERS=auto. Without workers (to debug): .venv/bin/python -m pytest
WORKERS ?= 2
test: .venv/dev
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

# While one works: lint, types and the tests that are not marked slow, about a minute.
check: lint types
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not slow"

# Writes the stored answers of tests/contract/golden again and prints what changed; `python tests/contract/golden/golden.py --check` only compares.
golden: .venv/dev
	$(BIN)/python tests/contract/golden/golden.py

lint: .venv/dev
	$(BIN)/ruff check .

types: .venv/dev
	$(BIN)/pyright

bench: .venv/dev
	for file in bench/bench_*.py; do $(BIN)/python $$file || exit 1; done

clean:
	rm -rf .venv
