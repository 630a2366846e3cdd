"""The one search: what stands for a word, what answers a query, what nothing answers; its index is what the package says."""

from __future__ import annotations

import csv
import subprocess
import sys
import tomllib

import pytest

from headway.core import search
from support.paths import ROOT, SOURCE, TESTS

# Written by the authors of the index and its aliases, beside them: they guard what is found, and measure nothing.
QUERIES = list(csv.DictReader((TESTS / "data" / "find_queries.csv").read_text(encoding="utf-8").splitlines()))
NOTHING = "-"


def names(query: str, first: int = 3) -> list[set[str]]:
    """Names of the first answers: of the page, and of the verb and law of its command."""
    return [{match.page.name, *match.page.command.split()[1:3]} for match in search.best(query, first)]


def test_index__is_what_the_package_says() -> None:
    """`make index` writes it again."""
    tool = [sys.executable, ROOT / "tools" / "search_index.py", "--check"]
    process = subprocess.run(tool, env={"PYTHONPATH": str(SOURCE.parent)}, check=False, capture_output=True, text=True)
    assert process.returncode == 0, process.stdout + process.stderr


def test_aliases__are_of_what_there_is() -> None:
    aliases = tomllib.loads((SOURCE / "data" / "search" / "aliases.toml").read_text(encoding="utf-8"))
    assert {kind: set(of_kind) - {page.name for page in search.pages((kind,))} for kind, of_kind in aliases.items()} == {
        "law": set(), "verb": set(), "claim": set(), "chip": set()
    }  # fmt: skip


def test_best__right_law_claim_or_verb_in_the_first_three() -> None:
    asked = [row for row in QUERIES if row["accepted"] != NOTHING]
    missed = [row["query"] for row in asked if not any(found & set(row["accepted"].split()) for found in names(row["query"]))]
    assert len(asked) >= 100 and len(missed) <= 0.05 * len(asked), missed


def test_best__nothing_for_what_headway_does_not_know() -> None:
    foreign = [row["query"] for row in QUERIES if row["accepted"] == NOTHING]
    met = [query for query in foreign if search.best(query, 5)]
    assert len(foreign) >= 40 and len(met) <= 0.05 * len(foreign), met


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("pipeline bubbles", "pipeline bubble"), ("all-to-all", "all to all"), ("utilization of a chip", "utilisation of chips"),
        ("micro batches", "micro-batches"), ("TP8", "tp 8"), ("200,000 tokens", "200k tokens"), ("Caching", "caches"),
        ("memory of 405 billion parameters", "memory of 405B parameters"),
    ],
)  # fmt: skip
def test_best__plurals_spellings_and_hyphens_are_one(one: str, other: str) -> None:
    assert [match.page.command for match in search.best(one, 3)] == [match.page.command for match in search.best(other, 3)]


def test_best__words_are_weighed_not_required() -> None:
    for query in ("drain time of HBM", "drain time of the HBM memory please, in a sentence"):
        assert "drain_s" in {match.page.name for match in search.best(query, 3)}


def test_best__a_named_chip_or_model_is_among_the_first() -> None:
    for query, name in (("memory of the MI300X", "mi300x"), ("deepseek v3 layers", "deepseek-v3"), ("gb200 nvl72 power", "gb200-nvl72")):
        assert name in [match.page.name for match in search.best(query, 3)], query


def test_best__each_command_once_and_as_many_as_wanted() -> None:
    for query in ("batch", "cost of a token", "network between racks", "KV cache"):
        for count in (1, 5, 12):
            commands = [match.page.command for match in search.best(query, count)]
            assert len(commands) == len(set(commands)) == count


@pytest.mark.parametrize("text", ["", "   ", "the of and", "?!", "\u2026", "a" * 500, "x " * 500, "qwzx" * 3, "\x00", "1e999", "-" * 80])
def test_best__hostile_text_finds_nothing(text: str) -> None:
    assert search.best(text, 5) == []


def test_rank__rarer_words_weigh_more() -> None:
    known = search.rarity()
    assert known["avalanch"] > known["cach"] > known["token"]
