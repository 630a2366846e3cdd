"""Pictures of one layout: time and cost against batch and context, the roofline, what fills a chip, stages, micro-batches that decode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from headway.core.errors import BadValue
from headway.core.listing import format_value
from headway.report.pictures import bars, blocks, frame, plot
from headway.report.pictures.scale import AxisScale, tick_text
from headway.report.words import Row, subject
from headway.training.timeline import decoding, idle_share

if TYPE_CHECKING:
    from headway.report.pictures.frame import Picture, View
    from headway.serving.curves import ContextCurves, Curves, DraftCurves, StepRoofline

# -- time and cost of a step --------------------------------------------------------------------------------------------------------

MEANINGS = {"compute": "compute", "weights": "weights", "KV cache": "kv", "network": "network", "moved experts": "whole"}
CEILING = 6.0  # the cost axis ends at this multiple of the cost floor: the hyperbola leaves it
HEADINGS = ("Time of one decode step", "Cost of a million output tokens")
FLOOR = "floor: the longest of compute, weights + KV and network, at peak rates"


def _floor(curves: Curves | ContextCurves) -> str:
    """What the floor is the longest of, where experts are moved of that too."""
    return FLOOR.replace("and network", "network and moved experts") if "moved experts" in curves.times else FLOOR


def batch(curves: Curves, row: Row, about: str, view: View, place: float | None = None) -> Picture:
    """Time and cost of a step against batch: floor, knee, the end of the memory, the batch asked for (`place`)."""
    last, turn = float(curves.batch[-1]), None
    title = f"No step is faster than {format_value(curves.latency_floor, 's')}"
    if curves.knee is not None and 1 < curves.knee <= last:
        turn = (curves.knee, f"knee: batch {curves.knee:,.0f}")
        title += f"; from batch {curves.knee:,.0f} on compute sets the pace"
    elif curves.turn and 1 < curves.turn[0] <= last:
        at, longer = curves.turn
        turn = (at, f"{'KV' if longer == 'KV cache' else longer} = weights at batch {at:,.0f}")
        title += f"; from batch {at:,.0f} on the {longer} takes longer than the weights"
    else:
        title += ", whatever the batch"
    marks = {"floor": turn} if place is None else {"expected": (place, f"batch {place:,.0f}"), "floor": turn}
    across = ("Batch (sequences decoded together)", curves.batch, "", "batch")
    plots = _step_plots(curves, across, marks, view, floors=(curves.latency_floor, curves.cost_floor))
    caption = "The weights are read once a step, however many share it"
    if curves.costs:
        caption += f", so their cost per token falls as 1/batch; compute and KV cache never amortise, and the cost ends at " \
                   f"{format_value(curves.cost_floor, 'USD/Mtok')} per Mtok"  # fmt: skip
    return frame.compose(view, [plots], title=title, subtitle=f"{subject(row)}, {about}; {_floor(curves)}", caption=f"{caption}.")


def context(curves: ContextCurves, row: Row, about: str, view: View, place: float | None = None) -> Picture:
    """Time and cost of a step against context; `place` is the context asked for."""
    turn = (curves.turn, f"KV = weights at {curves.turn:,.0f}") if curves.turn else None
    marks = {"floor": turn} if place is None else {"expected": (place, f"context {format_value(place, 'token')}"), "floor": turn}
    across = ("Context (tokens attended to)", curves.context, "token", "context")
    plots = _step_plots(curves, across, marks, view, window=curves.window)
    start, end = (format_value(float(curves.times["expected"][place]), "s") for place in (0, -1))
    title = f"Context makes a step slower, from {start} to {end}: the KV cache alone grows with it"
    if not curves.turn:
        title = f"Context hardly changes a step, {start} to {end}: weights outlast the KV cache throughout"
    caption = "Weights and matrix arithmetic do not depend on the context; where the memory is full, only a smaller batch allows more."
    subtitle = f"{subject(row)}, {about}, batch {curves.batch:,.0f}; {_floor(curves)}"
    return frame.compose(view, [plots], title=title, subtitle=subtitle, caption=caption)


def _step_plots(curves: Curves | ContextCurves, across: tuple[str, np.ndarray, str, str], marks: Mapping[str, tuple[float, str] | None],
                view: View, *, floors: Sequence[float | None] = (), window: float | None = None) -> list[plot.Plot]:  # fmt: skip
    """Times, and costs where a price is known, along batches or contexts; `marks` are points on lines, `floors` a level for each plot."""
    title, places, places_unit, flag = across
    last = float(places[-1])
    plots = []
    for number, (lines, unit) in enumerate([(curves.times, "s"), *([(curves.costs, "USD/Mtok")] if curves.costs else [])]):
        expected = ["expected"] if "expected" in lines else []  # the lecture's board has none
        rows = [{"at": float(places[at]), **{name.replace(" ", "_"): float(values[at]) for name, values in lines.items()}}
                for at in view.thinned(range(len(places)))]  # fmt: skip
        part_lines = [plot.Series(rows=rows, x="at", y=name.replace(" ", "_"), meaning=meaning, text=name)
                 for name, meaning in MEANINGS.items() if name in lines and float(lines[name].max()) > 0]  # fmt: skip
        parts: list[plot.Part] = [
            plot.Span(start=last if curves.capacity is None else curves.capacity, end=last, text="HBM is full"),
            plot.Series(rows=rows, x="at", y="floor", meaning="ink", text="floor", width=4), *part_lines,
            *(plot.Series(rows=rows, x="at", y=name, meaning="ink", text=name, width=1.5, dash=(5, 4)) for name in expected),
        ]  # fmt: skip
        for name, mark in marks.items():
            if mark:
                value = float(np.interp(mark[0], places, lines[name]))
                text, shape = (f"{mark[1]}: {format_value(value, unit)}", "circle") if name == "expected" else (mark[1], "diamond")
                parts.append(plot.Point(x=mark[0], y=value, text=text, shape=shape, size=90, is_free=True))
        highest = 1.05 * float(max(lines[name].max() for name in ("floor", *expected)))
        if window:
            parts.append(plot.RuleLines(x=[window], text=f"the model's longest: {window:,.0f}"))
        if floors:
            floor = floors[number]
            parts.append(plot.RuleLines(y=[floor], text=f"{('latency', 'cost')[number]} floor {format_value(floor, unit)}"))
            highest = CEILING * floor if number and floor else highest
        plots.append(plot.Plot(
            name=f"panel{number}", parts=parts, heading=HEADINGS[number], columns=2 if curves.costs else 1, flag=flag,
            x=AxisScale(title, [0.0, last], places_unit, ends=(0.0, last), most=5, log=False),
            y=AxisScale("", [0.0, highest], unit, ends=(0.0, highest), most=6, log=False),
        ))  # fmt: skip
    return plots


def drafts(curves: DraftCurves, row: Row, about: str, view: View, place: float | None = None) -> Picture:
    """Speed-up by drafts and TPOT with and without them against users, and where they stop paying; `place`: the users asked for."""
    last, end = float(curves.users[-1]), curves.end
    what = f"{int(row['draft_tokens'])} draft{'s' * (row['draft_tokens'] != 1)} a step"
    best = 1 - curves.drafting / curves.plain
    if end <= 1:
        title = f"Drafts never save time: they cost {-float(best.max()):.0%} of TPOT at least"
    elif end > last:
        title = f"Drafts save {float(best.min()):.0%} to {float(best.max()):.0%} of TPOT, whatever the load"
    else:
        title = f"Drafts save up to {float(best.max()):.0%} of TPOT, and from {end:,.0f} users on nothing"
    gain = curves.plain / curves.drafting
    rows = [{"users": float(curves.users[at]), "drafting": float(curves.drafting[at]), "plain": float(curves.plain[at]),
             "gain": float(gain[at])} for at in view.thinned(range(len(curves.users)))]  # fmt: skip
    parts: dict[str, list[plot.Part]] = {
        "gain": [plot.Series(rows=rows, x="users", y="gain", meaning="compute", text=what, width=3),
                 plot.RuleLines(y=[1.0], text="as fast without")],
        "drafting": [plot.Series(rows=rows, x="users", y="plain", meaning="muted", text="without"),
                     plot.Series(rows=rows, x="users", y="drafting", meaning="compute", text=what, width=3)],
    }  # fmt: skip
    for users, text, shape in ((end, f"equal at {end:,.0f} users", "diamond"), (place, f"{place or 0:,.0f} users", "circle")):
        for key, curve, unit in (("gain", gain, "x"), ("drafting", curves.drafting, "s")):
            if users is not None and 1 < users <= last:
                at = float(np.interp(np.log(users), np.log(curves.users), curve))
                words = text if key == "gain" and users == end else f"{text}: {tick_text(at, unit)}"
                parts[key].append(plot.Point(x=users, y=at, text=words, shape=shape, size=90, is_free=True))
    across = AxisScale("Users of a replica (log)", [1.0, last], "", ends=(1.0, last), log=True, base=2)
    panels = [
        plot.Plot(name="panel0", parts=parts["gain"], heading="Speed-up by drafts", height=300, columns=2, x=across, is_fitting=True,
                  y=AxisScale("", [*map(float, gain), 1.0], "x", log=False, room=0.08)),
        plot.Plot(name="panel1", parts=parts["drafting"], heading="TPOT (log)", height=300, columns=2, x=across, is_fitting=True,
                  y=AxisScale("", [*map(float, curves.drafting), *map(float, curves.plain)], "s", log=True)),
    ]  # fmt: skip
    caption = "Few users leave a step waiting for memory, which checks drafts for nearly nothing; of many each draft is arithmetic."
    subtitle = f"{subject(row)}, {about}; {what} by {row['drafter'] or 'what drafts'}, {row['step_tokens']:.3g} tokens a step"
    return frame.compose(view, [panels], title=title, subtitle=subtitle, caption=caption)


# -- one layout in other ways -------------------------------------------------------------------------------------------------------

OPERATORS = {"dense matmuls": "weights", "routed experts": "compute", "attention over the KV cache": "kv"}


def roofline(case: StepRoofline, view: View, subtitle: str) -> Picture:
    """The roof of a chip, FLOP/s against FLOP per byte, and the operators of a step under it."""
    operators, bandwidth, top = case.operators, case.bandwidth, max(case.peaks.values())
    if not operators:
        raise BadValue("--plot", "no operator", "a model with matmuls")
    ridge = top / bandwidth
    across = AxisScale("FLOP per byte of memory traffic (log)", [*(operator.intensity for operator in operators), ridge / 300, ridge * 8],
                       "count", log=True, most=7, room=0.03)  # fmt: skip
    x = across.axis(view.ends("x"))
    parts: list[plot.Part] = []
    for place, (name, peak) in enumerate(case.peaks.items()):
        roof = [{"x": at, "y": min(peak, bandwidth * at)} for at in (x.low, peak / bandwidth, x.high)]
        look = {"meaning": "muted", "width": 1.5, "dash": (5, 4)} if place else {"meaning": "ink", "width": 2.5}
        text = f"{format_value(peak, 'flop/s')} {name}"
        parts += [plot.Series(rows=roof, **look), plot.Note(x=x.high / 2.2, y=peak, text=text, meaning="ink")]
    parts.append(plot.Note(x=x.low * 4, y=bandwidth * x.low * 4, text=f"{format_value(bandwidth, 'byte/s')} of memory", meaning="ink"))
    parts.append(plot.RuleLines(x=[ridge], text=f"{ridge:,.0f} FLOP per byte"))
    parts += [plot.Point(x=operator.intensity, y=operator.flops, text=f"{operator.name}: {operator.intensity:,.3g} FLOP/byte",
                         meaning=OPERATORS.get(operator.name, "network"), size=120) for operator in operators]  # fmt: skip
    attainable = plot.Plot(
        name="roofline", x=across, parts=parts, heading="Attainable FLOP/s of one chip (log)", height=340,
        y=AxisScale("", [*(operator.flops for operator in operators), top * 1.2, bandwidth * x.low], "flop/s", log=True, most=7),
    )  # fmt: skip
    under = [operator.name for operator in operators if operator.intensity < ridge]
    title = "Every operator is limited by memory" if len(under) == len(operators) else f"Memory limits {', '.join(under) or 'nothing'} here"
    caption = (
        "Left of the corner an operator waits for memory, right of it for arithmetic; a larger batch moves matmuls right, not attention."
    )
    return frame.compose(view, [[attainable]], title=title[:1].upper() + title[1:], subtitle=subtitle, caption=caption)


MOST_BARS = 10


def memory(rows: Sequence[Row], names: Sequence[str], view: View, about: str) -> Picture:
    """What fills the memory of a chip, a bar for each row of `serve` or `plan`: weights, KV cache, what is left or lacking."""
    known = [(row, name) for row, name in zip(rows, names, strict=True) if row.get("weights_bytes_chip") is not None]
    if not known:
        raise BadValue("--plot", "no row with bytes", "rows with weights and KV cache per chip")
    count = min(len(known), MOST_BARS)
    shortlist = [known[round(place * (len(known) - 1) / max(count - 1, 1))] for place in range(count)]  # from the first to the last
    layouts, top = [], 0.0
    for row, name in shortlist:
        parts = [(text, row.get(key) or 0.0, meaning) for text, key, meaning in MEMORY]
        free = row["hbm_bytes_chip"] - sum(part for _, part, _ in parts[:2])
        card = row.get("memory_bytes_chip") or row["hbm_bytes_chip"]
        limit = row["hbm_bytes_chip"] + sum(part for _, part, _ in parts[2:])
        top = max(top, card, limit, sum(part for _, part, _ in parts))
        note = f"{format_value(free, 'byte')} free" if free >= 0 else f"{format_value(-free, 'byte')} too much"
        layouts.append(bars.Bar(name=name, parts=[*parts[:2], *(part for part in parts[2:] if part[1])], limit=limit, note=note))
    across = AxisScale("Bytes on the fullest chip; the mark is what the engine may use", [0.0, top], "byte", zero=True, log=False, most=6,
                       room=0.18 if not view.is_narrow else 0.04)  # fmt: skip
    first = shortlist[0][0]
    rest = format_value(max(first["hbm_bytes_chip"] - first["weights_bytes_chip"], 0.0), "byte")
    share = first["weights_bytes_chip"] / first["hbm_bytes_chip"]
    title = f"Weights take {share:.0%} of a chip's usable HBM, and leave {rest} for the KV cache"
    more = f"; {len(shortlist)} of {len(known)} rows" if len(known) > len(shortlist) else ""
    caption = "Where the bar ends before the mark, the batch or the context can grow by as much; a bar beyond it does not fit."
    drawing = bars.Bars(name="memory", bars=layouts, x=across)
    return frame.compose(view, [[drawing]], title=title, subtitle=f"{about}{more}", caption=caption)


MEMORY = (("weights", "weights_bytes_chip", "weights"), ("KV cache", "kv_bytes_chip", "kv"),
          ("activations", "activation_bytes_chip", "compute"), ("graphs, buffers", "workspace_bytes_chip", "network"))  # fmt: skip
STAGE_LINES = (("weights_bytes_chip", "weights", "weights", ()), ("kv_bytes_chip", "KV of one batch", "kv", (6, 3)),
               ("kv_busy_bytes_chip", "KV, stages busy", "kv", ()))  # fmt: skip


def stages(rows: Sequence[Row], view: View, about: str) -> Picture:
    """Weights and KV cache on a chip by the number of pipeline stages, for one batch in flight and for stages kept busy."""
    first, last = rows[0], rows[-1]
    lines = [plot.Series(rows=rows, x="pp", y=key, meaning=meaning, text=words, dash=dash, dots=30)
             for key, words, meaning, dash in STAGE_LINES]  # fmt: skip
    level = plot.RuleLines(y=[first["hbm_bytes_chip"]], text=f"usable HBM {format_value(first['hbm_bytes_chip'], 'byte')}", meaning="ink")
    by_stages = plot.Plot(
        name="stages", parts=[*lines, level], heading="Bytes on the fullest chip (log)", height=300,
        x=AxisScale("Pipeline stages (log)", [row["pp"] for row in rows], "count", log=True, base=2, most=6, room=0.02),
        y=AxisScale("", [row[key] for row in rows for key, *_ in STAGE_LINES], "byte", log=True),
    )  # fmt: skip
    start, end = (format_value(row["weights_bytes_chip"], "byte") for row in (first, last))
    title = f"{last['pp']} stages cut a chip's weights from {start} to {end}, but not the KV cache of stages kept busy"
    caption = "A stage holds fewer layers but serves as many micro-batches as there are stages, so that its KV cache stays as large."
    return frame.compose(view, [[by_stages]], title=title, subtitle=about, caption=caption)


MOST_STAGES = 8


def pipeline(stages: int, view: View, about: str) -> Picture:
    """Decoding in stages: one micro-batch leaves all stages but one idle, as many as stages fill them."""
    rows = min(stages, MOST_STAGES)
    end, panels = 3.0 * rows, []
    for count in sorted({1, max(rows // 2, 1), rows}):
        turns = [block for block in decoding(rows, count, 4) if block.start < end]
        share = idle_share(turns, rows, float(rows), end)
        heading = f"{count} micro-batch{'es' * (count > 1)} in flight: stages idle {share:.0%} of the time"
        panels.append([blocks.Blocks(name=f"decode{len(panels)}", blocks=turns, stages=rows, end=end, heading=heading, is_serving=True)])
    title = f"Decoding through {rows} stages takes {rows} micro-batches to keep them busy"
    caption = "A token's latency is the way through all stages, whatever the micro-batches: stages save memory, not time."
    return frame.compose(view, panels, title=title, subtitle=about, caption=caption)
