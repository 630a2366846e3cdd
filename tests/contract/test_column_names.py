"""No two columns of an answer share a name, and a column that is named after an input shows that input."""

from __future__ import annotations

import ast
import collections
import io
import itertools
import re
from collections.abc import Iterator

from contract.golden.golden import stored
from headway.answers.lecture import INPUT_COLUMNS, other_inputs
from headway.core import law_index
from headway.core.errors import HeadwayError
from headway.core.listing import Listing, headings
from headway.evidence.claims.claim import Claim, claims
from headway.evidence.claims.rows import computable
from headway.evidence.lecture.inputs import RUNS
from headway.report import output


def typed(claim: Claim) -> Iterator[tuple[str, str]]:
    """Every input of a claim that takes a plain number, twice as large as the lecture's."""
    for name, value in claim.inputs.items():
        if 0 < float(value) < 1e300 and (claim.id, name) not in RUNS and not name.endswith("load"):
            factor = 2e6 if value.unit == "USD/token" else 2.0
            yield name, f"${float(value) * 7200}/h" if value.unit == "USD/s" else f"{float(value) * factor!r}"


def test_lecture__the_column_of_an_input_shows_the_input() -> None:
    """`ratio` once showed the quotient beside the lecture's: 14 claims have an input of that name."""
    offenders, with_ratio = [], 0
    for claim_id in computable():
        claim = claims()[claim_id]
        for name, text in typed(claim):
            try:
                answer = other_inputs(claim_id, [f"{name}={text}"])
            except HeadwayError:
                continue
            value = 2 * float(claim.inputs[name])
            with_ratio += name == "ratio"
            row, seen = next(iter(answer.rows)), next(iter(answer.words.people))
            if abs(row[name] / value - 1) > 1e-9 or name not in answer.words.view or answer.words.view.count(name) != 1:
                offenders.append((claim_id, name, row[name]))
            if seen[name] == seen["over_lecture"] or name in INPUT_COLUMNS:
                offenders.append((claim_id, name, seen))
    assert not offenders and with_ratio >= 14


def doubled(heads: list[str]) -> list[str]:
    return [name for name, count in collections.Counter(heads).items() if count > 1]


def test_every_verb__no_table_has_two_columns_of_a_name() -> None:
    """The heads of the stored answers of all verbs: the line above each rule."""
    offenders, tables = [], 0
    for command, answer in stored().items():
        lines = answer["text"]
        for head, rule in itertools.pairwise(lines):
            if rule.startswith("─"):
                tables += 1
                offenders += [(command, name) for name in doubled(re.split(r"\s{3,}", head.strip()))]
    assert not offenders and tables > 150


def test_every_format__keys_of_equal_words_are_told_apart() -> None:
    keys = ["batch", "step", "step_s", "tpot", "tpot_s", "ttft_lo_s~ttft_hi_s"]
    assert not doubled(headings(keys))
    rows = Listing([{"step": 3, "step_s": 0.25}])
    answer = output.Answer(rows)
    for writer in (output.text, output.markdown):
        out = io.StringIO()
        writer(answer, out)
        head = next(line for line in out.getvalue().splitlines() if "step" in line)
        assert "step s" in head, writer


def test_laws__no_argument_has_the_name_of_a_column_of_the_answer() -> None:
    """`headway law NAME key=1,2` has a column for each argument beside `law` and `result`."""
    offenders = []
    for place in law_index.places():
        source = law_index.FOLDER.joinpath(*place.module.split(".")).with_suffix(".py").read_text(encoding="utf-8")
        law = next(node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef) and node.name == place.name)
        offenders += [(place.full_name, name.arg) for name in law.args.args if name.arg in ("law", "result", place.name)]
    assert not offenders
