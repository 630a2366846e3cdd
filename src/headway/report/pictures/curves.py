"""Latency and cost of a decode step against batch: floor, knee, asymptotes, the end of the memory, the operating point."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headway.core.listing import format_value
from headway.report.pictures.frame import Picture, View, compose
from headway.report.pictures.plot import Plot
from headway.report.pictures.scale import axis

MEANINGS = {"compute": "compute", "weights": "weights", "KV cache": "kv", "network": "network"}
EXPECTED = "expected"
CEILING = 6.0  # the cost axis ends at this multiple of the cost floor: the hyperbola leaves it


HEADINGS = ("Time of one decode step", "Cost of a million output tokens")
FLOOR = "floor: the longest of compute, weights + KV and network, at peak rates"


def batch(curves: Any, row: Mapping[str, Any], about: str, view: View, place: float | None = None) -> Picture:
    """Picture of the curves of one layout (`serving/curves.py`); `place` is the batch asked for."""
    plots = []
    for number, (lines, unit) in enumerate(_quantities(curves)):
        floor = curves.latency_floor if not number else curves.cost_floor
        top = CEILING * floor if number else None
        plot = _plot(lines, unit, curves.batch, "Batch (sequences decoded together)", view, number, 2 if curves.costs else 1, top)
        _lines(plot, lines, curves.batch, curves.capacity)
        if place is not None:
            _point(plot, lines, curves.batch, place, f"batch {place:,.0f}", unit)
        _turn(plot, curves, lines)
        plot.level("floor", floor, f"{'cost' if number else 'latency'} floor {format_value(floor, unit)}")
        plots.append(plot)
    panels = [plot.panel(words) for plot, words in zip(plots, HEADINGS, strict=False)]
    subtitle = f"{row['model']} on {row['system']}, {about}; {FLOOR}"
    return compose(view, [panels], title=_title(curves), subtitle=subtitle, caption=_caption(curves))


def context(curves: Any, row: Mapping[str, Any], about: str, view: View, place: float | None = None) -> Picture:
    """Picture of time and cost against context (`serving/curves.py`); `place` is the context asked for."""
    plots = []
    for number, (lines, unit) in enumerate(_quantities(curves)):
        plot = _plot(lines, unit, curves.context, "Context (tokens attended to)", view, number, 2 if curves.costs else 1, None)
        _lines(plot, lines, curves.context, curves.capacity)
        if place is not None:
            _point(plot, lines, curves.context, place, f"context {format_value(place, 'token')}", unit)
        if curves.turn:
            _point(plot, lines, curves.context, curves.turn, f"KV = weights at {curves.turn:,.0f}", "", shape="diamond", line="floor")
        if curves.window:
            plot.upright("window", curves.window, f"the model's longest: {format_value(curves.window, 'token')}")
        plots.append(plot)
    panels = [plot.panel(words) for plot, words in zip(plots, HEADINGS, strict=False)]
    start, end = (format_value(float(curves.times["expected"][place]), "s") for place in (0, -1))
    title = f"Context makes a step slower, from {start} to {end}: the KV cache alone grows with it"
    if not curves.turn:
        title = f"Context hardly changes a step, {start} to {end}: weights outlast the KV cache throughout"
    caption = "Weights and matrix arithmetic do not depend on the context; where the memory is full, only a smaller batch allows more."
    subtitle = f"{row['model']} on {row['system']}, {about}, batch {curves.batch:,.0f}; {FLOOR}"
    return compose(view, [panels], title=title, subtitle=subtitle, caption=caption)


def _quantities(curves: Any) -> list[tuple[Mapping[str, Any], str]]:
    """Times, and costs where a price is known, with their units."""
    return [(curves.times, "s"), *([(curves.costs, "USD/Mtok")] if curves.costs else [])]


def _plot(lines: Mapping[str, Any], unit: str, places: Any, title: str, view: View, number: int, columns: int, top: float | None) -> Plot:
    """An empty plot from 0 to the last place; `top` ends the upright axis, else the highest curve."""
    last = float(places[-1])
    highest = top or 1.05 * float(max(lines[name].max() for name in ("floor", *_expected(lines))))
    suffix = str(number + 1) if number else ""
    across = axis(title, [0.0, last], "token" if "ontext" in title else "", ends=(0.0, last), most=5, log=False,
                  fixed_ends=view.ends(f"x{suffix}"))  # fmt: skip
    upright = axis("", [0.0, highest], unit, ends=(0.0, highest), most=6, log=False, fixed_ends=view.ends(f"y{suffix}"))
    return Plot(view, f"panel{number}", across, upright, columns=columns, ends=[*_present(lines), "floor", *_expected(lines)])


def _present(lines: Mapping[str, Any]) -> list[str]:
    """Parts of a step that take any time."""
    return [name for name in MEANINGS if float(lines[name].max()) > 0]


def _expected(lines: Mapping[str, Any]) -> list[str]:
    """The expected curve, where there is one: the lecture's board has none."""
    return [EXPECTED] if EXPECTED in lines else []


