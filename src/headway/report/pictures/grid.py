"""Columns of a table against one of its inputs: a curve for each combination of the other inputs, its 90 % interval and its floor."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

from headway.core import columns
from headway.core.errors import BadValue
from headway.core.listing import cell, ends, heading
from headway.report.pictures.frame import Picture, View, compose
from headway.report.pictures.palette import MEANINGS
from headway.report.pictures.plot import DASHES, Part, Plot, Series
from headway.report.pictures.scale import AxisScale

MOST_POINTS = 5000
MOST_CURVES = 5  # that the palette tells apart
BINARY = ("batch", "context", "prompt", "output", "seq", "global_batch", "tp", "ep", "dp", "pp", "chips", "replicas")  # powers of two
MOST_DOTTED = 40  # points of a line that are drawn as dots
Rows = Sequence[Mapping[str, Any]]


def doc(key: str) -> str:
    """A column in words, with a capital."""
    known = columns.declared().get(key)
    text = known.doc.partition(";")[0].partition(" (")[0] if known and known.doc else heading(key)
    text = text.replace("`", "").removesuffix(", middle") if len(text) <= 60 else heading(key)
    text = f"{text} ($ per million tokens)" if known and known.unit == "USD/Mtok" and "token" not in text else text
    return text[:1].upper() + text[1:]


def picture(rows: Rows, x: str, ys: Sequence[str], series: Sequence[str], view: View, *, title: str, about: str,
            caption: str = "") -> Picture:  # fmt: skip
    """Picture with a panel per column of `ys` against `x`."""
    rows = [row for row in rows if row.get(x) is not None]
    fitting = [row for row in rows if row.get("fits", True)] or rows
    names = list(dict.fromkeys(curve_name(row, series) for row in fitting))
    shortlist = names[:MOST_CURVES]
    points = [row for row in fitting if curve_name(row, series) in shortlist][:MOST_POINTS]
    ys = [key for key in ys if any(row.get(key) is not None for row in points)]
    if not points or not ys:
        raise BadValue("--plot", x, "rows with numbers to draw")
    curves = {name: sorted((row for row in points if curve_name(row, series) == name), key=lambda row: row[x]) for name in shortlist}
    plots = [_plot(curves, points, x, key, number, min(len(ys), 2)) for number, key in enumerate(ys)]
    lacks = [f"{len(rows) - len(fitting)} points that do not fit are left out"] if len(fitting) < len(rows) else []
    lacks += [f"the first {len(shortlist)} of {len(names)} curves"] if len(names) > len(shortlist) else []
    parts = ["Each panel shows one quantity along the same input" if len(ys) > 1 else "Each line is one case along the input"]
    parts += ["the band is the 90 % interval"] if any(row.get(ends(key)[1]) is not None for key in ys for row in points) else []
    parts += ["the dotted line is the floor"] if any(row.get(ends(key)[0]) is not None for key in ys for row in points) else []
    panels = [plots[place : place + 2] for place in range(0, len(plots), 2)]
    return compose(view, panels, title=title, subtitle="; ".join([about, *lacks]), caption=caption or ", ".join(parts) + ".")


def of_columns(rows: Rows, x: str, y: str, view: View) -> Picture:
    """Picture of one column against another: a dot for each row that fits and has both numbers."""
    points = [row for row in rows if _is_number(row.get(x)) and _is_number(row.get(y)) and row.get("fits", True)]
    if not points:
        raise BadValue("--picture", f"{x},{y}", "two columns that hold numbers in the same rows")
    across = doc(x) if doc(x)[1:2].isupper() else doc(x)[:1].lower() + doc(x)[1:]
    most = f", the first {MOST_POINTS:,} drawn" if len(points) > MOST_POINTS else ""
    plot = _plot({"": points[:MOST_POINTS]}, points[:MOST_POINTS], x, y, 0, 1, is_joined=False)
    about = f"against {across}; {len(points):,} of {len(rows):,} rows{most}"
    return compose(view, [[plot]], title=doc(y), subtitle=about, caption="Each dot is a row.")


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def curve_name(row: Mapping[str, Any], series: Sequence[str]) -> str:
    """What tells a curve from the others."""
    return ", ".join(str(row[key]) if key in ("model", "system", "line", "law") else f"{heading(key)} {cell(key, row)}" for key in series)


def _plot(curves: Mapping[str, Rows], rows: Rows, x: str, key: str, number: int, panels: int, is_joined: bool = True) -> Plot:
    floor, low, high = (end if is_joined and end in columns.declared() else "" for end in ends(key))
    keys = [key, *filter(None, (floor, low, high))]
    across = [row[x] for row in rows]
    is_log = min(across) > 0 and max(across) / min(across) >= 8
    parts: list[Part] = []
    for place, (name, curve) in enumerate(curves.items()):
        mine = [{"x": row[x], **{column: row.get(column) for column in keys}} for row in curve if row.get(key) is not None]
        text, meaning = (name, MEANINGS[place]) if len(curves) > 1 else ("", "compute")
        common = {"rows": mine, "meaning": meaning, "data": f"curve{place}"}
        parts += [Series(**common, width=0, band=(low, high))] if low else []
        parts += [Series(**common, y=floor, width=1.2, dash=(1, 3))] if floor else []
        dots = 22 if len(mine) <= MOST_DOTTED or not is_joined else 0
        parts.append(Series(**common, y=key, text=text, dash=DASHES[place], dots=dots, width=2 * is_joined))
    return Plot(
        name=f"grid{number}", parts=parts, heading=doc(key), columns=panels, height=260,
        x=AxisScale(doc(x), across, columns.unit(x), log=is_log, base=2 if x in BINARY and is_log else 10, most=6, room=0.02),
        y=AxisScale("", [row.get(column) for row in rows for column in keys], columns.unit(key)),
    )  # fmt: skip


def finding(rows: Rows, x: str, key: str, subject: str) -> str:
    """Title: from what to what a column goes as the input does."""
    mine = [row for row in rows if row.get(key) is not None and row.get("fits", True)]
    if len(mine) < 2:
        return subject
    low, high = min(mine, key=lambda row: row[x]), max(mine, key=lambda row: row[x])
    return f"{doc(key)}: {cell(key, low)} at {heading(x)} {cell(x, low)}, {cell(key, high)} at {cell(x, high)}"
