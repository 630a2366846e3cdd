"""The picture of `headway law`: its values along the argument that was given the most of them, a curve for each value of the others."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from headway.core.errors import BadValue
from headway.core.listing import heading
from headway.report import law as words
from headway.report.pictures import frame, grid, palette, plot, scale

if TYPE_CHECKING:
    from headway.core.trace import Law
    from headway.report.pictures.frame import Picture, View

SPREAD = 4.0  # factor that values of equal ratios span on a logarithmic axis
COUNTS = ("", "token")  # units of what is counted
NEARBY = 41  # points of the curve around a single value
EQUAL = 0.02  # share by which their ratios may differ


def along(law: Law, call: Any, rows: Sequence[dict[str, Any]], near: Callable[[str, Sequence[float]], Any], view: View) -> Picture:
    """The law's values; a single one is a point of the curve along its first argument, whose rows `near` makes."""
    points = [row for row in rows if row["result"] is not None]
    numeric = [key for key in call.axes if all(type(row[key]) in (int, float) for row in points)]
    if not points or not numeric:
        raise BadValue("--plot", law.name, "finite values at an argument that is a number")
    varying = [key for key in call.axes if len({str(row[key]) for row in points}) > 1]
    x = max(numeric, key=lambda key: len({row[key] for row in points}))  # the first of those with as many
    lines = [] if call.paired else [key for key in varying if key != x]
    curves: dict[str, list[dict[str, Any]]] = {}
    for row in points:
        curves.setdefault(_values(call, row, lines), []).append(row)
    names = list(curves)[: grid.MOST_CURVES]
    first, unit, unit_x = sorted(curves[names[0]], key=lambda row: row[x]), call.unit(), call.unit(x)
    parts: list[plot.Part] = []
    for place, name in enumerate(names):
        line = [{"x": float(row[x]), "y": float(row["result"])} for row in sorted(curves[name], key=lambda row: row[x])]
        look = {"meaning": palette.MEANINGS[place] if len(names) > 1 else "compute", "dash": plot.DASHES[place]}
        parts.append(plot.Series(rows=line, text=name, dots=24 if len(line) <= grid.MOST_DOTTED else 0, data=f"curve{place}", **look))
    around = _around(points[0], x, near, unit_x in COUNTS and points[0][x] == round(points[0][x])) if len(points) == 1 else []
    if len(points) == 1:
        text = _text(first[0]["result"], unit)
        parts = [plot.Series(rows=around, meaning="compute", data="around"),
                 plot.Point(x=float(first[0][x]), y=float(first[0]["result"]), text=text, data="curve0")]  # fmt: skip
    visible = [row for name in names for row in curves[name]]
    places = [float(row[x]) for row in visible] + [row["x"] for row in around]
    is_log = _is_geometric(sorted(set(places)))
    across = scale.AxisScale(_capital(_argument(x, unit_x)) + " (log)" * is_log, places, unit_x, log=is_log, most=6, room=0.07,
                             base=2 if is_log and x in grid.BINARY else 10)  # fmt: skip
    up = scale.AxisScale("", [*(float(row["result"]) for row in visible), *(row["y"] for row in around)], unit)
    kind = " in tokens" * (unit == "token") + " (log)" * up.axis().log  # ticks have other units
    drawing = plot.Plot(name="law", x=across, y=up, parts=parts, height=300, is_fitting=True, heading=_capital(_name(law)) + kind)
    less = f"; the first {len(names)} of {len(curves)} curves" if len(curves) > len(names) else ""
    fixed = _values(call, first[0], [key for key in call.axes if key not in (*varying, x)])
    subtitle = f"{fixed or _name(law)}{less}"
    title = _finding(law, call, first, x, names[0])
    return frame.compose(view, [[drawing]], title=title, subtitle=subtitle, caption=words.sentence(law))


def _around(row: dict[str, Any], x: str, near: Callable[[str, Sequence[float]], Any], is_count: bool) -> list[dict[str, float]]:
    """The law where this argument is up to SPREAD times smaller or larger, at whole counts, as far as it is defined there."""
    if row[x] <= 0:
        return []
    values = np.geomspace(row[x] / SPREAD, row[x] * SPREAD, NEARBY).tolist()
    values = sorted({float(round(value)) for value in values} - {0.0}) if is_count else values
    line = [{"x": float(entry[x]), "y": float(entry["result"])} for entry in near(x, values) if entry["result"] is not None]
    return [entry for entry in line if math.isfinite(entry["y"])]


def _name(law: Law) -> str:
    """Its name in words, without the unit at its end."""
    return _argument(law.name, "s")


SPELLED = {"bw": "bandwidth", "mem": "memory", "flops": "FLOP/s", "dim": "dimension"}  # what names of arguments shorten
TAILS = {"byte": ("_bytes", "_byte"), "s": ("_s",)}  # of names, which the unit of a value says too


def _argument(key: str, unit: str) -> str:
    """A name in words, without the unit at its end."""
    tail = next((tail for tail in TAILS.get(unit, ()) if key.endswith(tail)), "")
    return " ".join(SPELLED.get(word, word) for word in heading(key.removesuffix(tail)).split())


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _text(value: Any, unit: str) -> str:
    """A value as on an axis; words and truths as they are."""
    if isinstance(value, bool) or value is None:
        return words.text(value, unit)
    return scale.tick_text(value, unit) + " tokens" * (unit == "token")


def _values(call: Any, row: dict[str, Any], keys: Sequence[str]) -> str:
    """Arguments of a row in words."""
    return ", ".join(
        f"{_argument(key, call.unit(key))} {_text(row[key], call.unit(key)) if type(row[key]) in (int, float) else row[key]}"
        for key in keys
    )


def _finding(law: Law, call: Any, line: Sequence[dict[str, Any]], x: str, name: str) -> str:
    """Title: from what to what the law goes along its argument."""
    name, (first, last), argument = name and f", at {name}", (line[0], line[-1]), _argument(x, call.unit(x))
    (start, end), (low, high) = (
        [_text(row[key], unit) for row in (first, last)] for key, unit in (("result", call.unit()), (x, call.unit(x)))
    )
    law_name = _capital(_name(law))
    if len(line) == 1:
        return f"{law_name} is {start} at {argument} {low}{name}"
    if first["result"] == last["result"]:
        return f"{law_name} is {start} whether {argument} is {low} or {high}{name}"
    way = "rises" if last["result"] > first["result"] else "falls"
    return f"{law_name} {way} from {start} to {end} as {argument} goes from {low} to {high}{name}"


def _is_geometric(values: Sequence[float]) -> bool:
    """Whether values have equal ratios, the last aside, where a range ends.

    >>> _is_geometric([1.0, 2.0, 4.0, 7.0]), _is_geometric([1.0, 2.0, 3.0]), _is_geometric([1.0, 100.0])
    (True, False, True)
    """
    if len(values) < 2 or values[0] <= 0 or values[-1] < SPREAD * values[0]:
        return False
    ratios = [later / value for value, later in pairwise(values)]
    return len(values) == 2 or all(math.isclose(ratio, ratios[0], rel_tol=EQUAL) for ratio in ratios[:-1] or ratios)
