"""A claim's figures along one of its inputs, with the lecture's own value: the picture of `lecture ID --with NAME=RANGE`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from headway.core.errors import BadValue
from headway.core.listing import format_value
from headway.evidence.claims.claim import Claim
from headway.evidence.lecture.chapters import statement
from headway.evidence.lecture.inputs import input_words
from headway.report.pictures import marks
from headway.report.pictures.frame import Panel, Picture, View, compose, inner, margins
from headway.report.pictures.palette import MEANINGS
from headway.report.pictures.scale import axis, roomy

MOST_LINES = 4
ROUNDING = 1e-9  # relative: figures that differ by less are the same
SHARE = 0.42  # height of the panel over its width
LEAST_HEIGHT, MOST_HEIGHT = 190, 300


def claim_curve(claim: Claim, rows: Sequence[Mapping[str, Any]], view: View) -> Picture:
    """A line for each figure that the input changes, of the unit of the first; others stand in the table."""
    along = _input(claim, rows)
    names = _figures(rows, along)
    unit = next(row["unit"] for row in rows if row["figure"] == names[0])
    names = [name for name in names if next(row["unit"] for row in rows if row["figure"] == name) == unit][:MOST_LINES]
    points = _wide(rows, along, names)
    lecture_value = float(claim.inputs[along])
    lecture = {name: next(row["lecture_inputs"] for row in rows if row["figure"] == name) for name in names}
    x_unit, words = claim.inputs[along].unit, input_words(claim, along)
    values = [point[_field(place)] for point in points for place in range(len(names))]
    y = axis("", [*values, *lecture.values()], unit, fixed_ends=view.ends("y"))
    left_margin, right_margin = margins(view, y)
    width = inner(view, left_margin, right_margin)
    places = [point["along"] for point in points]
    x = roomy(width, lambda most: axis(words[:1].upper() + words[1:], places, x_unit, fixed_ends=view.ends("x"), room=0.0, most=most), 7)
    keys = [(name, MEANINGS[place]) for place, name in enumerate(names)] if len(names) > 1 else []
    layers = [marks.uprights("lecture_input", x, view.colours.muted)]
    layers += [
        marks.line("rows", x, "along", y, _field(place), view.colours.line(MEANINGS[place]), width=2.5) for place in range(len(names))
    ]
    layers += [marks.points("lecture", x, "along", y, "value", view.colours.ink)]
    data = {
        "rows": points,
        "lecture_input": [{"at": lecture_value}],
        "lecture": [{"along": lecture_value, "value": lecture[name]} for name in names],
    }
    height = min(max(width * SHARE, LEAST_HEIGHT), MOST_HEIGHT)
    panel = Panel(
        width=width, height=height, layers=layers, data=data, x=x, y=y, left_margin=left_margin, right_margin=right_margin, keys=keys
    )
    says = statement(claim.id)
    caption = f"Dots: the lecture's own inputs ({words} {format_value(lecture_value, x_unit)})."
    figure = "" if len(names) > 1 or any(map(str.isdigit, names[0])) else f": {names[0]}"  # a name with numbers is of the lecture's inputs
    subtitle = f"{claim.id}{figure} against {words}; {plain(claim.claim)}"
    return compose(view, [[panel]], title=says[:1].upper() + says[1:], subtitle=subtitle, caption=caption)


def plain(text: str) -> str:
    """A claim's text without the signs that few fonts have."""
    return text.replace("⇒", "→").replace("⇔", "↔").replace("⅓", "1/3")


def _field(place: int) -> str:
    return f"figure{place}"


def _input(claim: Claim, rows: Sequence[Mapping[str, Any]]) -> str:
    """The input that varies most, of those that are numbers."""
    counts = {
        name: len({row[name] for row in rows}) for name in claim.inputs if all(isinstance(row.get(name), int | float) for row in rows)
    }
    along = max(counts, key=lambda name: counts[name], default="")
    if not along or counts[along] < 2:
        raise BadValue("--plot", claim.id, "an input with a range, such as --with total=64B..4T*1.2")
    return along


def _figures(rows: Sequence[Mapping[str, Any]], along: str) -> list[str]:
    """Figures with more than one value, in order."""
    values: dict[str, set[float]] = {}
    for row in rows:
        if row["value"] is not None and math.isfinite(row["value"]):
            values.setdefault(row["figure"], set()).add(row["value"])
    names = [name for name, distinct in values.items() if max(distinct) - min(distinct) > ROUNDING * max(map(abs, distinct))]
    if not names:
        raise BadValue("--plot", along, "an input that changes a figure of this claim")
    return names


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _wide(rows: Sequence[Mapping[str, Any]], along: str, names: Sequence[str]) -> list[dict[str, Any]]:
    """A row for each value of the input, a field for each figure."""
    points: dict[float, dict[str, Any]] = {}
    for row in rows:
        if row["figure"] in names:
            points.setdefault(row[along], {"along": row[along]})[_field(names.index(row["figure"]))] = _finite(row["value"])
    return sorted(points.values(), key=lambda point: point["along"])
