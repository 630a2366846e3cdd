"""Words of `plan`: the sentence from small clauses, what binds the best layout, what would help, notes on the user's layout."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from headway.core.errors import BadValue
from headway.core.listing import Listing, format_value
from headway.report import output, serving
from headway.report.pictures import bars, frame, plot, scale
from headway.report.words import NO_ROW, Row, number_of, sentence, subject, value, with_ends
from headway.serving.plan import problem
from headway.serving.plan.candidates import PLAIN_WITHIN
from headway.serving.serve import DRAFTS, SERVE

if TYPE_CHECKING:
    from headway.report.pictures.frame import Picture, View

ROWS = ("kind", "model", "system", "layout", "weights", "kv", "draft_tokens", "batch")
FIGURES = ("ttft_s", *serving.TPOT, "tok_per_s_user", "tok_per_s_chip", "usd_per_mtok_in", "usd_per_mtok_out", "usd_per_1k_requests")
FIRST = ("kind", "system", "layout", "batch", "tpot_s", "ttft_s", "usd_per_1k_requests", "tok_per_s_chip")  # what a narrow table keeps
POOLS = ("prefill_replicas", "prefill_tp", "prefill_ep", "prefill_dp", "prefill_pp", "prefill_cp")
THOUSAND = 1000
GOALS = {"cost": "costs least per request", "throughput": "does most per chip", "latency": "is fastest", "chips": "takes fewest chips"}
POOLINGS = {"together": "one pool", "apart": "prefill apart"}  # kinds of row of the way that is not the best
MORE = {"cost": ("cheaper", "cheap"), "throughput": ("more", "much"), "latency": ("faster", "fast"), "chips": ("fewer", "few")}
GOAL_NAMES = {"cost": "cost per request", "throughput": "throughput per chip", "latency": "speed of one user", "chips": "number of chips"}
INPUTS = {
    "chip.peak": "FLOP/s of the chip", "chip.hbm_bw": "HBM bandwidth", "chip.hbm": "HBM capacity", "fixed": "fixed time per kernel",
    "system.scale_up_bw": "scale-up bandwidth", "system.scale_out_bw": "scale-out bandwidth", "alpha": "latency of a collective",
}  # fmt: skip


def describe(rows: Any, plan: Any, changes: Sequence[output.Help] = ()) -> output.Summary:
    """Summary: the sentence, the table of layouts, what binds and what would help most; `changes` are those of the user's own layout."""
    plain = rows.rows()
    first = next((row for row in plain if row["kind"] == "best"), plain[0])
    points = points_of(plain)
    view = [key for key in ROWS if key in ("kind", "layout", "batch") or len({row.get(key) for row in points}) > 1]
    return output.Summary(
        answer(first, plan), [*view, *FIGURES, "bound", "why"], people=Listing(points), binds=serving.binds(first),
        helps=[*changes] or helps(plan), first=FIRST,
        remarks=[*remarks(first, plan), *current(plain), *serving.at_risk(plain), serving.DEFINED],
    )  # fmt: skip


def is_nearest(row: Row) -> bool:
    """Whether a row stands where the best would, of a plan that no layout answers: the nearest, with why it falls short."""
    return row["kind"] == "best" and bool(row.get("why"))


def points_of(rows: Sequence[Row]) -> list[Row]:
    """Layouts of a plan for people: each in words, and the best by its name only where it is an answer."""
    points = [{**row, "layout": layout(row)} for row in rows if row["kind"] != "elasticity"]
    return [{**row, "kind": "nearest"} if is_nearest(row) else row for row in points]


# -- the sentence ---------------------------------------------------------------------------------------------------------------


def answer(row: Row, plan: Any) -> str:
    """Sentence on the best layout, or on why nothing meets the limits."""
    if plan.fails:
        return sentence(refusal(row, plan), f": {plan.infeasible}")
    start = carried(row) if row["rate"] is not None else f"{subject(row)} {GOALS[plan.objective]}"
    lacking = serving.unpriced(bests(plan), plan.best.case.assumptions.price_metric)
    ratio = beside_other(plan.table.rows(), plan.objective)
    if not ratio:
        where = f"{layout(row)}{drafts(row)} at batch {value(row, 'batch')}"
        return sentence(f"{start} with {where}: {tpot(row)}", price(row), ttft(row), last=lacking)
    way = f"prefill apart ({layout(row)})" if row.get("prefill_replicas") is not None else layout(row)  # batches stand in the table
    mean = "no TPOT" if row["tpot_s"] is None else f"TPOT {value(row, 'tpot_s')}"  # its ends are in the table, for which no words are left
    return sentence(f"{start} with {way}{drafts(row)}, {ratio}: {mean}", price(row), ttft(row), last=lacking)


