"""`lecture ID --with NAME=VALUE`: other inputs change a claim's figures as its laws say; wrong ones are one clear line."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest

from headway.core.errors import BadValue, HeadwayError
from headway.core.trace import Traced, record
from headway.evidence import claims as ledger
from headway.evidence.claims.claim import claims
from headway.evidence.claims.rows import computable, recompute
from headway.evidence.lecture.inputs import RUNS, cases, figures
from support.command import Cli

PER_MTOK = {"USD/token": 1e6}


def replayed(value: Any, leaf: Any, instead: float) -> Any:
    """The tree under a value evaluated again by its laws, one of its leaves replaced: the claim's own function is not called."""
    again: dict[int, Any] = {}  # a branch that several laws share is evaluated once

    def visit(item: Any) -> Any:
        if item is leaf:
            return instead
        if isinstance(item, Traced):
            if id(item.step) not in again:
                again[id(item.step)] = item.step.again({name: visit(inner) for name, inner in item.step.inputs.items()})
            return again[id(item.step)]
        if isinstance(item, tuple | list):
            return type(item)(visit(inner) for inner in item)
        if dataclasses.is_dataclass(item) and not isinstance(item, type):
            return dataclasses.replace(item, **{field.name: visit(getattr(item, field.name)) for field in dataclasses.fields(item)})
        return item

    return visit(value)


@pytest.mark.parametrize("claim_id", sorted(computable()))
def test_with__one_percent_changes_each_figure_as_its_law_says(claim_id: str) -> None:
    claim = claims()[claim_id]
    with record():
        parts = recompute(claim)
    assert parts is not None
    for name, given in claim.inputs.items():
        if math.isinf(given) or (claim_id, name) in RUNS:
            continue  # no limit: it has no 1 %; a run has no part of one, see below
        changed = float(given) * 1.01
        text = f"{name}={changed * PER_MTOK.get(given.unit, 1.0)!r}" + ("/h" if given.unit == "USD/s" else "")
        if given.unit == "USD/s":
            text = f"{name}=${changed * 3600!r}/h"
        (case,) = cases(claim, [text])
        assert float(case.values[name]) == pytest.approx(changed, rel=1e-12)
        for figure, value in figures(claim, case).items():
            assert float(value) == pytest.approx(float(replayed(parts[figure], given, changed)), rel=1e-9), (name, figure)


def test_with__every_computable_claim_has_its_one_percent() -> None:
    """The property above is about all claims but those that no figure decides, and about every input but counted ones."""
    untested = {row.id for row in ledger.rows() if row.parts} - set(computable())
    assert untested == set() and len(computable()) == 183 - 2
    counted = {(claim_id, name) for claim_id, name in RUNS if name in claims()[claim_id].inputs}
    assert counted == set(RUNS)


def test_with__one_percent_of_a_wrong_law_is_seen() -> None:
    """A figure whose law took the input otherwise (its square here) is 1 % off after a change of 1 %, far above the tolerance."""
    claim = claims()["RB-10"]
    with record():
        parts = recompute(claim)
    assert parts is not None
    given = claim.inputs["total"]
    right = float(replayed(parts["ratio times sparsity"], given, float(given) * 1.01))
    (case,) = cases(claim, [f"total={float(given) * 1.01**2!r}"])
    assert float(figures(claim, case)["ratio times sparsity"]) == pytest.approx(right * 1.01, rel=1e-9) != pytest.approx(right, rel=1e-3)


def test_with__counted_inputs_by_hand() -> None:
    """CR-02: layers x' = y + |x|, y' = x on plain integers. CR-07: a bit of SIMON flips one bit or three in one round, half in all."""
    claim = claims()["CR-02"]
    first, second = int(claim.inputs["x"]), int(claim.inputs["y"])
    for layers in range(1, 65):
        first, second = second + abs(first), first
        (case,) = cases(claim, [f"layers={layers}"])
        parts = figures(claim, case)
        assert (parts["x after the layers"], parts["x that comes back, over x"], parts["y that comes back, over y"]) == (first, 1, 1)
    share = "output bits that one flipped bit changes"
    for change, bits in (("rounds=1", 2.0), ("rounds=31", 16.0), ("flips=20000", 16.0)):
        (case,) = cases(claims()["CR-07"], [change])
        assert float(figures(claims()["CR-07"], case)[share]) == pytest.approx(bits / 32, rel=0.03), change


def test_with__units_lists_ranges_and_names() -> None:
    claim = claims()["RB-10"]
    assert [float(case.values["total"]) for case in cases(claim, ["total=1T,2T"])] == [1e12, 2e12]
    assert [float(case.values["total"]) for case in cases(claim, ["total=100B..400B*2"])] == [1e11, 2e11, 4e11]
    assert len(cases(claim, ["total=1T,2T", "active=10B,20B,40B"])) == 6
    (case,) = cases(claim, ["system=8xh100-sxm", "model=llama-3.1-70b"])
    assert case.values["peak"] == pytest.approx(8 * 1978.9e12) and case.values["mem_bw"] == pytest.approx(8 * 3.35e12)
    assert case.values["total"] == case.values["active"] == 70_553_706_496
    (case,) = cases(claim, ["chip=h100-sxm"])
    assert case.values["mem_bw"] == pytest.approx(3.35e12)
    (case,) = cases(claims()["TS-03"], ["h100_bw=h200-sxm"])
    assert case.values["h100_bw"] == pytest.approx(4.8e12)
    (case,) = cases(claims()["KT-11"], ["write_1h=12"])
    assert float(case.values["write_1h"]) == pytest.approx(12e-6)  # a bare price is in USD per million tokens


