"""Worked problems of textbooks and papers, each by one command, against the number that its source prints."""

from __future__ import annotations

import shlex
import tomllib
from typing import Any

from support.command import Cli
from support.paths import ROOT

PROBLEMS: list[dict[str, Any]] = tomllib.loads((ROOT / "tests/data/worked_problems.toml").read_text())["problem"]


def mismatch(cli: Cli, problem: dict[str, Any]) -> str:
    """What is wrong with the answer to a problem; empty where it is the source's number."""
    answer = cli(*shlex.split(problem["command"]), "-o", "json")
    if answer.status:
        return f"{problem['command']}: {answer.err}"
    row = next((row for row in answer.rows if row.get("is", "crossing") == "crossing"), {})
    got = row.get(problem["key"])
    close = got is not None and abs(got - problem["value"]) <= problem["within"] * problem["value"]
    return "" if close else f"{problem['command']}: {problem['key']} is {got}, the source says {problem['value']}"


def test_worked_problems__give_the_numbers_of_their_sources(cli: Cli) -> None:
    assert len(PROBLEMS) >= 40
    assert [text for problem in PROBLEMS if (text := mismatch(cli, problem))] == []


def test_worked_problems__page_shows_every_command() -> None:
    page = (ROOT / "docs/worked_problems.md").read_text()
    assert [problem["command"] for problem in PROBLEMS if f"headway {problem['command']}" not in page] == []
    assert all(problem["within"] <= 0.04 for problem in PROBLEMS)
