"""Words of `plan`: the sentence from small clauses, what binds the best layout, what would help, notes on the user's layout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headway.core.listing import Listing, format_value
from headway.report import money, output, serving
from headway.report.words import NO_ROW, interval, number_of, sentence, value
from headway.serving.plan import problem
from headway.serving.serve import SERVE

Row = Mapping[str, Any]
ROWS = ("kind", "model", "system", "layout", "weights", "kv", "batch")
FIGURES = ("ttft_s", *serving.TPOT, "tok_per_s_user", "tok_per_s_chip", "usd_per_mtok_in", "usd_per_mtok_out", "usd_per_1k_requests")
FIRST = ("kind", "system", "layout", "batch", "tpot_s", "ttft_s", "usd_per_1k_requests", "tok_per_s_chip")  # what a narrow table keeps
POOLS = ("prefill_replicas", "prefill_tp", "prefill_ep", "prefill_dp", "prefill_pp", "prefill_cp")
THOUSAND = 1000
GOALS = {"cost": "costs least", "throughput": "does most per chip", "latency": "is fastest", "chips": "takes fewest chips"}
GOAL_NAMES = {"cost": "cost per request", "throughput": "throughput per chip", "latency": "speed of one user", "chips": "number of chips"}
INPUTS = {
    "chip.peak": "FLOP/s of the chip", "chip.hbm_bw": "HBM bandwidth", "chip.hbm": "HBM capacity", "fixed": "fixed time per kernel",
    "system.scale_up_bw": "scale-up bandwidth", "system.scale_out_bw": "scale-out bandwidth", "alpha": "latency of a collective",
}  # fmt: skip


def describe(rows: Any, plan: Any, changes: Sequence[output.Help] = ()) -> output.Summary:
    """Summary: the sentence, the table of layouts, what binds and what would help most; `changes` are those of the user's own layout."""
    plain = rows.rows()
    first = next((row for row in plain if row["kind"] == "best"), plain[0])
    points = [row | {"layout": layout(row)} for row in plain if row["kind"] != "elasticity"]
    view = [key for key in ROWS if key in ("kind", "layout", "batch") or len({row[key] for row in points}) > 1]
    return output.Summary(
        answer(first, plan), [*view, *FIGURES, "bound", "why"], people=Listing(points), binds=serving.binds(first),
        helps=[*changes] or helps(plan), remarks=[*remarks(first, plan), *current(plain), serving.DEFINED], first=FIRST,
    )  # fmt: skip


# -- the sentence ---------------------------------------------------------------------------------------------------------------


def answer(row: Row, plan: Any) -> str:
    """Sentence on the best layout, or on why nothing meets the limits."""
    if plan.fails:
        return sentence(refusal(row, plan), f": {plan.infeasible}")
    start = carried(row) if row["rate"] is not None else f"{subject(row)} {GOALS[plan.objective]}"
    lacking = money.unpriced(bests(plan), plan.best.query.assumptions.price_metric)
    return sentence(f"{start} with {layout(row)} at batch {value(row, 'batch')}: {tpot(row)}", price(row), ttft(row), last=lacking)


def bests(plan: Any) -> list[Row]:
    """The best row of each model and machine."""
    return [row for row in plan.table.rows() if row["kind"] == "best"]


def subject(row: Row) -> str:
    """Model and machine."""
    return f"{row['model']} on {row['system']}"


def refusal(row: Row, plan: Any) -> str:
    """First clause where no layout answers the question."""
    if plan.fails == "memory":
        return f"{row['model']} does not fit on {row['system']}"
    if plan.fails == "rate":
        return f"{subject(row)} does not carry the load"
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


def tpot(row: Row) -> str:
    """Clause on TPOT with its interval."""
    if row["tpot_s"] is None:
        return "no TPOT (an answer of one token)"
    return f"TPOT {value(row, 'tpot_s')} (90 %: {interval(row['tpot_lo_s'], row['tpot_hi_s'], 's')})"


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
        (before, of), (after, _) = (_judged(pick, plan.objective) for pick in (plan.best, lever.pick))
        changes.append(output.Help(change=change, effect=f"{before} -> {after} {of}, {lever.gain:.1%} better", gain=lever.gain))
    return output.ranked(changes)


def _judged(pick: Any, objective: str) -> tuple[str, str]:
    """The objective of a choice as a column of its row states it, and what it is of."""
    if objective == "latency":
        return format_value(pick.value, "token/s"), "for a user"
    if objective == "cost" and pick.query.price is not None:
        return format_value(THOUSAND * pick.value, "USD"), "per 1,000 requests"
    per_chip = pick.value if objective == "throughput" else float(pick.load.output) / pick.value
    return format_value(per_chip, "token/s"), "per chip"


def remarks(row: Row, plan: Any) -> list[str]:
    """Notes on the best layout that its sentence leaves out: formats, idle chips, pools, distance to saturation."""
    if plan.fails:
        return []
    notes = [f"{serving.formats(row)}; {serving.work(row)}", *money.machine_costs([row]), *money.load_costs(row)]
    if row["chips_idle"]:
        notes.append(f"{number_of(row['chips_idle'], 'chip')} of {row['chips']} idle, and paid for")
    if row.get("prefill_replicas") is not None:
        sizes = f"{value(row, 'prefill_chips')} chips prefill and {value(row, 'decode_chips')} decode"
        notes.append(f"{sizes}; transfer of the KV cache takes {value(row, 'transfer_s')} of TTFT")
    if row["rate"] is not None:
        most, share = format_value(row["capacity_req_per_s"], "1/s"), row["utilisation"]
        notes.append(f"this load saturates {number_of(row['replicas'], 'replica')} at {most}, {1 / share:.3g} times the rate")
    return notes


def current(rows: Sequence[Row]) -> list[str]:
    """Note that compares the user's layout with the best."""
    row = next((row for row in rows if row["kind"] == "current"), None)
    return [] if row is None else [f"your layout: {serving.point(row)}"]


def describe_several(rows: Any) -> output.Summary:
    """Summary of several plans: the best layout of each."""
    best = [row | {"layout": layout(row)} for row in rows if row["kind"] == "best"]
    if not best:
        return output.Summary(NO_ROW)
    extra = [key for key in best[0] if key not in SERVE and key not in ("input", "elasticity", "gain", "cause", "layout")]
    view = [key for key in (*extra, *ROWS, "prompt", "output", "rate") if key in ("layout", "batch") or len({row[key] for row in best}) > 1]
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
