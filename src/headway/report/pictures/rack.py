"""A scale-up domain: how its chips are wired, what its size costs in cables and time, and an expert layer on it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from headway.core.errors import BadValue
from headway.core.listing import format_value
from headway.report.pictures.frame import EDGE, Picture, View, compose
from headway.report.pictures.plot import Plot
from headway.report.pictures.scale import axis
from headway.report.pictures.sketch import Sketch

Rows = Sequence[Mapping[str, Any]]
CHIPS_DRAWN = 8
GAP = 24.0
LINES = 3  # of a token, that are drawn
WIRINGS = (
    ("mesh_cables", "mesh: every chip to every chip", "network", ()),
    ("star_cables", "star: one layer of switches", "compute", (6, 3)),
    ("clos_cables", "hierarchy: two layers", "weights", (2, 3)),
)


def wiring(row: Mapping[str, Any], view: View) -> Picture:
    """Picture of three ways to join chips, with the cables each takes for the domain."""
    wide = (view.width - 2 * EDGE) if view.is_narrow else (view.width - 2 * EDGE - 2 * GAP) / 3
    sketches = [Sketch(view, name, 190, wide) for name in ("mesh", "star", "hierarchy")]
    for drawing, sketch in zip((_mesh, _star, _hierarchy), sketches, strict=True):
        drawing(sketch)
    counts = [(words, row.get(key)) for key, words, _, _ in WIRINGS]
    headings = [f"{words}, {count:,.0f} cables" if count is not None else words for words, count in counts]
    panels = [
        sketch.panel(heading, right_margin=0 if view.is_narrow else GAP / 2) for sketch, heading in zip(sketches, headings, strict=True)
    ]
    known = [count for _, count in counts if count]
    title = f"{row['chips']} chips take {min(known):,.0f} to {max(known):,.0f} cables" if known else "Three ways to join chips"
    caption = "A mesh grows with the square of the chips, a star with the chips; a hierarchy pays twice beyond one layer of switches."
    subtitle = f"wired like {row['system']}; {CHIPS_DRAWN} chips are drawn, the counts are of all {row['chips']}"
    return compose(view, [panels], title=title, subtitle=subtitle, caption=caption)


def _mesh(sketch: Sketch) -> None:
    middle, radius = (sketch.width / 2, 95.0), 80.0
    angles = [2 * math.pi * place / CHIPS_DRAWN - math.pi / 2 for place in range(CHIPS_DRAWN)]
    places = [(middle[0] + radius * math.cos(angle), middle[1] + radius * math.sin(angle)) for angle in angles]
    for number, start in enumerate(places):
        for end in places[number + 1 :]:
            sketch.line(*start, *end, meaning="muted")
    for spot in places:
        sketch.dot(*spot)


def _chips(sketch: Sketch) -> list[float]:
    return [sketch.width * (place + 0.5) / CHIPS_DRAWN for place in range(CHIPS_DRAWN)]


def _star(sketch: Sketch) -> None:
    switches = [sketch.width * share for share in (0.3, 0.7)]
    for switch in switches:
        for chip in _chips(sketch):
            sketch.line(switch, 50, chip, 150, meaning="muted")
    for switch in switches:
        sketch.box(switch - 30, 28, 60, 24, "switch", "whole")
    for chip in _chips(sketch):
        sketch.dot(chip, 150)


def _hierarchy(sketch: Sketch) -> None:
    leaves = [sketch.width * share for share in (0.25, 0.75)]
    spines = [sketch.width * share for share in (0.32, 0.68)]
    for number, leaf in enumerate(leaves):
        for spine in spines:
            sketch.line(spine, 34, leaf, 82, meaning="muted")
        for chip in _chips(sketch)[number * 4 : number * 4 + 4]:
            sketch.line(leaf, 106, chip, 160, meaning="muted")
    for spine in spines:
        sketch.box(spine - 26, 10, 52, 24, "spine", "whole")
    for leaf in leaves:
        sketch.box(leaf - 26, 82, 52, 24, "leaf", "network")
    for chip in _chips(sketch):
        sketch.dot(chip, 160)


def sizes(rows: Rows, view: View) -> Picture:
    """Picture of cables and of the all-to-all of an expert layer against the chips of the domain."""
    plain = [row for row in rows if row.get("chips") is not None]
    if len({row["chips"] for row in plain}) < 2:
        raise BadValue("--plot", "one domain", "several sizes, such as --chips 8..1024*2")
    plain = sorted(plain, key=lambda row: row["chips"])
    cables = _lines(plain, WIRINGS, "", 0, view)
    times = (("alltoall_s", "in one domain", "compute", ()), ("alltoall_racks_s", "over racks", "network", (6, 3)),
             ("latency_floor_s", "latency floor", "weights", (2, 3)))  # fmt: skip
    waits = _lines(plain, times, "s", 1, view)
    first, last = plain[0], plain[-1]
    title = "What the size of a domain costs"
    if last.get("mesh_growth") and last.get("star_growth"):
        growth = f"a mesh takes {last['mesh_growth']:,.0f} times the cables, a star {last['star_growth']:,.0f} times"
        title = f"From {first['chips']} to {last['chips']} chips {growth}"
    caption = (
        "Left, only the mesh grows with the square; right, a larger domain reads weights faster, and an all-to-all inside it stays short."
    )
    subtitle = f"wired like {first['system']}, {first['model']}"
    panels = [cables.panel("Cables of the domain (log)"), waits.panel("Time of one expert layer's all-to-all, and the floor (log)")]
    return compose(view, [panels], title=title, subtitle=subtitle, caption=caption)


def _lines(rows: Rows, lines: Any, unit: str, number: int, view: View) -> Plot:
    present = [line for line in lines if any(row.get(line[0]) for row in rows)]
    x = axis("Chips in the domain (log)", [row["chips"] for row in rows], "", log=True, base=2, most=6, room=0.02)
    y = axis("", [row.get(key) for row in rows for key, *_ in present], unit, log=True)
    names = [words.partition(":")[0] for _, words, _, _ in present]
    plot = Plot(view, f"sizes{number}", x, y, columns=2, ends=names, height=260)
    for place, ((key, _, meaning, dash), name) in enumerate(zip(present, names, strict=True)):
        data = plot.rows(f"line{place}", [{"x": row["chips"], "y": row.get(key)} for row in rows])
        plot.curve(data, "x", "y", meaning, text=name, dash=dash)
        plot.cloud(data, "x", "y", meaning, size=22)
    return plot


def experts(row: Mapping[str, Any], count: int, active: int, view: View) -> Picture:
    """Picture of a routed layer: tokens of some chips on the left, experts by chip on the right, who sends to whom."""
    visible, tokens = min(CHIPS_DRAWN, row["chips"]), 4
    pitch = 30.0
    sketch = Sketch(view, "experts", visible * pitch + 10)
    near, far, wide = 0.0, sketch.width - 190, 92.0
    per_chip = count / row["chips"]
    for chip in range(visible):
        experts_of = f"experts {round(chip * per_chip) + 1} to {max(round((chip + 1) * per_chip), round(chip * per_chip) + 1)}"
        sketch.box(far, chip * pitch + 3, 190, 24, f"chip {chip + 1}: {experts_of}", "weights")
    targets = [
        sorted({(token * 3 + place * (2 * token + 1)) % visible for place in range(min(active, LINES, visible))}) for token in range(tokens)
    ]
    meanings = ("compute", "kv", "network", "whole")
    for token, chips in enumerate(targets):
        y = (token + 0.5) * visible * pitch / tokens
        for chip in chips:
            sketch.line(near + wide, y, far, chip * pitch + 15, meanings[token])
        sketch.box(near, y - 12, wide, 24, f"token of chip {token + 1}", meanings[token])
    spread = row["chips"] * (1 - (1 - 1 / row["chips"]) ** active)
    size, time = (format_value(row.get(key), unit) for key, unit in (("alltoall_bytes", "byte"), ("alltoall_s", "s")))
    title = f"Each token goes to {active} of {count} experts, on about {spread:.0f} of {row['chips']} chips"
    caption = f"A layer's all-to-all moves {size} a chip in {time} at batch {row['batch']:,.0f}: every chip sends to every other, " \
              "and back. The choice of experts drawn here is an illustration: a router's depends on the token."  # fmt: skip
    subtitle = f"{row['model']} on a domain of {row['chips']} chips like {row['system']}; {visible} chips and {tokens} tokens are drawn"
    panel = sketch.panel("The router sends each token to the chips that hold its experts")
    return compose(view, [[panel]], title=title, subtitle=subtitle, caption=caption)