def test_with__by_hand(cli: Cli) -> None:
    """281.25 tokens times 1T over 32B; longest context of Llama-3.1-70B on a rack at batch 1: (13.824e12 - 70.6e9) / (80 * 2048)."""
    rows = {row["figure"]: row for row in cli.rows("lecture", "RB-10", "--with", "total=1T", "active=32B")}
    assert rows["ratio times sparsity"]["value"] == pytest.approx(324e15 / 2 / 576e12 * 1000 / 32, rel=1e-12)
    assert rows["ratio times sparsity"]["over_lecture"] == pytest.approx(1000 / 32 / (671 / 37), rel=1e-12)
    (row,) = [row for row in cli.rows("lecture", "CW-07", "--with", "model=llama-3.1-70b", "batch=1") if row["figure"] == "longest context"]
    assert row["value"] == pytest.approx((72 * 192e9 - 70_553_706_496) / (80 * 2 * 8 * 128), rel=1e-12)


def test_with__every_figure_explains_itself(cli: Cli) -> None:
    text = cli("lecture", "RB-10", "--with", "total=1T", "active=32B", "--explain", "value").text
    assert "balanced_batch" in text and "given by the user" in text


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ("RB-10 total=abc", "abc"), ("RB-10 total=-1", "--with total"), ("RB-10 total=0", "--with total"), ("RB-10 peak=3GB", "flop/s"),
        ("RB-10 nonsense=3", "inputs: total, active"), ("RB-10 total", "NAME=VALUE"), ("RB-10 total=", "NAME=VALUE"),
        ("RB-10 model=nope", "no model named 'nope'"), ("RB-10 chip=nope", "nope"), ("TS-03 chip=h100-sxm", "several"),
        ("CR-08 x=1", "no law"), ("RB total=1", "one claim"), ("nope total=1", "claim"), ("RB-10 total=nan", "finite"),
        ("CR-07 flips=2e9", "whole number"), ("CR-07 flips=10.5", "whole number"), ("CR-02 layers=65", "whole number"),
        ("CR-07 rounds=33", "whole number"), ("RB-10 total=1..2..3", "--with total"), ("RB-10 total=1..5000", "at most"),
        ("FM-01 chip=h100-sxm", "no chip is in it"),
    ],
)  # fmt: skip
def test_with__wrong_input_is_one_line(changes: str, says: str, cli: Cli) -> None:
    subject, *words = changes.split()
    status, out, err = cli("lecture", subject, "--with", *words)
    assert (status, out, err.count("\n")) == (2, "", 1), err
    assert says in err


def test_with__text_wrong_unit_and_unknown_name_on_every_input_are_one_line() -> None:
    """A time for bytes and bare numbers, bytes for all else; each is refused in a line that a terminal holds."""
    offenders = []
    for claim_id in computable():
        for name, given in claims()[claim_id].inputs.items():
            unit = "3 s" if "byte" in given.unit or not given.unit else "3 GB"
            for text in (f"{name}=some words", f"{name}={unit}", f"{name}=3 parsec", f"{name}=-1", f"{name}_too=1"):
                try:
                    offenders.append((claim_id, text, len(cases(claims()[claim_id], [text]))))
                except HeadwayError as error:
                    if "\n" in str(error) or len(str(error)) > 300:
                        offenders.append((claim_id, text, str(error)))
    assert offenders == []


def test_with__values_without_an_answer_are_refused_or_finite() -> None:
    for claim_id in computable():
        claim = claims()[claim_id]
        for name, given in claim.inputs.items():
            if given.unit not in ("USD/s", "USD/token") and not math.isinf(given):
                for factor in (1e-6, 1e6):
                    try:
                        (case,) = cases(claim, [f"{name}={float(given) * factor!r}"])
                        values = figures(claim, case).values()
                    except BadValue:
                        continue
                    assert not any(math.isnan(float(value)) for value in values), (claim_id, name)


@pytest.mark.parametrize(
    ("changes", "names", "gone"),
    [
        ("PP-13 longer=300k", {"KV over weights at 300k", "KV at 300k", "KV over weights at 100 k"}, "200 k"),
        ("TS-05 few_load=0.5", {"mean wait, 4 seats 50 % full", "mean wait, 32 seats 90 % full"}, "80 %"),
        ("MOE-08 eight=9", {"slower over 9 racks"}, "8 racks"),
        ("RB-23 batch_8=12", {"batch 12", "batch 32"}, "batch 8"),
        ("KT-08 slow_bw=5GB/s,9GB/s", {"TLC 3.84 TB, …", "TLC 3.84 TB, 14 GB/s"}, "7 GB/s"),
    ],
)
def test_names_of_figures__have_the_inputs_that_they_are_of(changes: str, names: set[str], gone: str, cli: Cli) -> None:
    claim, change = changes.split()
    rows = cli.json(f"lecture {claim} --with {change}")["rows"]
    assert {row["figure"] for row in rows} >= names and not any(row["figure"].endswith(gone) for row in rows)
