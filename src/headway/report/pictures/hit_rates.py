"""Share of prompt tokens that a prefix cache has, against its lifetime and against its room."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headway.report.pictures.frame import Picture, View, compose
from headway.report.pictures.palette import MEANINGS
from headway.report.pictures.plot import Plot
from headway.report.pictures.scale import axis

Lines = Mapping[str, Sequence[tuple[float, float]]]
DASHES = ((), (6, 3), (2, 3), (8, 3, 2, 3), (12, 4))


def picture(by_ttl: Lines, by_room: Lines, unit: str, trace: str, about: str, view: View) -> Picture:
    """Picture of hit rates: a line per room against the lifetime, a line per lifetime against the room."""
    plots = [
        _plot(by_ttl, "Time to live, renewed by each use (log)", "s", 0, view),
        _plot(by_room, "Room of the cache (log)", unit, 1, view),
    ]
    panels = [plot.panel("Share of prompt tokens in the cache") for plot in plots]
    highest = max(share for line in (*by_ttl.values(), *by_room.values()) for _, share in line)
    title = f"A prefix cache has at most {highest:.0%} of the prompt tokens of {trace}"
    caption = "Left, each line is a room; right, each line is a lifetime: where lines meet, more of the other buys nothing."
    return compose(view, [panels], title=title, subtitle=f"least recently used first out{about}", caption=caption)


def _plot(lines: Lines, title: str, unit: str, number: int, view: View) -> Plot:
    places = [place for line in lines.values() for place, _ in line if place > 0]
    x = axis(title, places, unit, log=True, most=5, room=0.02)
    y = axis("", [share for line in lines.values() for _, share in line], "share", zero=True, log=False, most=5)
    plot = Plot(view, f"hits{number}", x, y, columns=2, height=260, ends=list(lines))
    for place, (name, line) in enumerate(lines.items()):
        data = plot.rows(f"line{place}", [{"x": at, "y": share} for at, share in line if at > 0])
        plot.curve(data, "x", "y", MEANINGS[place], text=name, dash=DASHES[place])
    return plot
