"""Columns of claims and of predicted benchmark rows, each with unit and description."""

from __future__ import annotations

from headway.core.columns import Column, interval_columns

_CLAIMS = {
    "id": Column("", "the claim's number in its group"),
    "group": Column("", "group of claims, such as RB for roofline and batch"),
    "claim": Column("", "what is claimed, in the project's words"),
    "stated": Column("", "the figure that was stated, in the row's unit"),
    "recomputed": Column("", "the same figure by the project's laws from the claim's own inputs"),
    "unit": Column("", "unit of stated and recomputed"),
    "tolerance": Column("", "exact 1e-9, tight 1 %, round 25 %, oom a factor of 3 either way, a percentage, or a range"),
    "verdict": Column("", "agrees, rounding, differs, not computable or not yet computed; computed, never stored"),
    "cause": Column("", "why a claim differs or is loose: an input off, an ambiguous convention, a slip, rounding"),
    "note": Column("", "what a reader of the claim should know"),
    "today": Column("", "the same figure with the catalogue's current facts"),
    "reference": Column("", "the same figure worked out by hand, where no figure was stated or to check the laws"),
    "stated_text": Column("", "what was stated, in words"),
    "source": Column("", "where the claim was made"),
    "parts": Column("", "every figure of the claim: name, unit, stated, reference, recomputed, today, verdict"),
    "inputs": Column("", "what the claim is recomputed with: name, value, unit, source, date, and what the catalogue says today"),
    "chapter": Column("", "chapter of the lecture; + for cross-checks from other sources"),
    "says": Column("", "the claim in plain words"),
    "topic": Column("", "what summaries of the lecture dispute"),
    "versions": Column("", "who says what about it"),
    "right": Column("", "the version that the lecture and the laws bear out"),
    "reason": Column("", "why, in a sentence"),
    "claims": Column("", "claims that show it, each with its verdict"),
}
_BENCHMARKS = (
    interval_columns("ttft_ms", "ms", "time to first token, as the row's benchmark loads the server", ("floor", "lo", "hi"))
    | interval_columns("tpot_ms", "ms", "time per output token", ("floor", "lo", "hi"))
    | interval_columns(
        "output_tok_s_total", "token/s", "generated tokens per second of all chips; of a prefill, prompt tokens", ("lo", "hi")
    )
    | interval_columns("tok_s_per_chip", "token/s", "the same per chip", ("lo", "hi"))
    | {"flags": Column("", "what was inferred where a row is silent, joined by '; '")}
)
COLUMNS: dict[str, Column] = _CLAIMS | _BENCHMARKS
IDENTITY = ("id",)  # columns that identify a row
