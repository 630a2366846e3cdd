"""Pictures of measured rows: predicted against measured, how far off predictions were, and where one run's time goes."""

from __future__ import annotations

import dataclasses
import statistics
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from headway.core.errors import BadValue
from headway.core.listing import Rows, format_value
from headway.report.causes import percent, times
from headway.report.pictures import bars, dots, frame, palette, plot, scale
from headway.report.words import Row

if TYPE_CHECKING:
    from headway.evidence.serving.score import Residual
    from headway.report.pictures.frame import Picture, View

# -- predicted against measured -----------------------------------------------------------------------------------------------------

SHAPES = (("circle", "●"), ("square", "■"), ("diamond", "●"), ("triangle-up", "●"), ("cross", "+"))  # with a sign that every font has
MOST_POINTS = 3000
WITHOUT, WITH, BY_OTHERS = "without your runs", "with them", "by the other runs"
FITTED = "With them a run is among those that predict it: how well factors fit, not how well they hold elsewhere."
HELD_OUT = "Each run is predicted by the others alone, never by itself: how well they hold for a run that is not among them."
NEAR = 0.1  # share by which a prediction is close
MOST_MEASURES = 2  # of one's own runs, each in a panel
MEASURES = {"tpot": ("TPOT", "s"), "ttft": ("TTFT", "s"), "rate": ("throughput", "token/s"), "per_chip": ("throughput", "token/s"),
            "step": ("step", "s"), "memory": ("memory", "byte")}  # fmt: skip
DIAGONALS = ((1.0, "equal", (), 2.6), (2.0, "twice", (4, 3), 2.8), (0.5, "half", (4, 3), 2.6))  # factor, word, dash, place of the word


def parity(residuals: Sequence[Residual], measure: str, view: View) -> Picture:
    """One measure on logarithmic axes, lines at equality and at a factor of 2, a shape for each of the largest sources."""
    matches = [row for row in residuals if row.measure == measure] or list(residuals)
    matches = [row for row in matches if row.measured and row.predicted and min(row.measured, row.predicted) > 0]
    if not matches:
        raise BadValue("--plot", "these rows", "at least one measurement with a prediction")
    measure = matches[0].measure
    rows = [row for row in matches if row.measure == measure][:MOST_POINTS]
    drawing = _against_measured(rows, measure, "s" if rows[0].is_time else "token/s")
    errors = sorted(abs(row.predicted / row.measured - 1) for row in rows)
    within = sum(0.5 <= row.predicted / row.measured <= 2 for row in rows) / len(rows)
    title = f"Predictions of {measure} are off by {errors[len(errors) // 2]:.0%} in the median, {within:.0%} within a factor of 2"
    shapes = "a shape" if len({row.source for row in rows}) > 1 else "one"
    subtitle = f"{len(rows):,} measurement{'s' * (len(rows) != 1)}, {shapes} for each source"
    caption = "A point on the solid line is predicted exactly; above it the prediction is too high, below too low."
    return frame.compose(view, [[drawing]], title=title, subtitle=subtitle, caption=caption)


def _against_measured(rows: Sequence[Residual], measure: str, unit: str) -> plot.Plot:
    """Predictions against measurements, a shape for each of the largest sources."""
    values = [value for row in rows for value in (row.measured, row.predicted)]
    ends = (min(values) / 1.25, max(values) * 1.25)
    parts: list[plot.Part] = []
    for factor, word, dash, below in DIAGONALS:
        parts.append(plot.Series(rows=[{"x": end, "y": end * factor} for end in ends], meaning="muted", width=1, dash=dash))
        parts.append(plot.Note(x=ends[1] / below, y=ends[1] / below * factor, text=word, most=30.0))
    groups = [group for group, _ in Counter(row.source for row in rows).most_common()]  # the largest first
    distinct = len(SHAPES) - (len(groups) > len(SHAPES))  # in a colour and a shape of their own
    for place, group in enumerate(groups):
        meaning, shape = (palette.MEANINGS[place], SHAPES[place][0]) if place < distinct else ("whole", "circle")
        mine = [{"x": row.measured, "y": row.predicted} for row in rows if row.source == group]
        parts.append(plot.Series(rows=mine, meaning=meaning, width=0, dots=22, opacity=0.6, shape=shape,
                                 data=f"group{place}"))  # fmt: skip
    keys = [(f"{SHAPES[place][1]} {group}", palette.MEANINGS[place]) for place, group in enumerate(groups[:distinct]) if len(groups) > 1]
    keys += [(f"● {len(groups) - distinct} more", "whole")] if len(groups) > distinct else []
    x = scale.AxisScale(f"Measured {measure} (log)", values, unit, log=True, ends=ends, most=6)
    return plot.Plot(name="parity", x=x, y=dataclasses.replace(x, title=""), parts=parts, keys=keys, height=380,
                     heading=f"Predicted {measure} (log)")  # fmt: skip


