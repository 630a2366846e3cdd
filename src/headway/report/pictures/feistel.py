"""A Feistel step forward and back, and how changed bits spread by round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headway.core.errors import BadValue
from headway.report.pictures import grid
from headway.report.pictures.frame import EDGE, Picture, View, compose
from headway.report.pictures.lettering import text_width
from headway.report.pictures.plot import Plot
from headway.report.pictures.scale import axis
from headway.report.pictures.sketch import Sketch

Rows = Sequence[Mapping[str, Any]]
BOX = (74.0, 26.0)


def step(view: View, numbers: Mapping[str, float] | None = None) -> Picture:
    """Picture of (x, y) -> (x, y + f(x)) and of its inverse, drawn one after the other; `numbers` x, y and z for f = |x|."""
    width = min(view.width - 2 * EDGE, 560.0)
    panels = []
    halves = [("forward", "Forward", "x", "y", "z = y + f(x)", "+"), ("back", "Back", "x", "z", "y = z − f(x)", "−")]
    if numbers:
        x, y, z = (f"{numbers[name]:g}" for name in "xyz")
        halves = [("forward", "Forward", f"x = {x}", f"y = {y}", f"z = {y} + |{x}| = {z}", "+"),
                  ("back", "Back", f"x = {x}", f"z = {z}", f"y = {z} − |{x}| = {y}", "−")]  # fmt: skip
    for name, heading, stays, first, result, sign in halves:
        sketch = Sketch(view, name, 132, width)
        _half(sketch, stays, first, result, sign)
        panels.append([sketch.panel(heading)])
    title = "A Feistel step is undone by its own f, whatever f is"
    caption = "f is never inverted: x passes through unchanged, so that f(x) can be computed again and taken away."
    subtitle = "(x, y) becomes (x, y + f(x)); ciphers add by XOR, reversible networks by +"
    return compose(view, panels, title=title, subtitle=subtitle, caption=caption)


def _half(sketch: Sketch, stays: str, first: str, result: str, sign: str) -> None:
    """x goes down on one side and into f; what f gives is added to, or taken from, the other side."""
    wide, high = BOX
    broad = text_width(result) + 14
    near, far, middle = 10 + wide / 2, sketch.width - broad / 2, sketch.width / 2
    for x, start, end in ((near, high, 104), (far, high, 51), (far, 71, 104)):
        sketch.line(x, start, x, end)
    sketch.line(near, 61, middle - wide / 2, 61)
    sketch.line(middle + wide / 2, 61, far - 10, 61)
    sketch.box(near - wide / 2, 0, wide, high, stays, "weights")
    sketch.box(near - wide / 2, 104, wide, high, stays, "weights")
    sketch.box(middle - wide / 2, 48, wide, high, "f", "network")
    sketch.box(far - wide / 2, 0, wide, high, first, "kv")
    sketch.box(far - 10, 51, 20, 20, sign, "whole")
    sketch.box(far - broad / 2, 104, broad, high, result, "kv")


def avalanche(rows: Rows, view: View) -> Picture:
    """Picture of the share of bits that one flipped bit changes, by round, for each cipher."""
    known = [row for row in rows if row.get("changed_share") is not None]
    if not known:
        raise BadValue("--plot", "no rounds", "rounds to draw, as feistel avalanche has")
    ciphers = list(dict.fromkeys(row["cipher"] for row in known))
    x = axis("Rounds", [row["rounds"] for row in known], "count", log=False, room=0.03, most=8, fixed_ends=view.ends("x"))
    y = axis("", [0.0, 0.55, *(row["changed_share"] for row in known)], "share", zero=True, log=False, most=6)
    plot = Plot(view, "avalanche", x, y, height=280, ends=ciphers)
    for place, cipher in enumerate(ciphers[: len(grid.DASHES)]):
        mine = sorted((row for row in known if row["cipher"] == cipher), key=lambda row: row["rounds"])
        data = plot.rows(f"cipher{place}", [{"x": row["rounds"], "y": row["changed_share"]} for row in mine])
        meaning = ("compute", "weights", "kv", "network", "whole")[place]
        plot.curve(data, "x", "y", meaning, text=cipher, dash=grid.DASHES[place])
        plot.cloud(data, "x", "y", meaning, size=26)
    plot.level("half", known[0]["random_share"], "half of the bits, as in a random permutation")
    full = next((row for row in sorted(known, key=lambda row: row["rounds"]) if row["changed_share"] >= 0.95 * row["random_share"]), None)
    title = (
        f"One flipped bit changes half of the block after {full['rounds']:.0f} rounds" if full else "One flipped bit spreads round by round"
    )
    caption = "A cipher wants this spread; a network wants the opposite, a small change that stays small."
    subtitle = f"{', '.join(ciphers)}; mean of {known[0]['trials']:,} random blocks"
    return compose(view, [[plot.panel("Share of the output bits that change")]], title=title, subtitle=subtitle, caption=caption)