def beside_other(rows: Sequence[Row], objective: str) -> str:
    """Clause on how much better the best is than the other way, prefill apart or one pool; empty where one way was searched.

    >>> [beside_other([{}, {"kind": "apart", "fits": True, "gain": gain}], "cost") for gain in (0.9, 1.4)]
    ['as prefill apart keeps no such limits', '1.4 times cheaper than prefill apart']
    """
    row = next((row for row in rows[1:2] if row["kind"] in POOLINGS), None)
    if row is None:
        return ""
    if not row["fits"] or row["gain"] < 1.0 - PLAIN_WITHIN:  # what is better by more was left out for its limits
        return f"as {POOLINGS[row['kind']]} keeps no such limits"
    more, same = MORE[objective]
    times = f"{row['gain']:.3g}"
    return f"as {same} as {POOLINGS[row['kind']]}" if float(times) <= 1.0 else f"{times} times {more} than {POOLINGS[row['kind']]}"


def bests(plan: Any) -> list[Row]:
    """The best row of each model and machine."""
    return [row for row in plan.table.rows() if row["kind"] == "best"]


def refusal(row: Row, plan: Any) -> str:
    """First clause where no layout answers the question."""
    if plan.fails == "memory":
        return f"{row['model']} does not fit on {row['system']}"
    if plan.fails == "rate":
        return f"{subject(row)} does not carry the load"
    if not limits(plan.slo):
        return f"{subject(row)} has no two pools"
    return f"Nothing meets {limits(plan.slo)} for {subject(row)}"


def limits(slo: Any) -> str:
    """The limits that the user gave."""
    return " and ".join(f"{problem.LIMIT_NAMES[name]} <= {format_value(limit, 's')}" for name, limit in problem.limits(slo).items())


def carried(row: Row) -> str:
    """Clause on the chips that carry a rate, and on how full they are."""
    busy = number_of(row["chips"] - row["chips_idle"], "chip")
    return f"{busy} of {row['system']} carry {format_value(row['rate'], '1/s')} at {row['utilisation']:.0%} load"


def layout(row: Row) -> str:
    """Layout of a row; of pools the prefill layout first."""
    if row.get("prefill_replicas") is None:
        return serving.layout(row)
    first = serving.layout({key.removeprefix("prefill_"): int(row[key]) for key in POOLS})
    return f"{first} + {serving.layout(row)}".replace(" ", ",").replace(",+,", " + ")


def drafts(row: Row) -> str:
    """Clause on the drafts of a step, where some were searched."""
    count = row.get("draft_tokens")
    return "" if count is None else f", {number_of(int(count), 'draft')} a step" if count else ", no drafts"


def tpot(row: Row) -> str:
    """Clause on TPOT with its interval."""
    if row["tpot_s"] is None:
        return "no TPOT (an answer of one token)"
    return f"TPOT {with_ends(row['tpot_s'], row['tpot_lo_s'], row['tpot_hi_s'], 's')}"


def ttft(row: Row) -> str:
    """Clause on TTFT."""
    return f", TTFT {value(row, 'ttft_s')}"


def price(row: Row) -> str:
    """Clause on the cost of requests, which the plan makes least."""
    return "" if row.get("usd_per_1k_requests") is None else f", {value(row, 'usd_per_1k_requests')} per 1,000 requests"


# -- below the table ------------------------------------------------------------------------------------------------------------


def helps(plan: Any) -> list[output.Help]:
    """1 % of an input by its flag, planned again: what the objective is then."""
    changes = []
    for lever in plan.levers:
        change = f"1 % {'more' if lever.percent > 0 else 'less'} {INPUTS[lever.input]} ({lever.flags})"
        (before, of), (after, _) = (judged(pick, plan.objective) for pick in (plan.best, lever.pick))
        changes.append(output.Help(change=change, effect=f"{before} -> {after} {of}, {lever.gain:.1%} better", gain=lever.gain))
    return output.ranked(changes)


def judged(pick: Any, objective: str) -> tuple[str, str]:
    """The objective of a choice as a column of its row states it, and what it is of."""
    if objective == "latency":
        return format_value(pick.value, "token/s"), "for a user"
    if objective == "cost" and pick.case.price is not None:
        return format_value(THOUSAND * pick.value, "USD"), "per 1,000 requests"
    per_chip = pick.value if objective == "throughput" else float(pick.case.load.output) / pick.value
    return format_value(per_chip, "token/s"), "per chip"


