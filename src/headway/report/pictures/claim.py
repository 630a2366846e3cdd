"""Figures of a claim of the lecture: what was stated beside what was recomputed and what holds today."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headway.core.errors import BadValue
from headway.core.listing import format_value
from headway.report.pictures import dots
from headway.report.pictures.frame import Picture, View, compose

KINDS = (("stated", "stated", "kv"), ("reference", "worked by hand", "network"), ("recomputed", "recomputed", "compute"),
         ("today", "with today's facts", "weights"))  # fmt: skip
MOST_PARTS = 4


def figures(row: Mapping[str, Any], view: View) -> Picture:
    """Picture of a claim's row, a panel for each of its figures."""
    parts = [part for part in row.get("parts") or () if any(_number(part.get(key)) for key, _, _ in KINDS)]
    panels = []
    for number, part in enumerate(parts[:MOST_PARTS]):
        unit = part.get("unit") or row.get("unit") or ""
        points = [{"value": float(part[key]), "kind": words} for key, words, _ in KINDS if _number(part.get(key))]
        texts = [format_value(point["value"], unit) for point in points]
        panels.append([dots.panel(view, f"part{number}", points, "value", [point["kind"] for point in points], texts, unit=unit or "count",
                                  title="", heading=part["name"])])  # fmt: skip
    if not panels:
        raise BadValue("--plot", row["id"], "a claim with figures; this one is in words")
    title = f"{row['id']}: {row['verdict']}"
    caption = "Each row is the same figure: as the lecture says it, by hand, by the laws with the claim's inputs, and with today's facts."
    return compose(view, panels, title=title, subtitle=str(row.get("claim") or row.get("title") or ""), caption=caption)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
