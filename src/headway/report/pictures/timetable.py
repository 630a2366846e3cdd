"""The timetable of steps that leave on a clock, as the lecture's trains do: riders of each, and the requests that wait for theirs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headway.core.errors import BadValue
from headway.core.listing import format_value
from headway.report.pictures import marks
from headway.report.pictures.frame import Picture, View, compose
from headway.report.pictures.plot import Plot
from headway.report.pictures.scale import axis

MOST_REQUESTS = 400


def of_run(run: Any, row: Mapping[str, Any], view: View) -> Picture:
    """Picture of the departures of a simulated run."""
    from headway.simulation.timetable import timetable

    departures, boardings = timetable(run)
    if not departures:
        raise BadValue("--picture", "trains", "steps that leave on a clock: --departures 20ms or drain")
    beat, seats = float(run.rules.departures), max(train.riders for train in departures)
    fill = f"trains are {row['train_fill']:.0%} full" if row.get("train_fill") is not None else f"{seats} ride at most"
    wait = format_value(row["mean_queue_s"], "s")
    title = f"A train leaves every {format_value(beat, 's')}, full or not: {fill}, and a request waits {wait}"
    subtitle = f"{row['model']} on {row['system']}, one replica, where most board"
    return picture(departures, boardings, beat, view, title=title, subtitle=subtitle)


def picture(departures: Sequence[Any], boardings: Sequence[Any], beat: float, view: View, *, title: str, subtitle: str) -> Picture:
    """Picture of a timetable (`simulation/timetable.py`): riders of each departure above, requests that wait for theirs below."""
    start = departures[0].time_s
    ends = (-1.5 * beat, departures[-1].time_s - start + beat / 2)
    x = axis("Time since the first of these departures", ends, "s", ends=ends, log=False, most=5)
    seats = max(train.riders for train in departures)
    top = Plot(view, "riders", x, axis("", [0.0, seats], "count", zero=True, log=False, most=5, room=0.15), height=150)
    below = Plot(view, "waits", x, axis("", [0.0, len(boardings)], "count", zero=True, log=False, most=4, falls=True), height=190)
    top.add(marks.pixel_boxes(top.rows("trains", _carriages(top, departures, start, beat * 0.3))))
    stay = any(train.riders > train.boarded for train in departures)
    top.keys = [*([("■ still aboard", "compute")] if stay else []), ("■ boarding here", "kv")]
    below.add(marks.pixel_rules(below.rows("waits", _waits(below, boardings, start)), width=1.5))
    rules = below.rows("departures", [{"at": train.time_s - start} for train in departures])
    below.add(marks.uprights(rules, x, view.colours.muted))
    caption = "Each line below is one request from its arrival to the departure it boards: half a beat on average while seats are free."
    panels = [[top.panel("Sequences in each departing step")], [below.panel("Requests in order of arrival, waiting for their train")]]
    return compose(view, panels, title=title, subtitle=subtitle, caption=caption)


def _carriages(plot: Plot, departures: Sequence[Any], start: float, width: float) -> list[dict[str, Any]]:
    """A box for those aboard and one for those who board, at each departure."""
    boxes = []
    for train in departures:
        at, aboard = train.time_s - start, train.riders - train.boarded
        sides = {"x": plot.x.across(at - width, plot.width), "x2": plot.x.across(at + width, plot.width)}
        for low, high, meaning in ((0, aboard, "compute"), (aboard, train.riders, "kv")):
            ends = {"y": plot.y.down(high, plot.height), "y2": plot.y.down(low, plot.height)}
            boxes.append(sides | ends | {"color": plot.view.colours.line(meaning)})
    return boxes


def _waits(plot: Plot, boardings: Sequence[Any], start: float) -> list[dict[str, Any]]:
    """A line for each request, from its arrival to its departure."""
    lines = []
    for place, entry in enumerate(boardings[:MOST_REQUESTS]):
        arrival = plot.x.across(max(entry.arrival_s - start, plot.x.low), plot.width)
        down = plot.y.down(place + 0.5, plot.height)
        lines.append({"x": arrival, "x2": plot.x.across(entry.departure_s - start, plot.width), "y": down, "y2": down,
                      "color": plot.view.colours.line("network")})  # fmt: skip
    return lines
