"""Price against speed of fast and slow tiers: the ladder of batch sizes, larger domains, and real offers with their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headway.core.errors import BadValue
from headway.report.pictures.frame import Picture, View, compose
from headway.report.pictures.plot import Plot
from headway.report.pictures.scale import axis

KEYS = (("the ladder", "● the ladder: smaller batches", "compute"), ("larger domain", "● a larger domain", "weights"),
        ("offered", "■ offered", "kv"), ("cost measured", "● cost measured", "network"))  # fmt: skip
SHAPES = {"larger domain": "diamond", "offered": "square", "cost measured": "circle"}


def picture(points: Sequence[Mapping[str, Any]], view: View, subject: str) -> Picture:
    """Picture of points with x (speed over the standard rung), y (price over it), kind, name and subject."""
    if not points:
        raise BadValue("--plot", "these rows", "rows with a price multiple and a speed multiple")
    x = axis("Speed of one user over the standard tier (log)", [point["x"] for point in points], "x", log=True, room=0.06)
    y = axis("", [point["y"] for point in points], "x", log=True, room=0.08)
    plot = Plot(view, "ladder", x, y, height=340)
    subjects = dict.fromkeys(point["subject"] for point in points if point["kind"] == "the ladder")
    for number, about in enumerate(subjects):
        _rungs(plot, number, [point for point in points if point["kind"] == "the ladder" and point["subject"] == about])
    for kind, _, meaning in KEYS[1:]:
        mine = [point for point in points if point["kind"] == kind]
        plot.cloud(plot.rows(kind.replace(" ", "_"), mine), "x", "y", meaning, size=55, shape=SHAPES[kind])
        _names(plot, mine, meaning)
    kinds = {point["kind"] for point in points}
    plot.keys = [(words, meaning) for kind, words, meaning in KEYS if kind in kinds]
    above = sum(point["kind"] == "offered" and point["above"] for point in points)
    offers = sum(point["kind"] == "offered" for point in points)
    fastest = max((point["x"] for point in points if point["kind"] == "the ladder"), default=0.0)
    beyond = sum(point["kind"] == "offered" and point["x"] > fastest for point in points)
    title = f"{above} of {offers} offers ask for more than a smaller batch costs" if offers else "Speed is bought with smaller batches"
    if beyond:
        title = f"{title}; {beyond} are faster than any batch here" if beyond < offers else "Every offer is faster than any batch here"
    caption = "Offers are over their own standard tier; above the line, a smaller batch alone would be cheaper for that speed."
    return compose(view, [[plot.panel("Price per token over the standard tier (log)")]], title=title, subtitle=subject, caption=caption)


def _names(plot: Plot, points: Sequence[Mapping[str, Any]], meaning: str) -> None:
    """Names of points, one for those in the same place."""
    places: dict[tuple[float, float], list[str]] = {}
    for point in points:
        places.setdefault((point["x"], point["y"]), []).append(point["name"])
    for (across, up), names in places.items():
        text = names[0] + (f" and {len(names) - 1} more" if len(names) > 1 else "")
        plot.note(text, meaning, around=plot.place(across, up))


def _rungs(plot: Plot, number: int, points: Sequence[Mapping[str, Any]]) -> None:
    """The ladder of one model and machine, its ends named by their batch."""
    rungs = sorted(points, key=lambda point: point["x"])
    data = plot.rows(f"rungs{number}", [{"x": point["x"], "y": point["y"]} for point in rungs])
    plot.curve(data, "x", "y", "compute", width=2.5)
    plot.cloud(data, "x", "y", "compute", size=40)
    for rung, words in ((rungs[0], "the ladder: batch"), (rungs[-1], "batch")):
        plot.note(f"{words} {rung['batch']:,.0f}", "compute", around=plot.place(rung["x"], rung["y"]))
