"""The picture of `headway compare`: the main figures of machines or models as bars below each other, a panel for each figure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headway.core.errors import BadValue
from headway.report.compare import BASIS, MACHINES, MODELS, figure
from headway.report.pictures import bars, frame, scale
from headway.report.pictures.lettering import text_width

if TYPE_CHECKING:
    from headway.report.pictures.frame import Picture, View

# Column, words, colour.
OF_MACHINES = (("peak_bf16", "BF16 peak", "compute"), ("hbm_bw", "memory bandwidth", "weights"), ("hbm", "memory", "weights"),
               ("scale_up_bw", "scale-up bandwidth", "network"), ("price", "price of a chip", "whole"),
               ("watts", "power of a chip", "whole"))  # fmt: skip
OF_MODELS = (("total_params", "parameters", "weights"), ("active_params", "parameters per token", "compute"),
             ("kv_bytes_per_token", "KV cache per token", "kv"), ("max_context", "longest context", "whole"))  # fmt: skip
MOST = 12


def figures(rows: Sequence[dict[str, Any]], basis: str, models: bool, view: View) -> Picture:
    """A panel for each main figure that is published, with a bar for each machine or model."""
    name, table, columns = ("model", MODELS, OF_MODELS) if models else ("machine", MACHINES, OF_MACHINES)
    subjects = rows[:MOST]
    known = [entry for entry in columns if any(row.get(entry[0]) for row in subjects)]
    if not known:
        raise BadValue("--plot", "these rows", "a figure that is published")
    panels = []
    for key, words, meaning in known:
        unit = table[key].unit
        lines = [
            bars.Bar(name=str(row[name]), parts=[("", row[key] or 0.0, meaning)],
                     note="not published" if row[key] is None else figure(row, key, unit, row is rows[0]))
            for row in subjects
        ]  # fmt: skip
        x = scale.AxisScale("", [0.0, *(row[key] or 0.0 for row in subjects)], unit, zero=True, log=False, most=4,
                            room=_room(lines, view))  # fmt: skip
        heading = words[:1].upper() + words[1:]
        panels.append(bars.Bars(name=key, bars=lines, x=x, heading=heading, has_key=False, thick=18, pitch=26, columns=2))
    basis_words = "" if models else f", {BASIS[basis]}"
    rest = f"; the first {MOST} of {len(rows)}" if len(rows) > MOST else ""
    caption = "Facts of the catalogue, no ranking: what a workload makes of them, plan and serve compute."
    title = _finding(subjects, name, known) + basis_words * (basis != "chip")
    subtitle = f"{', '.join(str(row[name]) for row in subjects)}; in brackets the ratio to the first{basis_words}{rest}"
    pairs = [panels[place : place + 2] for place in range(0, len(panels), 2)]
    return frame.compose(view, pairs, title=title, subtitle=subtitle, caption=caption)


def _room(lines: Sequence[bars.Bar], view: View) -> float:
    """Room for what stands after the bars, as a share of the longest."""
    names, notes = (0.0 if view.is_narrow else max(text_width(bar.name) for bar in lines)), max(text_width(bar.note) for bar in lines)
    free = frame.inner(view, names + 10, 14, 2) - notes - 12
    return (notes + 12) / max(free, notes)


def _finding(rows: Sequence[dict[str, Any]], name: str, known: Sequence[tuple[str, str, str]]) -> str:
    """Title: the figure that differs most from that of the first."""
    ratios = [(row[f"{key}_ratio"], row, words) for row in rows[1:] for key, words, _ in known if row.get(f"{key}_ratio")]
    if not ratios:
        return f"{rows[0][name]} beside {len(rows) - 1} more"
    ratio, row, words = max(ratios, key=lambda entry: abs(math.log(entry[0])))
    return f"{row[name]} has {ratio:.3g} times the {words} of {rows[0][name]}"
