"""Figures of a claim of the lecture: what was stated beside what was recomputed and what holds today."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headway.core.errors import BadValue
from headway.core.listing import format_value
from headway.evidence.lecture.chapters import statement
from headway.report.pictures import dots
from headway.report.pictures.claim_curve import plain
from headway.report.pictures.frame import Panel, Picture, View, compose

KINDS = (("stated", "stated", "kv"), ("reference", "worked by hand", "network"), ("recomputed", "recomputed", "compute"),
         ("today", "with today's facts", "weights"))  # fmt: skip
MOST_PANELS = 4
Margins = tuple[list[str], list[str]]  # texts and labels of all panels
DIGITS = 9  # figures that differ by rounding stand in one place


def figures(row: Mapping[str, Any], view: View) -> Picture:
    """Picture of a claim's row: figures of one unit below each other; a figure that is alone, in each of the ways it is known."""
    parts = [part for part in row.get("parts") or () if any(_number(part.get(key)) for key, _, _ in KINDS)]
    if not parts:
        raise BadValue("--plot", row["id"], "a claim with figures; this one is in words")
    units: dict[str, list[Mapping[str, Any]]] = {}
    for part in parts:
        units.setdefault(part.get("unit") or row.get("unit") or "", []).append(part)
    margins = _margins(units)
    panels = []
    for place, (unit, mine) in enumerate(units.items()):
        together = [part for part in mine if _number(part.get("recomputed"))]
        if len(together) > 1:
            panels.append([_together(view, f"unit{place}", together, unit, margins)])
        else:
            panels += [[_alone(view, f"unit{place}part{number}", part, unit, margins)] for number, part in enumerate(mine)]
    words = statement(row["id"])
    together = any(len(mine) > 1 for mine in units.values())
    caption = "Each point is a figure by the laws with the claim's own inputs" + (
        "; in brackets what the lecture says." if together else "."
    )
    return compose(view, panels[:MOST_PANELS], title=f"{words[:1].upper()}{words[1:]}",
                   subtitle=f"{row['id']}, {row['verdict']}: {plain(row['claim'])}", caption=caption)  # fmt: skip


def _margins(units: Mapping[str, Sequence[Mapping[str, Any]]]) -> Margins:
    """Texts and labels of all panels."""
    texts = [_text(part, unit) for unit, parts in units.items() for part in parts if _number(part.get("recomputed"))]
    alone = any(len(parts) == 1 for parts in units.values())
    lone = [(parts[0], unit) for unit, parts in units.items() if len(parts) == 1]
    texts += [format_value(float(part[key]), unit) for part, unit in lone for key, _, _ in KINDS if _number(part.get(key))]
    return texts, [*(str(part["name"]) for parts in units.values() if len(parts) > 1 for part in parts),
                   *(words for _, words, _ in KINDS if alone)]  # fmt: skip


def _together(view: View, name: str, parts: Sequence[Mapping[str, Any]], unit: str, margins: Margins) -> Panel:
    """Figures of one unit, each with what the lecture says where it says anything."""
    points = [{"value": float(f"{part['recomputed']:.{DIGITS}g}")} for part in parts]
    texts = [_text(part, unit) for part in parts]
    return dots.panel(view, name, points, "value", [str(part["name"]) for part in parts], texts, unit=unit or "count", title="",
                      texts_beside=margins[0], labels_beside=margins[1])  # fmt: skip


def _text(part: Mapping[str, Any], unit: str) -> str:
    return format_value(part["recomputed"], unit) + _claimed(part, unit)


def _claimed(part: Mapping[str, Any], unit: str) -> str:
    return f" ({format_value(part['stated'], unit)})" if _number(part.get("stated")) else ""


def _alone(view: View, name: str, part: Mapping[str, Any], unit: str, margins: Margins) -> Panel:
    points = [{"value": float(part[key]), "kind": words} for key, words, _ in KINDS if _number(part.get(key))]
    texts = [format_value(point["value"], unit) for point in points]
    return dots.panel(view, name, points, "value", [point["kind"] for point in points], texts, unit=unit or "count",
                      title="", heading=part["name"], texts_beside=margins[0], labels_beside=margins[1])  # fmt: skip


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
