"""Generated parts of pages, text between markers: the markers, sections and tables that all share, and the part of docs/prices.md."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from headway.core import user_file
from headway.core.errors import BadFile
from headway.core.units import show
from headway.economics.inversion.calibration import OURS, SIZES, PriceScore, SizeVerdict
from headway.economics.inversion.ladders import FP8_OF_BF16, LadderVerdict
from headway.economics.inversion.list_prices import ListVerdict


def section(title: str, head: Sequence[str], lines: Iterable[Sequence[str]], about: str = "") -> str:
    """A section of a page: its title, what to know, a table."""
    return "\n\n".join(part for part in (f"### {title}", about, table(head, lines)) if part)


def inserted(document: str, name: str, text: str, path: str = "") -> str:
    """`document` with `text` between the markers called `name`."""
    start, end = (f"<!-- {name}: {what} -->" for what in ("generated, do not edit", "end"))
    head, marker, rest = document.partition(start)
    _, end_marker, tail = rest.partition(end)
    if not marker or not end_marker:
        raise BadFile(path or "the page", f"has no part between {start!r} and {end!r}")
    return f"{head}{start}\n\n{text.strip()}\n\n{end}{tail}"


def target_table(checks: Iterable[tuple[str, str, str, bool]], name: str = "found") -> str:
    """Table of targets; `name` heads the column of what was measured."""
    return table(("what", "asked", name, "reached"), [(*texts, "yes" if met else "**no**") for *texts, met in checks])


def table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows)


# -- prices -------------------------------------------------------------------------------------------------------------------------


PART = "prices"  # name of the markers around the tables


def write_prices(
    path: str, estimates: Sequence[SizeVerdict], scored: Sequence[PriceScore], kv: Sequence[LadderVerdict], lists: Sequence[ListVerdict]
) -> None:
    """Write the scores, what is missed, and the estimates of sizes and KV between the markers of the page at `path` (docs/prices.md)."""
    methods = [
        (row.method, row.size, str(row.models), f"{row.rms:.2f}", f"{row.over_constant:.2f}", f"{row.width:.1f}", f"{row.coverage:.0%}")
        for row in scored
    ]
    parts = [table(("method", "parameters", "models", "rms ln error", "of the constant's", "median hi/lo", "held"), methods)]
    outside = {
        f"{size} parameters": [row.example.model for row in estimates if row.size == size and row.method == OURS and not row.holds]
        for size in SIZES
    }
    outside["KV"] = [row.ladder.sold_as for row in kv if not row.holds]
    outside["list prices"] = [row.example.model for row in lists if not row.holds]
    parts.append("\n".join(f"* Not held, {what}: {', '.join(models) or 'none'}." for what, models in outside.items()))
    for size in SIZES:
        rows = sorted((row for row in estimates if row.size == size and row.method == OURS), key=lambda estimate: estimate.truth)
        lines = [
            (row.example.model, row.example.family, *map(show, (row.truth, row.lo, row.value, row.hi)), "yes" if row.holds else "no")
            for row in rows
        ]
        parts.append(table((f"model, {size} parameters", "family left out", "published", "lo", "middle", "hi", "held"), lines))
    ladders = [
        (
            row.ladder.sold_as, row.ladder.family,
            *(show(value, "byte/token") for value in (row.ladder.kv, row.ladder.kv / FP8_OF_BF16, row.lo, row.value, row.hi)),
            "yes" if row.holds else "no",
        )
        for row in kv
    ]  # fmt: skip
    parts.append(table(("ladder", "family left out", "KV per token, fp8", "bf16", "lo", "middle", "hi", "held"), ladders))
    text = user_file.text_of(path, user_file.PAGE)
    Path(path).write_text(inserted(text, PART, "\n\n".join(parts), path), encoding="utf-8")
