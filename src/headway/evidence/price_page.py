"""The part of docs/prices.md that is computed: errors by method, every model with its family left out, ladders."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from headway.errors import BadFile
from headway.evidence.prices import OURS, LadderTold, Score, Told
from headway.evidence.report import inserted
from headway.units import show

PART = "prices"  # name of the part between markers


def write(path: str, told: Sequence[Told], scored: Sequence[Score], kv: Sequence[LadderTold]) -> None:
    """Put the tables between the page's markers."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise BadFile(path, "cannot be read as UTF-8 text") from None
    Path(path).write_text(inserted(text, PART, page(told, scored, kv), path), encoding="utf-8")


def page(told: Sequence[Told], scored: Sequence[Score], kv: Sequence[LadderTold]) -> str:
    """The tables as Markdown."""
    parts = [_methods(scored), *(_models([one for one in told if one.size == size and one.method == OURS]) for size in ("active", "total"))]
    return "\n\n".join([*parts, _ladders(kv)])


def _methods(scored: Sequence[Score]) -> str:
    head = ("method", "parameters", "models", "rms ln error", "of the constant's", "median hi/lo", "held")
    lines = [
        (one.method, one.size, str(one.models), f"{one.rms:.2f}", f"{one.over_constant:.2f}", f"{one.width:.1f}", f"{one.coverage:.0%}")
        for one in scored
    ]
    return _table(head, lines)


def _models(told: Sequence[Told]) -> str:
    rows = sorted(told, key=lambda one: one.truth)
    head = (f"model, {rows[0].size} parameters", "family left out", "published", "lo", "middle", "hi", "held")
    lines = [
        (one.example.model, one.example.family, show(one.truth), show(one.lo), show(one.value), show(one.hi), "yes" if one.holds else "no")
        for one in rows
    ]
    return _table(head, lines)


def _ladders(kv: Sequence[LadderTold]) -> str:
    head = ("ladder", "model", "KV per token, fp8", "bf16", "lo", "middle", "hi", "hi/lo")
    lines = [
        (
            one.sold,
            one.model,
            *(show(value, "byte/token") for value in (one.fp8, one.bf16, one.lo, one.value, one.hi)),
            f"{one.hi / one.lo:.1f}",
        )
        for one in kv
    ]
    return _table(head, lines)


def _table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *lines))