def remarks(row: Row, plan: Any) -> list[str]:
    """Notes on the best layout that its sentence leaves out: formats, idle chips, pools, distance to saturation."""
    if plan.fails:
        return []
    notes = [f"{serving.formats(row)}; {serving.work(row)}{_sizes(row)}", *serving.machine_costs([row]), *serving.load_costs(row)]
    notes += serving.drafting(row)
    if row["chips_idle"]:
        notes.append(f"{number_of(row['chips_idle'], 'chip')} of {row['chips']} idle, and paid for")
    if row["rate"] is not None:
        most, share = format_value(row["capacity_req_per_s"], "1/s"), row["utilisation"]
        notes.append(f"this load saturates {number_of(row['replicas'], 'replica')} at {most}, {1 / share:.3g} times the rate")
    return notes


def _sizes(row: Row) -> str:
    """Clause on the chips of two pools, and on the transfer between them."""
    if row.get("prefill_replicas") is None:
        return ""
    sizes = f"; {value(row, 'prefill_chips')} chips prefill and {value(row, 'decode_chips')} decode"
    return f"{sizes}, to which the KV cache takes {value(row, 'transfer_s')} of TTFT"


def current(rows: Sequence[Row]) -> list[str]:
    """Note that compares the user's layout with the best."""
    row = next((row for row in rows if row["kind"] == "current"), None)
    return [] if row is None else [f"your layout: {serving.point(row)}"]


def describe_several(rows: Any) -> output.Summary:
    """Summary of several plans: the best layout of each."""
    best = [row | {"layout": layout(row)} for row in rows if row["kind"] == "best"]
    if not best:
        return output.Summary(NO_ROW)
    extra = [key for key in best[0] if key not in (*SERVE, *DRAFTS, "input", "elasticity", "gain", "cause", "layout")]
    keys = (*extra, *ROWS, "prompt", "output", "rate")
    view = [key for key in keys if key in ("layout", "batch") or len({row.get(key) for row in best}) > 1]
    loaded = ["utilisation"] if best[0]["rate"] is not None else []
    fit = [row for row in best if row["fits"]]
    costs = sorted((row["usd_per_mtok_out"], place) for place, row in enumerate(fit) if row["usd_per_mtok_out"] is not None)
    span = ""
    if costs:
        least, most = (value(fit[place], "usd_per_mtok_out") for _, place in (costs[0], costs[-1]))
        span = f"; output costs {least} to {most} per Mtok" if least != most else f"; output costs {least} per Mtok"
    headline = sentence(f"{number_of(len(best), 'plan')}, the best layout of each; {len(fit)} meet their limits", span)
    columns = [*view, *loaded, *FIGURES, "bound", "why"]
    return output.Summary(headline, columns, people=Listing(best), remarks=[serving.DEFINED], first=(*extra, *FIRST))


# -- pictures -------------------------------------------------------------------------------------------------------------------

QUANTITIES = (("tok_per_s_chip", "Throughput (output tokens per second and chip)", "token/s"),
              ("usd_per_1k_requests", "Cost of a thousand requests", "USD"))  # fmt: skip
MARKS = {"best": ("the plan", "compute", "circle"), "together": ("one pool", "weights", "diamond"),
         "apart": ("prefill apart", "weights", "diamond"), "current": ("your layout", "network", "square")}  # fmt: skip
DECADE = 12  # times from the least to the largest cost, from which they stand on a logarithmic axis


def on_frontier(rows: Iterable[Row]) -> list[Row]:
    """Rows that the picture of the frontier shows, with their places."""
    return [{**row, "place": place} for place, row in enumerate(rows) if row["kind"] in ("frontier", *MARKS) and row.get("tok_per_s_user")]


def frontier(rows: Sequence[Row], tpot: float | None, view: View) -> Picture:
    """Speed of one user against throughput per chip and against cost: the frontier, the plan, the limit, the user's own layout."""
    points = on_frontier(rows)
    if not points:
        raise BadValue("--plot", "no layout that fits", "a plan with a layout")
    quantities = [quantity for quantity in QUANTITIES if any(row.get(quantity[0]) is not None for row in points)]
    plots = [_frontier_plot([row for row in points if row.get(key) is not None], key, heading, unit, tpot, number, len(quantities))
             for number, (key, heading, unit) in enumerate(quantities)]  # fmt: skip
    best = next((row for row in rows if row["kind"] == "best"), points[0])
    title = f"Every token of speed is paid in throughput: {format_value(best['tok_per_s_user'], 'token/s')} a user at " \
            f"{format_value(best['tok_per_s_chip'], 'token/s')} a chip"  # fmt: skip
    load = f", prompt {format_value(best['prompt'], 'token')}, output {format_value(best['output'], 'token')}"
    caption = "Each step of the line is the best layout for users who need at least that speed" \
              + (", and left of the limit no layout is fast enough for the load." if tpot else ".")  # fmt: skip
    return frame.compose(view, [plots], title=title, subtitle=f"{subject(best)}{load}; expected values at the load", caption=caption)


