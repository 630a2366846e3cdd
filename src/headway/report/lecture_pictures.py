"""Pictures of the lecture's claims: figures beside each other, or along an input; the board's cost of a token against context."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headway.core.errors import BadValue
from headway.core.listing import format_value
from headway.evidence.claims.claim import Claim, claims
from headway.evidence.claims.rows import range_text
from headway.evidence.lecture.chapters import statement
from headway.evidence.lecture.inputs import input_words
from headway.laws.roofline.batch_step import context_multiple, covered_context
from headway.report.pictures import dots, frame, palette, plot, scale
from headway.report.words import Row

if TYPE_CHECKING:
    from headway.report.pictures.frame import Picture, View

KINDS = (("stated", "stated"), ("reference", "worked by hand"), ("recomputed", "recomputed"), ("today", "with today's facts"))
MOST_PANELS = 4
DIGITS = 9  # figures that differ by rounding stand in one place


def figures(row: Row, view: View) -> Picture:
    """A claim's figures, those of one unit below each other; a figure that is alone, in each of the ways it is known."""
    units: dict[str, list[Row]] = {}
    for part in row.get("parts") or ():
        if any(_is_number(part.get(key)) for key, _ in KINDS):
            units.setdefault(part.get("unit") or row.get("unit") or "", []).append(part)
    if not units:
        raise BadValue("--plot", row["id"], "a claim with figures; this one is in words")
    panels: list[dict[str, Any]] = []
    texts, labels = [], []  # of all panels, which have the same margins
    for place, (unit, parts) in enumerate(units.items()):
        recomputed = [part for part in parts if _is_number(part.get("recomputed"))]
        says = _said_of_all(row["id"], recomputed, unit)
        quoted = ["" if says or not _is_number(part.get("stated")) else format_value(part["stated"], unit) for part in recomputed]
        brackets = [f" ({text})" if text else "" for text in quoted]
        words = [format_value(part["recomputed"], unit) + beside for part, beside in zip(recomputed, brackets, strict=True)]
        texts += words
        if len(recomputed) > 1:
            values = [float(f"{part['recomputed']:.{DIGITS}g}") for part in recomputed]
            panels.append({"name": f"unit{place}", "values": values, "labels": [str(part["name"]) for part in recomputed], "texts": words,
                           "unit": unit, **says})  # fmt: skip
        else:
            for number, part in enumerate(parts):
                known = [(float(part[key]), label) for key, label in KINDS if _is_number(part.get(key))]
                panels.append({"name": f"unit{place}part{number}", "values": [value for value, _ in known],
                               "labels": [label for _, label in known], "texts": [format_value(value, unit) for value, _ in known],
                               "unit": unit, "heading": part["name"]})  # fmt: skip
        if len(parts) > 1:
            labels += [str(part["name"]) for part in parts]
        else:
            texts += panels[-1]["texts"]
            labels += [label for _, label in KINDS]
    lead = panels[0]
    drawings = []
    for panel in panels[:MOST_PANELS]:
        of: dict[str, Any] = panel | {"unit": panel["unit"] or "count", "rows": [{"value": value} for value in panel["values"]]}
        del of["values"]
        drawings.append([dots.Dots(key="value", texts_beside=texts, labels_beside=labels, **of)])
    title, caption = _capital(statement(row["id"])), "Each point is a figure by the laws with the claim's own inputs"
    spread = sorted(zip(lead["values"], lead["labels"], strict=True))
    if len(panels) == 1 and lead["unit"] and "heading" not in lead and ":" not in title and spread[0][0] != spread[-1][0]:
        title += ": " + " to ".join(f"{format_value(value, lead['unit'])} ({name})" for value, name in (spread[0], spread[-1]))
    if "references" in lead:
        title += f"; {lead['references'][0][1]}"
    elif any(len(parts) > 1 for parts in units.values()):
        caption += "; in brackets what the lecture says"
    return frame.compose(view, drawings, title=title, subtitle=f"{row['id']}, {row['verdict']}: {_plain(row['claim'])}",
                         caption=f"{caption}.")  # fmt: skip


def _said_of_all(claim_id: str, parts: Sequence[Row], unit: str) -> dict[str, Any]:
    """A line at the figure that the lecture has for all parts alike, and the span in which they agree with it; nothing if they differ."""
    figures_stated, spans = {part.get("stated") for part in parts}, {claims()[claim_id].range_of(part["name"]) for part in parts}
    (figure, *figures_more), (span, *spans_more) = figures_stated, spans
    if figures_more or spans_more or span is None or not _is_number(figure) or not all(map(math.isfinite, span)):
        return {}
    return {"references": [(figure, f"the lecture says {format_value(figure, unit)}")], "band": span,
            "title": f"shaded: agrees with the claim, {range_text(span, unit)}"}  # fmt: skip


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _plain(text: str) -> str:
    """A claim's text without the signs that few fonts have."""
    return text.replace("⇒", "→").replace("⇔", "↔").replace("⅓", "1/3")


# -- along an input -----------------------------------------------------------------------------------------------------------------

MOST_LINES = 4
ROUNDING = 1e-9  # relative: figures that differ by less are the same
SHARE = 0.42  # height of the panel over its width
LEAST_HEIGHT, MOST_HEIGHT = 190, 300


