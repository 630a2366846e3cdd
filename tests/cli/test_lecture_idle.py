"""`lecture ID --with NAME=VALUE`: every declared input of every claim moves a figure, or is refused with the names of those that do."""

from __future__ import annotations

import math

import numpy as np

from headway.core.quantity import user_input
from headway.evidence.claims.claim import Claim, claims
from headway.evidence.claims.rows import computable, recompute
from support.command import Cli
from support.each import for_each

FACTORS = (2.0, 0.5, 1.1)


def moved(claim: Claim, name: str, value: float) -> bool | None:
    """Whether a value of an input moves a figure, by the recomputation itself; None where it has no figure."""
    try:
        with np.errstate(all="ignore"):
            parts = recompute(claim, {name: user_input(value, name, claim.inputs[name].unit)}) or {}
    except (ArithmeticError, TypeError, ValueError):
        return None
    before = recompute(claim) or {}
    return any(not math.isclose(float(parts[key]), float(before[key]), rel_tol=1e-9) for key in before)


@for_each([claims()[name] for name in computable() if claims()[name].inputs], name=lambda claim: claim.id)
def test_inputs__each_moves_a_figure_or_is_refused(claim: Claim, cli: Cli) -> None:
    """Each declared input at twice its value, or at 2 where it is nothing: 1008 of them, of which more than a hundred move nothing."""
    for name, present in claim.inputs.items():
        value = 2 * float(present) if present else 2.0
        if not math.isfinite(value) or (claim.id, name) == ("CR-07", "flips"):
            continue
        answer = cli("lecture", claim.id, "--with", f"{name}={value!r}", "-o", "json")
        shown = [row["over_lecture"] for row in answer.rows] if answer.status == 0 else []
        if moved(claim, name, value) is False and answer.status == 0:
            assert any(note.startswith(f"no effect: {name}=") for note in answer.notes), (name, answer.out[:300])
            assert any(moved(claim, name, value * factor) for factor in FACTORS), name
        elif answer.status == 0:
            assert any(ratio is None or not math.isclose(ratio, 1, rel_tol=1e-12) for ratio in shown), name
        else:
            assert (answer.out, answer.err.count("\n")) == ("", 1) and "--with" in answer.err, answer
            if "moves none" in answer.err:
                able = answer.err.partition(f"a figure of {claim.id}: ")[2].partition(";")[0].split(" and ")[0].split(", ")
                assert name not in able
                assert all(any(moved(claim, other, float(claim.inputs[other] or 1) * factor) for factor in FACTORS) for other in able)


def test_value__that_is_the_lecture_s_own_is_legal(cli: Cli) -> None:
    assert cli("lecture PP-02 --with active=8").status == 0
    refused = cli("lecture PP-02 --with active=8 layers=2")
    assert refused.status == 2 and "layers=2" in refused.err and "up_bw" in refused.err


def test_name__given_twice_is_refused(cli: Cli) -> None:
    for words in ("total=1T total=2T", "total=1T --with total=1T", "model=llama-3.1-8b model=llama-3.1-8b"):
        answer = cli(f"lecture RB-10 --with {words}")
        assert answer.status == 2 and "once" in answer.err