def by_own_runs(before: Sequence[Residual], after: Sequence[Residual], view: View, are_held_out: bool = False) -> Picture:
    """The user's own runs on logarithmic axes, each predicted without them and with them (held out: by the others): its first measures."""
    pairs = [pair for pair in zip(before, after, strict=True) if min(pair[0].measured, pair[0].predicted, pair[1].predicted) > 0]
    if not pairs:
        raise BadValue("--plot", "these runs", "at least one run with a measurement that is predicted")
    groups = {quantity: [pair for pair in pairs if pair[0].quantity == quantity][: MOST_POINTS // 2]
              for quantity in list(dict.fromkeys(pair[0].quantity for pair in pairs))[:MOST_MEASURES]}  # fmt: skip
    panels = [_own_panel(quantity, mine, len(groups), BY_OTHERS if are_held_out else WITH) for quantity, mine in groups.items()]
    measure, first = MEASURES[pairs[0][0].quantity][0], next(iter(groups.values()))
    middles = [statistics.median(abs(row.predicted / row.measured - 1) for row in side) for side in zip(*first, strict=True)]
    title = f"Your runs take predictions of their {measure} from {middles[0]:.0%} to {middles[1]:.0%} off in the median"
    subtitle = f"{len(first):,} measurement{'s' * (len(first) != 1)}, each predicted twice; a line joins the two"
    caption = f"A point on the line of equality is predicted exactly. {HELD_OUT if are_held_out else FITTED}"
    return frame.compose(view, [panels], title=title, subtitle=subtitle, caption=caption)


def _own_panel(quantity: str, pairs: Sequence[tuple[Residual, Residual]], panels: int, after: str) -> plot.Plot:
    """One measure of one's own runs: two predictions of each joined by a line, the diagonal, and what is within NEAR of it."""
    measure, unit = MEASURES[quantity]
    values = [value for pair in pairs for value in (pair[0].measured, *(row.predicted for row in pair))]
    ends = (min(values) / 1.25, max(values) * 1.25)
    line = [{"x": end, "y": end, "low": end * (1 - NEAR), "high": end * (1 + NEAR)} for end in ends]
    joins = [{"x": pair[0].measured, "x2": pair[0].measured, "y": min(row.predicted for row in pair),
              "y2": max(row.predicted for row in pair), "meaning": "muted"} for pair in pairs]  # fmt: skip
    parts: list[plot.Part] = [
        plot.Series(rows=line, meaning="muted", width=1, band=("low", "high"), data="equal"),
        plot.Note(x=ends[1] / 1.6, y=ends[1] / 1.6, text=f"equal, and within {NEAR:.0%}", most=60.0),
        plot.Boxes(rows=joins, line=1.2),
    ]
    keys = []
    for side, (words, meaning, (shape, sign)) in enumerate(((WITHOUT, "kv", SHAPES[1]), (after, "weights", SHAPES[0]))):
        rows = [{"x": pair[side].measured, "y": pair[side].predicted, "tip": _own_tip(pair, unit, after)} for pair in pairs]
        parts.append(plot.Series(rows=rows, meaning=meaning, width=0, dots=45, opacity=0.85, shape=shape, data=f"group{side}"))
        within = sum(abs(pair[side].predicted / pair[side].measured - 1) <= NEAR for pair in pairs)
        keys.append((f"{sign} {words}: {within} of {len(pairs)} within {NEAR:.0%}", meaning))
    x = scale.AxisScale(f"Measured {measure} (log)", values, unit, log=True, ends=ends, most=6)
    return plot.Plot(name=f"parity_{quantity}", x=x, y=dataclasses.replace(x, title=""), parts=parts, keys=keys, height=320,
                     columns=panels, is_fitting=True, heading=f"Predicted {measure} (log)")  # fmt: skip


def _own_tip(pair: tuple[Residual, Residual], unit: str, after: str) -> str:
    """What a page says of a run: its measurement and both predictions."""
    measured, without, with_runs = (format_value(value, unit) for value in (pair[0].measured, *(row.predicted for row in pair)))
    return f"{pair[0].id}: measured {measured}; predicted {without} {WITHOUT}, {with_runs} {after}"


# -- errors by group ----------------------------------------------------------------------------------------------------------------

GROUPS = 20  # of which there is a row


def errors(rows: Rows, view: View) -> Picture:
    """The largest groups of measured rows with the median error of their predictions, the best predicted first."""
    largest = sorted(rows, key=lambda row: -row["rows"])[:GROUPS]
    if not largest:
        raise BadValue("--plot", "no rows", "rows to draw")
    largest.sort(key=lambda row: row["median_error"])
    labels = [f"{row['chip'].replace('_', '-')}, {row['engine']}, {row['model_class'].replace('moe', 'MoE')}" for row in largest]
    texts = [f"{row['median_error']:.0%}, {row['measure']} ({row['rows']:,})" for row in largest]
    by_measure: dict[str, list[float]] = {}
    for row in largest:
        by_measure.setdefault(row["measure"], []).append(row["median_error"])
    meanings = dict(zip(by_measure, palette.MEANINGS, strict=False))  # of the measures in the order of their best group
    panel = dots.Dots(name="errors", rows=largest, key="median_error", labels=labels, texts=texts, unit="share",
                      title="median error of a prediction", tones=[meanings.get(row["measure"], "rest") for row in largest])  # fmt: skip
    spans = [f"{measure} by {min(errors):.0%} to {max(errors):.0%}" for measure, errors in by_measure.items()]
    return frame.compose(
        view, [[panel]], title=f"Predictions miss {', '.join(spans[:2])} in the median",
        subtitle=f"the {len(largest)} largest of {len(rows)} groups of measured rows, by chip, engine and class of model",
        caption="Each row was predicted by a fit that had not seen its source; in brackets is the number of measurements.",
    )  # fmt: skip


# -- the parts of a run -------------------------------------------------------------------------------------------------------------

MEANINGS = {"weights": "weights", "KV cache": "kv", "compute": "compute", "network": "network", "prefill of the request": "compute"}
MILLI = 1e3
MOST_RUNS = 3


def run(rows: Sequence[Row], view: View) -> Picture:
    """Where measured runs stand: a panel for each time beside its floor and prediction, and the parts of the time."""
    runs = [row for row in rows if row.get("parts") and row.get("unit") == "ms" and row.get("measured")][:MOST_RUNS]
    if not runs:
        raise BadValue("--plot", "no run with a time", "a run whose TPOT or TTFT is measured and predicted")
    first = runs[0]
    largest = max(first["parts"], key=first["parts"].get)
    title = f"The run takes {times(first['measured'] / first['floor'])} times its floor; the largest part is {largest}, "
    title += percent(first["parts"][largest] / first["measured"])
    caption = "The floor is the least that the datasheet allows; the rule is the 90 % interval; the bars below are the measured time."
    subtitle = f"{first['model']} on {first['chip'].replace('_', '-')} by {first['engine']}"
    panels = [[_run_panel(row, f"run{number}")] for number, row in enumerate(runs)]
    return frame.compose(view, panels, title=title, subtitle=subtitle, caption=caption)


def _run_panel(row: Row, name: str) -> bars.Bars:
    lines = [("measured", row["measured"], "ink", ""), ("predicted", row["expected"], "whole", ""), ("floor", row["floor"], "whole", "")]
    lines += [(part, value, MEANINGS.get(part, "network"), f", {percent(value / row['measured'])}") for part, value in row["parts"].items()]
    ends = {"predicted": (row["lo"] / MILLI, row["hi"] / MILLI)}
    run_bars = []
    for key, value, meaning, share in lines:
        low, high = ends.get(key, (None, None))
        note = format_value(value / MILLI, "s") + share
        run_bars.append(bars.Bar(name=key, parts=[(key, max(value / MILLI, 0.0), meaning)], note=note, low=low, high=high))
    x = scale.AxisScale("Time", [0.0, max(row["measured"], row["hi"]) / MILLI], "s", zero=True, log=False, most=5, room=0.2)
    return bars.Bars(name=name, bars=run_bars, x=x, heading=f"{row['id']}: {row['measure']}", has_key=False)
