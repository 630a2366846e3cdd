"""Pictures of `rack`: how the chips of a scale-up domain are wired, what its size costs in cables and time, an expert layer on it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from headway.core.errors import BadValue
from headway.core.listing import format_value
from headway.report.pictures import frame, plot, scale, sketch
from headway.report.words import Row

if TYPE_CHECKING:
    from headway.report.pictures.frame import Picture, View

CHIPS_DRAWN = 8
GAP = 24.0
WIRINGS = (
    ("mesh_cables", "mesh: every chip to every chip", "network", ()),
    ("star_cables", "star: one layer of switches", "compute", (6, 3)),
    ("clos_cables", "hierarchy: two layers", "weights", (2, 3)),
)
TIMES = (
    ("alltoall_s", "in one domain", "compute", ()),
    ("alltoall_racks_s", "over racks", "network", (6, 3)),
    ("latency_floor_s", "latency floor", "weights", (2, 3)),
)


def wiring(row: Row, view: View) -> Picture:
    """Three ways to join chips, with the cables each takes for the domain."""
    wide = (view.width - 2 * frame.EDGE) if view.is_narrow else (view.width - 2 * frame.EDGE - 2 * GAP) / 3
    across = [wide * (place + 0.5) / CHIPS_DRAWN for place in range(CHIPS_DRAWN)]
    angles = [2 * math.pi * place / CHIPS_DRAWN - math.pi / 2 for place in range(CHIPS_DRAWN)]
    circle = [(wide / 2 + 80.0 * math.cos(angle), 95.0 + 80.0 * math.sin(angle)) for angle in angles]
    switches, leaves, spines = ([wide * share for share in shares] for shares in ((0.3, 0.7), (0.25, 0.75), (0.32, 0.68)))
    mesh = {"dots": circle, "lines": [(*start, *end, "muted") for number, start in enumerate(circle) for end in circle[number + 1 :]]}
    star = {
        "dots": [(chip, 150) for chip in across], "lines": [(switch, 50, chip, 150, "muted") for switch in switches for chip in across],
        "boxes": [(switch - 30, 28, 60, 24, "switch", "whole") for switch in switches],
    }  # fmt: skip
    cables = []
    for number, leaf in enumerate(leaves):
        cables += [(spine, 34, leaf, 82, "muted") for spine in spines]
        cables += [(leaf, 106, chip, 160, "muted") for chip in across[number * 4 : number * 4 + 4]]
    hierarchy = {
        "dots": [(chip, 160) for chip in across], "lines": cables,
        "boxes": [*((spine - 26, 10, 52, 24, "spine", "whole") for spine in spines),
                  *((leaf - 26, 82, 52, 24, "leaf", "network") for leaf in leaves)],
    }  # fmt: skip
    panels, known = [], []
    for (key, words, _, _), (name, parts) in zip(WIRINGS, {"mesh": mesh, "star": star, "hierarchy": hierarchy}.items(), strict=True):
        count = row.get(key)
        known += [count] if count else []
        heading = f"{words}, {count:,.0f} cables" if count is not None else words
        margin = 0 if view.is_narrow else GAP / 2
        panels.append(sketch.Sketch(name=name, width=wide, height=190, heading=heading, right_margin=margin, **parts))
    title = f"{row['chips']} chips take {min(known):,.0f} to {max(known):,.0f} cables" if known else "Three ways to join chips"
    caption = "A mesh grows with the square of the chips, a star with the chips; a hierarchy pays twice beyond one layer of switches."
    subtitle = f"wired like {row['system']}; {CHIPS_DRAWN} chips are drawn, the counts are of all {row['chips']}"
    return frame.compose(view, [panels], title=title, subtitle=subtitle, caption=caption)


def sizes(rows: Sequence[Row], view: View) -> Picture:
    """Cables and the all-to-all of an expert layer against the chips of the domain."""
    plain = sorted((row for row in rows if row.get("chips") is not None), key=lambda row: row["chips"])
    if len({row["chips"] for row in plain}) < 2:
        raise BadValue("--plot", "one domain", "several sizes, such as --chips 8..1024*2")
    x = scale.AxisScale("Chips in the domain (log)", [row["chips"] for row in plain], log=True, base=2, most=6, room=0.02)
    panels = []
    for number, (lines, unit, heading) in enumerate((
        (WIRINGS, "", "Cables of the domain (log)"), (TIMES, "s", "Time of one expert layer's all-to-all, and the floor (log)")
    )):  # fmt: skip
        present = [line for line in lines if any(row.get(line[0]) for row in plain)]
        parts = [plot.Series(rows=[{"x": row["chips"], "y": row.get(key)} for row in plain], meaning=meaning, text=words.partition(":")[0],
                             dash=dash, dots=22) for key, words, meaning, dash in present]  # fmt: skip
        y = scale.AxisScale("", [row.get(key) for row in plain for key, *_ in present], unit, log=True)
        panels.append(plot.Plot(name=f"sizes{number}", x=x, y=y, parts=parts, heading=heading, columns=2, height=260))
    first, last = plain[0], plain[-1]
    title = "What the size of a domain costs"
    if last.get("mesh_growth") and last.get("star_growth"):
        growth = f"a mesh takes {last['mesh_growth']:,.0f} times the cables, a star {last['star_growth']:,.0f} times"
        title = f"From {first['chips']} to {last['chips']} chips {growth}"
    caption = (
        "Left, only the mesh grows with the square; right, a larger domain reads weights faster, and an all-to-all inside it stays short."
    )
    return frame.compose(view, [panels], title=title, subtitle=f"wired like {first['system']}, {first['model']}", caption=caption)


TOKENS = ("compute", "kv", "network", "whole")  # colour of each that is drawn
LINES = 3  # of a token, that are drawn
PITCH = 30.0  # px of a chip
FAR, NEAR = 190.0, 92.0  # px of the boxes on the right and on the left


def experts(row: Row, count: int, active: int, view: View) -> Picture:
    """A routed layer: tokens of some chips on the left, experts by chip on the right, who sends to whom."""
    visible, width = min(CHIPS_DRAWN, row["chips"]), view.width - 2 * frame.EDGE
    per_chip, far = count / row["chips"], width - FAR
    boxes, lines = [], []
    for chip in range(visible):
        first = round(chip * per_chip) + 1
        text = f"chip {chip + 1}: experts {first} to {max(round((chip + 1) * per_chip), first)}"
        boxes.append((far, chip * PITCH + 3, FAR, 24, text, "weights"))
    for token, meaning in enumerate(TOKENS):
        y = (token + 0.5) * visible * PITCH / len(TOKENS)
        chips = sorted({(token * 3 + place * (2 * token + 1)) % visible for place in range(min(active, LINES, visible))})
        lines += [(NEAR, y, far, chip * PITCH + 15, meaning) for chip in chips]
        boxes.append((0.0, y - 12, NEAR, 24, f"token of chip {token + 1}", meaning))
    spread = row["chips"] * (1 - (1 - 1 / row["chips"]) ** active)
    size, time = (format_value(row.get(key), unit) for key, unit in (("alltoall_bytes", "byte"), ("alltoall_s", "s")))
    title = f"Each token goes to {active} of {count} experts, on about {spread:.0f} of {row['chips']} chips"
    caption = f"A layer's all-to-all moves {size} a chip in {time} at batch {row['batch']:,.0f}: every chip sends to every other, " \
              "and back. The choice of experts drawn here is an illustration: a router's depends on the token."  # fmt: skip
    where = f"{row['model']} on a domain of {row['chips']} chips like {row['system']}"
    drawing = sketch.Sketch(name="experts", width=width, height=visible * PITCH + 10, boxes=boxes, lines=lines,
                            heading="The router sends each token to the chips that hold its experts")  # fmt: skip
    return frame.compose(view, [[drawing]], title=title, caption=caption,
                         subtitle=f"{where}; {visible} chips and {len(TOKENS)} tokens are drawn")  # fmt: skip
