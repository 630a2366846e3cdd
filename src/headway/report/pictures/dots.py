"""Rows below each other with a point for a number and a rule for its interval: laws, machines, models beside each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from headway.core.errors import BadValue
from headway.report.pictures import marks
from headway.report.pictures.frame import EDGE, Panel, View, inner
from headway.report.pictures.lettering import LEADING, SIZE, shorten, text_width
from headway.report.pictures.scale import PictureAxis, axis, roomy

PITCH = 30
References = Sequence[tuple[float, str]]  # values with their words
MOST_ROWS = 24


def panel(view: View, name: str, rows: Sequence[Mapping[str, Any]], key: str, labels: Sequence[str], texts: Sequence[str], *, unit: str,
          title: str, heading: str = "", meaning: str = "compute", columns: int = 1,
          references: References = (), texts_beside: Sequence[str] = (), labels_beside: Sequence[str] = ()) -> Panel:  # fmt: skip
    """Panel of one number of each row, its interval where `key_lo` and `key_hi` are known, and lines with words at `references`.

    `texts_beside` and `labels_beside` are those of the picture's other panels, so that all have the same margins.
    """
    entries = _entries(rows, labels, texts, key)
    theme, columns = view.colours, 1 if view.is_narrow else columns
    margin, reserve = _room(view, entries, labels_beside, texts_beside, columns)
    width = inner(view, margin, reserve, columns)
    ends = [(row.get(f"{key}_lo"), row.get(f"{key}_hi")) for row, _, _ in entries]
    values = [*(row[key] for row, _, _ in entries), *(end for pair in ends for end in pair), *(at for at, _ in references)]
    x = _axis(title, values, unit, width, margin)
    pitch = PITCH + SIZE * LEADING * view.is_narrow
    marked, points, rules, words = [x.across(at, width) for at, _ in references], [], [], []
    for place, ((row, label, text), (low, high)) in enumerate(zip(entries, ends, strict=True)):
        middle = place * pitch + pitch / 2 + (SIZE * LEADING / 2 if view.is_narrow else 0)
        at = x.across(row[key], width)
        points.append({"x": at, "y": middle, "color": theme.line(meaning)})
        if low is not None and high is not None:
            rules.append({"x": x.across(low, width), "x2": x.across(high, width), "y": middle, "y2": middle, "color": theme.line(meaning)})
        spans = [at, *(x.across(end, width) for end in (low, high) if end is not None)]
        beside = _beside(spans, text_width(text), marked)
        words.append({"x": beside, "y": middle, "text": text, "color": theme.ink})
        name_text = shorten(label, margin - 8 if margin else width + reserve)
        spot = (-8 - text_width(name_text), middle) if margin else (0.0, middle - SIZE * LEADING)
        words.append({"x": spot[0], "y": spot[1], "text": name_text, "color": theme.ink})
    height = len(entries) * pitch
    lines = [] if view.is_narrow else [_upright(at, height, theme.muted) for at in marked]
    words += [
        {"x": line["x"] - text_width(text) / 2, "y": -6.0, "text": text, "color": theme.muted}
        for line, (_, text) in zip(lines, references, strict=False)
    ]
    data = {f"{name}_points": points, f"{name}_rules": rules, f"{name}_words": words, f"{name}_reference": lines}
    layers = [marks.pixel_rules(f"{name}_reference", dash=(2, 3)), marks.pixel_rules(f"{name}_rules", width=2),
              marks.pixel_points(f"{name}_points", size=70), marks.labels(f"{name}_words")]  # fmt: skip
    return Panel(width=width, height=height, layers=layers, data=data, x=x, left_margin=margin, right_margin=reserve,
                 heading=heading)  # fmt: skip


def _room(view: View, entries: Sequence[Any], labels: Sequence[str], texts: Sequence[str], columns: int) -> tuple[float, float]:
    """Px for labels on the left, none in a narrow view, and for texts on the right."""
    widest = max(text_width(label) for label in (*labels, *(label for _, label, _ in entries))) + 10
    margin = 0.0 if view.is_narrow else min(widest, view.width * 0.3 / columns)
    return margin, max(text_width(text) for text in (*texts, *(text for _, _, text in entries))) + 16


def _upright(at: float, height: float, color: str) -> dict[str, Any]:
    return {"x": at, "x2": at, "y": 2.0, "y2": height, "color": color}


def _axis(title: str, values: Sequence[float | None], unit: str, width: float, margin: float) -> PictureAxis:
    """The axis, without ticks whose texts would leave the frame."""
    x = roomy(width, lambda most: axis(title, values, unit, most=most), 5)
    return replace(x, ticks=tuple((at, text) for at, text in x.ticks if x.across(at, width) - text_width(text) / 2 > -margin - EDGE))


def _beside(spans: Sequence[float], wide: float, rules: Sequence[float]) -> float:
    """Where a text begins: after the point and its interval, or before them where a rule would strike it through."""
    after = max(spans) + 9
    return min(spans) - 9 - wide if any(after - 4 < rule < after + wide + 4 for rule in rules) else after


def _entries(rows: Any, labels: Any, texts: Any, key: str) -> list[tuple[Mapping[str, Any], str, str]]:
    """Rows that have the number, with their labels and texts."""
    entries = [entry for entry in zip(rows, labels, texts, strict=True) if entry[0].get(key) is not None][:MOST_ROWS]
    if not entries:
        raise BadValue("--plot", f"no {key}", "rows with numbers to draw")
    return entries
