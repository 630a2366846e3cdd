"""What every reader of an answer about scaling must know: extrapolation, and how errors were carried."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headway.scaling.answer import ScalingQuestion
from headway.scaling.experts import LING

CLARK = (
    "Clark's laws: one routed FFN in every second block, one expert per token, 130 B tokens for every size, so that large models "
    "were under-trained; printed digits bias the loss, the refits do not"
)
ABOUT_LING = (
    "Ling's law comes from one transcription that does not state the base of its logarithms: log10 of compute and natural log of "
    "granularity are taken, which give its published 'above 7'; leverage is of compute, so of size at equal tokens"
)
FAR = "no such model was fitted: read the spread over laws, not one law"


def remarks(request: ScalingQuestion, rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """The notes of an answer."""
    if request.mode == "experts":
        laws = {row["law"] for row in rows}
        return (*((CLARK,) if laws - {LING} else ()), *((ABOUT_LING,) if LING in laws else ()))
    notes = []
    out = [row["law"] for row in rows if row.get("in_range") is False]
    if out:
        notes.append(f"outside what was fitted: {', '.join(dict.fromkeys(out))}; {FAR}")
    if any(key.endswith("_lo") for row in rows for key in row):
        how = (
            f"correlated by {request.doubt.correlation:g}"
            if request.doubt.correlation
            else "taken as independent, an upper bound on the width"
        )
        notes.append(f"intervals: 90 % of {request.doubt.draws} draws of the coefficients with their standard errors, {how}: "
                    "correlations are not published, and a fit moves A with alpha and B with beta (--correlation 0.99)")  # fmt: skip
    if any(key.endswith("_bits") for key in request.points[0]) and request.mode in ("split", "given"):
        notes.append("formats of few bits: a soft law from one transcription, at odds with practice in fp8 and fp4")
    if request.mode == "life" and any(row.get("fresh_share") is not None for row in rows):
        notes.append("the optimum takes all tokens as new; fresh_share says what repeating takes from them")
    return tuple(notes)