def _lines(plot: Plot, lines: Mapping[str, Any], places: Any, capacity: float | None) -> None:
    """The curves, and the shaded end of the memory."""
    last = float(places[-1])
    columns = {name.replace(" ", "_"): values for name, values in lines.items()}
    rows = plot.rows("rows", [
        {"at": float(places[number]), **{name: float(values[number]) for name, values in columns.items()}}
        for number in plot.view.thinned(range(len(places)))
    ])  # fmt: skip
    plot.region("full", last if capacity is None else capacity, last, "HBM is full")
    plot.curve(rows, "at", "floor", "ink", text="floor", width=4)
    for name in _present(lines):
        plot.curve(rows, "at", name.replace(" ", "_"), MEANINGS[name], text=name)
    for name in _expected(lines):
        plot.curve(rows, "at", name, "ink", text=name, width=1.5, dash=(5, 4))


def _point(
    plot: Plot, lines: Mapping[str, Any], places: Any, at: float, words: str, unit: str, shape: str = "circle", line: str = EXPECTED
) -> None:
    """A point on a curve with its words."""
    import numpy as np

    value = float(np.interp(at, places, lines[line]))
    if plot.x.holds(at) and plot.y.holds(value):
        text = f"{words}: {format_value(value, unit)}" if unit else words
        plot.point("knee" if line == "floor" else "here", at, value, text, shape=shape, size=90)


def _turn(plot: Plot, curves: Any, lines: Mapping[str, Any]) -> None:
    """The knee from which compute is longest; without one, where another part equals the weights."""
    last = float(curves.batch[-1])
    if curves.knee and 1 < curves.knee <= last:
        _point(plot, lines, curves.batch, curves.knee, f"knee: batch {curves.knee:,.0f}", "", shape="diamond", line="floor")
    elif curves.turn and 1 < curves.turn[0] <= last:
        name = "KV" if curves.turn[1] == "KV cache" else curves.turn[1]
        _point(
            plot, lines, curves.batch, curves.turn[0], f"{name} = weights at batch {curves.turn[0]:,.0f}", "", shape="diamond", line="floor"
        )


def _title(curves: Any) -> str:
    floor, last = format_value(curves.latency_floor, "s"), float(curves.batch[-1])
    if curves.knee is not None and 1 < curves.knee <= last:
        return f"No step is faster than {floor}; from batch {curves.knee:,.0f} on compute sets the pace"
    if curves.turn and 1 < curves.turn[0] <= last:
        return f"No step is faster than {floor}; from batch {curves.turn[0]:,.0f} on the {curves.turn[1]} takes longer than the weights"
    return f"No step is faster than {floor}, whatever the batch"


def _caption(curves: Any) -> str:
    text = "The weights are read once a step, however many share it"
    if curves.costs:
        text += f", so their cost per token falls as 1/batch; compute and KV cache never amortise, and the cost ends at " \
                f"{format_value(curves.cost_floor, 'USD/Mtok')} per Mtok"  # fmt: skip
    return text + "."
