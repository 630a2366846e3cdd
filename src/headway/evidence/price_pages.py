"""The generated part of docs/prices.md (text between markers)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from headway.core import user_file
from headway.core.units import show
from headway.economics.inversion.calibration import OURS, LadderVerdict, PriceScore, SizeVerdict
from headway.evidence.pages import inserted

PART = "prices"  # name of the markers around the tables


def write(path: str, estimates: Sequence[SizeVerdict], scored: Sequence[PriceScore], kv: Sequence[LadderVerdict]) -> None:
    """Write the tables between the markers of the page at `path`."""
    text = user_file.text_of(path, user_file.PAGE)
    Path(path).write_text(inserted(text, PART, price_page(estimates, scored, kv), path), encoding="utf-8")


def price_page(estimates: Sequence[SizeVerdict], scored: Sequence[PriceScore], kv: Sequence[LadderVerdict]) -> str:
    """Markdown tables of docs/prices.md: size estimates, price scores and KV estimates."""
    parts = [
        _methods(scored),
        *(_price_models([row for row in estimates if row.size == size and row.method == OURS]) for size in ("active", "total")),
    ]
    return "\n\n".join([*parts, _ladders(kv)])


def _methods(scored: Sequence[PriceScore]) -> str:
    head = ("method", "parameters", "models", "rms ln error", "of the constant's", "median hi/lo", "held")
    lines = [
        (row.method, row.size, str(row.models), f"{row.rms:.2f}", f"{row.over_constant:.2f}", f"{row.width:.1f}", f"{row.coverage:.0%}")
        for row in scored
    ]
    return _table(head, lines)


def _price_models(estimates: Sequence[SizeVerdict]) -> str:
    rows = sorted(estimates, key=lambda estimate: estimate.truth)
    head = (f"model, {rows[0].size} parameters", "family left out", "published", "lo", "middle", "hi", "held")
    lines = [
        (row.example.model, row.example.family, show(row.truth), show(row.lo), show(row.value), show(row.hi), "yes" if row.holds else "no")
        for row in rows
    ]
    return _table(head, lines)


def _ladders(kv: Sequence[LadderVerdict]) -> str:
    head = ("ladder", "model", "KV per token, fp8", "bf16", "lo", "middle", "hi", "hi/lo")
    lines = [
        (
            ladder.sold,
            ladder.model,
            *(show(value, "byte/token") for value in (ladder.fp8, ladder.bf16, ladder.lo, ladder.value, ladder.hi)),
            f"{ladder.hi / ladder.lo:.1f}",
        )
        for ladder in kv
    ]
    return _table(head, lines)


def _table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *lines))
