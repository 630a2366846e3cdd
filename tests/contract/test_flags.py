"""Every flag of every verb: a legal value changes the answer, is refused, or is said to change nothing; nonsense is one line and exit 2."""

from __future__ import annotations

import json
import os
import re
from typing import Any

import pytest

from headway import QUESTIONS as VERBS
from support.command import Answer, Cli
from support.each import for_each
from support.flag_walk import BASES, SLOW, flags_of, words_of

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("proposals_once")]

NONSENSE = ("abc", "nan", "")
# Names that a user may give to anything: files to write, texts to look for, a key in hexadecimal digits, an engine nobody knows.
FREE = ("--timeline", "--find", "--where", "--sort", "--explain", "--plot", "--cipher-key", "--engine", "--engine-version", "--out")


def parts(answer: Answer) -> Any:
    document = json.loads(answer.out)
    return [document.get(key) for key in ("rows", "launch", "document", "checked")], document.get("notes")


def check_effects(base: str, cli: Cli) -> None:
    plain, plain_notes = parts(cli(*words_of(base), "-o", "json"))
    for flag in flags_of(base):
        if flag.is_printed:
            continue
        answer = cli(*flag.words(), "-o", "json")
        if answer.status:
            assert (answer.status, answer.out, answer.err.count("\n")) == (2, "", 1), (flag, answer)
            continue
        changed, notes = parts(answer)
        said = any(("no effect" in note or "not used" in note) and flag.name in note for note in notes)
        assert changed != plain or said or notes != plain_notes, f"{' '.join(flag.words())}: changes nothing, and nothing says so"


def check_nonsense(base: str, cli: Cli) -> None:
    for flag in flags_of(base):
        if not flag.value or (flag.name in FREE and base.split()[0] in ("sim", "feistel", "score", "lecture", "calibrate")):
            continue
        for text in NONSENSE:
            answer = cli(*flag.words(text))
            assert (answer.status, answer.out, answer.err.count("\n")) == (2, "", 1), f"{' '.join(flag.words(text))}: {answer.err[:200]}"


def check_defaults(base: str, cli: Cli) -> None:
    plain = parts(cli(*words_of(base), "-o", "json"))[0]
    for flag in flags_of(base):
        if not flag.default or flag.is_printed or ("--workload" in base and flag.name in ("--prompt", "--output")):
            continue  # a trace has lengths of its own
        answer = cli(*flag.words(flag.default), "-o", "json")
        if answer.status:  # it belongs to another question, or to another flag
            assert re.search(r"says nothing beside|; wants ", answer.err), (flag, answer.err)
        else:
            assert without_times(parts(answer)[0]) == without_times(plain), (
                f"{' '.join(flag.words(flag.default))} is not what holds without it"
            )


def without_times(value: Any) -> Any:
    """Parts of an answer without the time that a replay took; numbers as floats."""
    if isinstance(value, dict):
        return {key: without_times(part) for key, part in value.items() if key not in ("wall_s", "compile_s")}
    return [without_times(part) for part in value] if isinstance(value, list) else value


@for_each(BASES)
def test_defaults_that_help_states__typed_out_change_nothing(base: str, cli: Cli) -> None:
    check_defaults(base, cli)


@for_each(BASES)
def test_legal_values__change_the_answer_or_are_refused_or_said_to_change_nothing(base: str, cli: Cli) -> None:
    check_effects(base, cli)


@for_each(BASES)
def test_nonsense__is_one_line_in_every_flag(base: str, cli: Cli) -> None:
    check_nonsense(base, cli)


@pytest.mark.skipif(not os.environ.get("HEADWAY_FLAGS"), reason="minutes: make flags")
@for_each(SLOW)
def test_flags__of_slow_verbs(base: str, cli: Cli) -> None:
    check_effects(base, cli)
    check_nonsense(base, cli)
    check_defaults(base, cli)


def test_bases__name_every_verb() -> None:
    # they write files, serve, ask a server, follow from the machine, or take no flag of an answer
    elsewhere = {"fit", "web", "mcp", "new", "ask", "schema", "sweep", "update", "probe", "measure", "lab"}
    assert {base.split()[0] for base in (*BASES, *SLOW)} | elsewhere == set(VERBS)
