"""200 wrong inputs drawn over all verbs (seed 20261126), as the commit before the question was a record refused them,
and fourteen of verbs that came later.

Each is refused still, with the same exit status and naming the same flag, or one that was typed where none was named; those marked
`same_line` with the same line.
"""

from __future__ import annotations

import csv
import re
import shlex
from pathlib import Path

from headway import QUESTIONS
from support.command import Cli
from support.flag_walk import INPUTS

FILE = Path(__file__).parent / "refusals.csv"
FLAG = re.compile(r"--[a-z][\w-]*")


def rows() -> list[dict[str, str]]:
    """Command, exit status, whether the line is contract, and the line that it was refused with."""
    with FILE.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_refusals__are_of_every_verb_and_many() -> None:
    drawn = rows()
    assert len(drawn) == 214 and sum(row["same_line"] == "1" for row in drawn) == 40
    assert len({row["command"].split()[0] for row in drawn}) >= len(QUESTIONS) - 4


def test_refusals__have_the_same_status_and_name_the_same_flag(cli: Cli) -> None:
    wrong = []
    for row in rows():
        answer = cli(*(word.replace("INPUTS", INPUTS) for word in shlex.split(row["command"])))
        line = answer.err.strip().replace(INPUTS, "INPUTS")
        before, now = (FLAG.findall(text)[:1] for text in (row["line"], line))
        names_it = now == before or (before == [] and now[0] in FLAG.findall(row["command"]))
        same = line == row["line"] if row["same_line"] == "1" else names_it
        if (answer.status, answer.out, answer.err.count("\n")) != (int(row["status"]), "", 1) or not same:
            wrong.append(f"{row['command']}\n    before: {row['line']}\n    now:    {line or answer.out[:80]}")
    assert wrong == [], "\n".join(wrong)