def curve(claim: Claim, rows: Sequence[Row], view: View) -> Picture:
    """A line for each figure that an input changes, of the unit of the first, with a dot at the lecture's own value."""
    numbers = [name for name in claim.inputs if all(isinstance(row.get(name), int | float) for row in rows)]
    along = max(numbers, key=lambda name: len({row[name] for row in rows}), default="")  # the input that varies most
    if not along or len({row[along] for row in rows}) < 2:
        raise BadValue("--plot", claim.id, "an input with a range, such as --with total=64B..4T*1.2")
    by_figure: dict[str, list[Row]] = {}
    for row in rows:
        by_figure.setdefault(row["figure"], []).append(row)
    names = [name for name, of in by_figure.items() if _varies([row["value"] for row in of])]
    if not names:
        raise BadValue("--plot", along, "an input that changes a figure of this claim")
    unit = by_figure[names[0]][0]["unit"]
    names = [name for name in names if by_figure[name][0]["unit"] == unit][:MOST_LINES]
    points: dict[float, dict[str, Any]] = {}  # by value of the input, a field for each figure
    for place, name in enumerate(names):
        for row in by_figure[name]:
            value = row["value"] if row["value"] is not None and math.isfinite(row["value"]) else None
            points.setdefault(row[along], {"along": row[along]})[f"figure{place}"] = value
    ordered = sorted(points.values(), key=lambda point: point["along"])
    at, x_unit, words = float(claim.inputs[along]), claim.inputs[along].unit, input_words(claim, along)
    lecture = [{"along": at, "value": by_figure[name][0]["lecture_inputs"]} for name in names]
    lines = [plot.Series(rows=ordered, x="along", y=f"figure{place}", meaning=palette.MEANINGS[place], width=2.5)
             for place in range(len(names))]  # fmt: skip
    dots_there = plot.Series(rows=lecture, x="along", y="value", meaning="ink", width=0, dots=70, data="lecture")
    y = scale.AxisScale("", [*(value for point in ordered for key, value in point.items() if key != "along"),
                             *(dot["value"] for dot in lecture)], unit)  # fmt: skip
    width = frame.inner(view, *frame.margins(view, y.axis(view.ends("y"))))
    drawing = plot.Plot(
        name="claim", x=scale.AxisScale(_capital(words), [point["along"] for point in ordered], x_unit, room=0.0), y=y, is_fitting=True,
        parts=[plot.RuleLines(x=[at]), *lines, dots_there],
        keys=[(name, palette.MEANINGS[place]) for place, name in enumerate(names) if len(names) > 1],
        height=min(max(width * SHARE, LEAST_HEIGHT), MOST_HEIGHT),
    )  # fmt: skip
    figure = "" if len(names) > 1 or any(map(str.isdigit, names[0])) else f": {names[0]}"  # a name with numbers is of the lecture's inputs
    return frame.compose(view, [[drawing]], title=_capital(statement(claim.id)),
                         subtitle=f"{claim.id}{figure} against {words}; {_plain(claim.claim)}",
                         caption=f"Dots: the lecture's own inputs ({words} {format_value(at, x_unit)}).")  # fmt: skip


def _varies(values: Sequence[float | None]) -> bool:
    """Whether the values that are finite differ by more than rounding."""
    known = [value for value in values if value is not None and math.isfinite(value)]
    return bool(known) and max(known) - min(known) > ROUNDING * max(map(abs, known))


# -- price against context ----------------------------------------------------------------------------------------------------------

DENSE, ROOT = 1.0, 0.5  # powers of the context that attention reads
POINTS = 120
FARTHEST = 5.0  # last context drawn, over the knee


def price_context(knee: float, step: float, view: View, about: str) -> Picture:
    """Cost of a token over that of a short context, flat up to `knee` tokens, and its price, `step` times as high beyond them."""
    contexts = [knee * FARTHEST * place / (POINTS - 1) for place in range(POINTS)]
    rows: list[Mapping[str, float]] = []
    for at in contexts:
        dense, root = (float(context_multiple(max(at, 1.0), knee, power)) for power in (DENSE, ROOT))
        rows.append({"context": at, "dense": dense, "root": root, "price": 1.0 if at <= knee else step})
    covered, knee_text = float(covered_context(step, knee, DENSE)), format_value(knee, "token")
    covered_text = f"{step:g} times the price covers {format_value(covered, 'token')}"
    lines = [plot.Series(rows=rows, x="context", y="dense", meaning="kv", text="dense attention", width=3),
             plot.Series(rows=rows, x="context", y="root", meaning="network", text="square root", dash=(6, 3)),
             plot.Series(rows=rows, x="context", y="price", meaning="ink", text="price", steps="step-after", dash=(2, 3))]  # fmt: skip
    points = [plot.Point(x=knee, y=1.0, text=f"knee: {knee_text} tokens", meaning="compute", shape="diamond"),
              plot.Point(x=covered, y=step, text=covered_text, meaning="kv")]  # fmt: skip
    drawing = plot.Plot(
        name="context", parts=[*lines, *points], heading="Cost of a token over that of a short context", height=300,
        x=scale.AxisScale("Context (tokens)", contexts, "token", ends=(0.0, contexts[-1]), log=False, most=6),
        y=scale.AxisScale("", [0.0, FARTHEST], "x", ends=(0.0, FARTHEST), log=False, most=6),
    )  # fmt: skip
    caption = "Left of the knee compute sets the cost; right of it the KV cache, in proportion to the context unless attention is sparse."
    title = f"Beyond {knee_text} tokens a token costs more; {covered_text}"
    return frame.compose(view, [[drawing]], title=title, subtitle=about, caption=caption)