TIP_FIGURES = (("tok_per_s_user", "token/s", " a user"), ("tok_per_s_chip", "token/s", " a chip"),
        ("usd_per_1k_requests", "USD", " a thousand requests"), ("confidence", "share", " chance to keep the limits"))  # fmt: skip


def _tip(row: Row) -> str:
    """What a page says of a layout's point."""
    figures = [f"{scale.tick_text(row[key], unit)}{words}" for key, unit, words in TIP_FIGURES if row.get(key) is not None]
    return f"{layout(row)}, batch {row['batch']:,.0f}: {', '.join(figures)}"


def _frontier_plot(rows: Sequence[Row], key: str, heading: str, unit: str, tpot: float | None, number: int, panels: int) -> plot.Plot:
    limit = None if tpot is None else 1 / tpot
    sign = 1 if key == "tok_per_s_chip" else -1  # more throughput is better, or less cost
    front: list[Row] = []  # rows that no faster row beats: a layout of the user's may lie between those searched
    for row in sorted(rows, key=lambda row: row["tok_per_s_user"])[::-1]:
        if not front or sign * row[key] > sign * front[-1][key]:
            front.append(row)
    steps = [{"x": row["tok_per_s_user"], "y": row[key], "tip": _tip(row), "row": row["place"]} for row in reversed(front)]
    parts: list[plot.Part] = [plot.Span(start=0, end=limit or 0.0, text="slower than the limit"),
                              plot.Series(rows=steps, meaning="whole", steps="step-before", dots=28, data="front")]  # fmt: skip
    for kind, (name, meaning, shape) in MARKS.items():
        for row in [row for row in rows if row["kind"] == kind][:1]:
            name = "the nearest" if is_nearest(row) else name
            text = f"{name}: batch {row['batch']:,.0f}, {format_value(row[key], unit)}"
            parts.append(plot.Point(x=row["tok_per_s_user"], y=row[key], text=text, meaning=meaning, shape=shape, size=120, data=kind,
                                    tip=f"{name}: {_tip(row)}", row=row["place"]))  # fmt: skip
    parts += [plot.Note(x=row["tok_per_s_user"], y=row[key], text=f"batch {row['batch']:,.0f}")
              for row in (front[-1], front[0]) if row["kind"] == "frontier" and len(front) > 2]  # fmt: skip
    values = [row[key] for row in rows]
    is_log = sign < 0 and max(values) / min(values) > DECADE
    speed = "Speed that one user sees (output tokens per second)" if panels == 1 else "Speed that one user sees (tokens/s)"
    return plot.Plot(
        name=f"frontier{number}", parts=parts, heading=heading, columns=panels, height=300,
        x=scale.AxisScale(speed, [*(row["tok_per_s_user"] for row in rows), limit], zero=True, log=False, most=6, room=0.06),
        y=scale.AxisScale("", values, unit, zero=not is_log, log=is_log, room=0.08),
    )  # fmt: skip


LEAST = 0.005  # per cent per 1 %, from which an input is drawn
INPUT_MEANINGS = {"chip.peak": "compute", "chip.hbm_bw": "weights", "chip.hbm": "kv", "system.scale_up_bw": "network",
                  "system.scale_out_bw": "network", "alpha": "network"}  # fmt: skip


def tornado(rows: Sequence[Row], objective: str, view: View) -> Picture:
    """What 1 % more of each input does to the objective: bars to both sides of no change, the longest first."""
    strong = [row for row in rows if row["kind"] == "elasticity" and abs(row["elasticity"]) >= LEAST]
    ordered = sorted(strong, key=lambda row: -abs(row["elasticity"]))
    if not ordered:
        raise BadValue("--plot", "no elasticities", "a plan of one load that is met")
    changes = [row["elasticity"] for row in ordered]
    extent = max(0.1, *map(abs, changes)) * 1.25
    low = min(0.0, *changes) * 1.25 - extent / 8
    lines = [bars.Bar(name=INPUTS.get(row["input"]) or row["input"], note=f"{row['elasticity']:+.2f} %",
                      parts=[("", row["elasticity"], INPUT_MEANINGS.get(row["input"], "whole"))]) for row in ordered]  # fmt: skip
    across = scale.AxisScale("Improvement per 1 % more of the input (%)", [low, extent], ends=(low, extent), log=False, most=6)
    drawing = bars.Bars(name="tornado", bars=lines, x=across, thick=20, pitch=32, zero=True)
    title = f"{lines[0].name} counts most: 1 % of it changes the {GOAL_NAMES[objective]} by {abs(changes[0]):.2g} %"
    caption = "To the right, more of the input helps; to the left, it harms. Each bar is the plan searched again with 1 % more."
    about = subject(next(row for row in rows if row["kind"] == "best"))
    return frame.compose(view, [[drawing]], title=title[:1].upper() + title[1:], subtitle=about, caption=caption)
