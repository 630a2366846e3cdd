"""`headway lecture ID`: the first line answers; every figure, input and law of the claim is there for a person to check."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from headway.cli.main import main
from headway.core.formula import anonymous
from headway.evidence import claims as ledger
from headway.evidence.claims.claim import claims
from headway.evidence.claims.rows import current
from support.command import Cli

ROWS = {row.id: row for row in ledger.rows()}


def said(cli: Cli, *command: str) -> list[str]:
    return cli("lecture", *command).text.splitlines()


@pytest.mark.parametrize("claim_id", ROWS)
def test_lecture__first_line_is_the_verdict_and_every_part_is_printed(claim_id: str, cli: Cli) -> None:
    row, lines = ROWS[claim_id], said(cli, claim_id)
    text = "\n".join(lines)
    assert lines[0].startswith(f"{claim_id} {row.verdict}")
    if row.verdict == "differs":
        assert f"({row.cause})" in lines[0]
    assert row.source in text or re.sub(r"\W", "", row.source) in re.sub(r"\W", "", text)  # folded in a cell
    for part in row.parts:
        (line,) = [line for line in lines if line.startswith(f"{part.name}  ")]
        assert (part.verdict or "not judged") in line
    for one in row.inputs:
        assert any(line.startswith(f"  {one.name} ") and one.source in line for line in lines), one.name
    assert not row.note or f"note: {row.note}" in lines
    assert not row.cause or f"cause: {row.cause}" in lines
    worked = claims()[claim_id].worked
    assert not worked or f"by hand: {worked}" in lines


def test_lecture__verdict_reads_in_one_line(cli: Cli) -> None:
    assert said(cli, "pp-12")[0].startswith("PP-12 differs (an input off): one hop is 19 us, stated 2.5 ms")
    assert said(cli, "RK-03")[0].startswith("RK-03 differs (an input off): width is 0.6 m, claimed 1 m .. 2 m")
    assert said(cli, "MOE-11")[0].startswith("MOE-11 agrees: in the rack over weight time is 0.357, claimed at most 1; others: 1 agrees")
    assert said(cli, "RB-10")[0] == (
        "RB-10 agrees: balanced batch = hardware ratio x sparsity; its test, weight time over compute time there, is 1"
    )  # a formula shows the formula
    assert said(cli, "RK-02")[0] == "RK-02 agrees: racks is 1.05k .. 9.09k, claimed 1000 .. 10000"
    assert said(cli, "PP-19")[0] == "PP-19 not arithmetic: it states nothing that a law, a count or an experiment gives"
    measured = "CW-09 agrees: standard errors from 1 key in 66 to 1 in 512 is 19, claimed at least 3; others: 1 agrees"
    assert said(cli, "CW-09")[0] == measured


def test_lecture__a_bound_shows_its_ends_and_what_they_enclose(cli: Cli) -> None:
    """OT-13's lower end has to lie below the rumour: "at least 0" said nothing. Each way of the output has it."""
    page = said(cli, "OT-13")
    assert page[0] == "OT-13 undecided: tokens is 40T .. 1P, stated 150T"
    assert any(line.split()[:7] == ["tokens,", "at", "least", "at", "most", "150T", "40T"] for line in page)
    assert "| tokens, at least | at most 150T | 40T |" in cli("lecture", "OT-13", "-o", "md").text
    assert cli.json("lecture OT-13")["rows"][0]["tolerance"] == "at most 150T"
    group = {line.split()[0]: line for line in said(cli, "EX") + said(cli, "OT") if line}
    assert "0.481 .. 1" in group["EX-02"] and "40T .. 1P" in group["OT-13"]


@pytest.mark.parametrize("claim_id", ["AP-18", "OT-13"])
def test_lecture__a_figure_that_is_a_fact_says_which(cli: Cli, claim_id: str) -> None:
    """Below "how" stands the fact where no law makes the figure."""
    lines = said(cli, claim_id)
    assert len(lines) > 1 + next(number for number, line in enumerate(lines) if line.startswith("how "))


def test_lecture__never_is_said_for_what_has_no_end(cli: Cli) -> None:
    answer = cli.json("lecture CW-08 --with rubin_bw=7TB/s")
    assert [row["value"] for row in answer["rows"]][1::2] == [None, None] and any(note.startswith("never:") for note in answer["notes"])
    assert not re.search(r"\binf\b", cli("lecture", "CW-08", "--with", "a100_bw=2.039TB/s").text)


def test_lecture__every_fact_of_today_has_an_origin() -> None:
    for claim in claims().values():
        assert current(claim).keys() == claim.today.keys(), claim.id
        for name, value in ledger.explain(claim.id, today=True).items() if claim.today else ():
            assert anonymous(value) == [], (claim.id, name)


def test_lecture__derivation_from_figure_to_inputs(cli: Cli) -> None:
    lines = said(cli, "FM-02")
    start = next(number for number, line in enumerate(lines) if line.startswith("how "))
    assert lines[start + 1 :] == ["  slow batch over fast batch = batch_ratio_identity(price_ratio, speed_ratio) = 15   price * speed"]


def test_lecture__inputs_show_the_catalogue_value(cli: Cli) -> None:
    lines = said(cli, "TS-02")
    assert [line for line in lines if line.startswith("  mem_bw ") and line.endswith("the catalogue says 22 TB/s")]
    assert [line for line in lines if line.startswith("  hbm ") and line.endswith("the catalogue says the same")]


def test_lecture__json_of_one_claim_is_its_whole_row(capsys: Any) -> None:
    assert main(["lecture", "moe-11", "-o", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert row["id"] == "MOE-11" and row["verdict"] == "agrees" and len(row["inputs"]) == len(claims()["MOE-11"].inputs)
    assert {part["name"]: part["recomputed"] for part in row["parts"]}["one layer in the rack"] == pytest.approx(7.168e-6, rel=1e-12)


def test_lecture__group_is_a_table_under_its_verdict_counts(cli: Cli) -> None:
    lines = said(cli, "moe")
    verdicts = [row.verdict for row in ROWS.values() if row.group == "MOE"]
    assert lines[0].startswith("12 claims of the lecture: ")
    assert all(f"{verdicts.count(verdict)} {verdict}" in lines[0] for verdict in verdicts)
    assert said(cli, "moe", "--where", "verdict == 'nothing'")[0] == "no claim of the lecture is left"
