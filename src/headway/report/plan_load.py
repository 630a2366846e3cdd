"""Words of `plan` at a load: nodes, cost, the limit that is nearest, the confidence, and what was simulated."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headway.core.errors import BadValue
from headway.core.listing import Listing, format_value
from headway.core.table import Table, from_rows
from headway.laws.serving.request import factor_probability
from headway.performance.achieved import efficiencies, platform
from headway.performance.calibration.in_force import calibrations
from headway.performance.calibration.posterior import half_after_a_run
from headway.report import output, serving
from headway.report import plan as words
from headway.report.pictures import frame, plot, scale
from headway.report.words import Row, number_of, sentence, subject
from headway.serving.plan.candidates import rented_together
from headway.simulation.check.check import SUREST
from headway.simulation.check.plan_at_load import candidate_of, facts_of
from headway.simulation.traffic.distributions import Constant

if TYPE_CHECKING:
    from headway.report.pictures.frame import Picture, View
    from headway.serving.plan.choice import Choice
    from headway.serving.plan.plan import LayoutPlan
    from headway.simulation.check.check import CheckedCandidate
    from headway.simulation.check.latencies import LimitStatus
    from headway.simulation.check.plan_at_load import CheckedPlan

HALF = 50  # a percentile up to which it may lie below the mean of the same sample
MULTIPLES = re.compile(r"^(\d+x)+")  # 2x16xh100-sxm: two of 16 chips each
FIRST = ("kind", "system", "nodes", "layout", "utilisation", "p95_ttft_s", "p95_tpot_s", "confidence", "usd_per_month")
COLUMNS = ("kind", "system", "nodes", "layout", "kv", "utilisation", "concurrency", "ttft_s", "tpot_s")


def facts(checked: CheckedPlan, spare: int = 0) -> dict[str, Any]:
    """Nodes of a best row, those that are spare, the most sequences of a rank that its engine admits, and what was simulated of it."""
    more = {} if checked.plan.fails else _size(checked.plan.best, spare)
    more |= facts_of(checked.checked)
    result = checked.checked
    if checked.holds or checked.plan.fails or result is None:
        return more
    return more | {"why": _why_not(result, checked.goal.confidence)}


def facts_of_rows(checked: CheckedPlan, runners_up: Sequence[CheckedPlan], spare: int = 0) -> list[dict[str, Any]]:
    """`facts` of each row of a plan's table, of which every layout was simulated; of the first rows alone where none was."""
    bests = [facts(part, spare) for part in (checked, *runners_up)]
    if not checked.rows:
        return bests
    best, added = iter(bests), list[dict[str, Any]]()
    for line, result in zip(checked.plan.lines, checked.rows, strict=True):
        more = next(best) if line.kind == "best" else {}
        if line.kind != "best" and result is not None:
            more = _size(line.pick, spare if line.kind != "current" else 0) | dict(facts_of(result))
            short = line.extra.get("fits") is not False and not result.holds(checked.goal.confidence)
            more |= {"why": line.extra.get("why") or _why_not(result, checked.goal.confidence)} if short else {}
        added.append(more)
    return added


def _size(pick: Choice, spare: int) -> dict[str, Any]:
    """Nodes of a choice, those that are spare, and the most sequences of a rank that its engine admits."""
    case, node = pick.case, node_chips(pick)
    engine = "other" if case.assumptions.engine == "none" else case.assumptions.engine
    most = int(efficiencies(case.system.chip).engine(engine, platform(case.system.chip), "max_sequences"))
    return {"nodes": -(-int(case.system.chips) // node), "node_chips": node, "spare_nodes": spare, "max_seqs": most}


def _why_not(result: CheckedCandidate, confidence: float) -> str:
    """Why a layout does not hold with the confidence, as simulated."""
    broken = next((status for status in result.statuses if not status.is_met), None)
    if not result.stable:
        return "overloaded"
    if broken is not None and broken.simulated is not None:
        return _beside(broken, ", limit ")
    return f"fewer than {confidence:.0%} confidence"


def node_chips(best: Choice) -> int:
    """Chips of one node, or of one machine that clouds rent: a card where the pools of a plan take machines of unlike sizes."""
    system = best.case.system
    if not system.rented:
        return int(system.scale_up_domain or system.chips)
    if best.prefill is not None and system.chips <= system.chip.scale_up_domain:  # one machine holds both pools
        return int(system.chips)
    layouts = [layout for layout in (best.case.layout, best.prefill) if layout is not None]
    sizes = {int(rented_together(system, int(layout.chips))) for layout in layouts}
    return sizes.pop() if len(sizes) == 1 else 1


def with_facts(table: Table, more: Sequence[Row]) -> Table:
    """The table of a plan with more columns, of as many of its first rows as have them."""
    blank = dict.fromkeys(key for facts_of_row in more for key in facts_of_row if key not in table.keys())  # noqa: SIM118
    more = [*more, *({} for _ in range(len(table)))]
    rows = [{**row, **blank, **more[number]} for number, row in enumerate(table.rows())]
    return dataclasses.replace(from_rows(rows, table.notes), tree=table.tree)


def describe(rows: Table, checked: CheckedPlan, sized: CheckedPlan | None = None, changes: Sequence[output.Help] = ()) -> output.Summary:
    """Summary: nodes, cost and the nearest limit; layouts; what was simulated; `changes` are those of the user's own layout."""
    plain = rows.rows()
    first = next((row for row in plain if row["kind"] == "best"), plain[0])
    points = words.points_of(plain)
    simulated = [key for key in first if key.startswith(("p50_", "p90_", "p95_", "p99_", "mean_"))]
    drafts = ["draft_tokens"] if len({row.get("draft_tokens") for row in points}) > 1 else []
    view = [*COLUMNS, *drafts, *simulated, "confidence", "usd_per_mtok_out", "usd_per_hour", "usd_per_month", "bound", "why"]
    result, spare, remarks = checked.checked, int(first.get("spare_nodes") or 0), []
    if result is not None:
        limits = ", ".join(_beside(status, " of ") for status in result.statuses)
        short = ", few as they break a limit by far" if result.is_short else ""
        played = number_of(checked.tried, "layout")
        remarks += chances(checked)
        remarks.append(f"simulated {result.requests:,} requests{short}: {limits or 'stable'}; {played} played")
        remarks += other_measures(first, checked, result)
    elif not checked.plan.fails:
        remarks.append("not simulated: limits hold for expected means alone")
    if spare:
        nodes = int(first["nodes"])
        name = "machine" if checked.plan.best.case.system.rented else "node"
        remarks.append(f"times, load and replicas are those of {number_of(nodes - spare, name)} with {spare} of {nodes} lost (--spare)")
    return output.Summary(
        answer(first, checked, sized), view, people=Listing(points), binds=serving.binds(first), helps=changes, first=FIRST,
        remarks=[*remarks, *serving.drafting(first), *serving.load_costs(first), *words.current(plain), serving.DEFINED],
    )  # fmt: skip


def other_measures(row: Row, checked: CheckedPlan, result: CheckedCandidate) -> list[str]:
    """Of each simulated percentile below the laws' mean of the row: the mean of what was simulated, and why the two differ."""
    means, offered = {latency.quantity: latency.mean.value for latency in result.latencies}, checked.goal.offered
    scatter, marching, notes = checked.plan.best.case.assumptions.length_cv, "", list[str]()
    if offered.users > 1 and isinstance(offered.output, Constant) and scatter:
        marching = f", for lengths that scatter (--length-cv {scatter:g}): answers of one length, as simulated, let users march in step"
    for status in result.statuses:
        limit, of = status.limit, status.limit.quantity
        law, simulated = row.get(f"{of}_s"), status.simulated
        if law and simulated and of in means and (limit.percent or 0) > HALF and simulated.value < law:
            value, mean, law = (format_value(time, "s") for time in (simulated.value, means[of], law))
            notes.append(
                f"{limit.words} {value} is below {of.upper()} {law} as it is another measure: of simulated requests, whose mean is {mean}; "
                f"{of.upper()} is the laws' mean{marching}"
            )
    return notes


def chances(checked: CheckedPlan) -> list[str]:
    """Notes: the chance of each count of nodes or cards, and how many would do once a benchmark of the user's own agrees."""
    rungs = checked.rungs
    if len(rungs) < 2:
        return []
    sizes = [_size(rung.choice, 0) for rung in rungs]
    by_card = all(size["node_chips"] == 1 or rung.choice.case.system.rented for size, rung in zip(sizes, rungs, strict=True))
    counts = [int(size["nodes"] * (size["node_chips"] if by_card else 1)) for size in sizes]
    unit = "card" if by_card else "node"
    parts = [f"{count} {_percent(rung.chance)}" for count, rung in zip(counts, rungs, strict=True)]
    parts[0] = f"{number_of(counts[0], unit)} {_percent(rungs[0].chance)}"
    note = f"chance that every limit holds, the share of drawn worlds in which all do (docs/checked_limits.md): {', '.join(parts)}"
    return [note, *_after_a_run(checked, counts, unit)]


def _after_a_run(checked: CheckedPlan, counts: Sequence[int], unit: str) -> list[str]:
    """What one benchmark of the user's own leaves of the interval, and how many nodes or cards then hold; none where there are runs."""
    sure, case = checked.checked.confidence if checked.checked else None, checked.plan.best.case
    if sure is None or sure.tightest is None or calibrations() is not None or case.assumptions.spread is not None:
        return []
    half = candidate_of(checked.plan.best).step_spread(sure.tightest.quantity)
    narrow = float(half_after_a_run(half))
    if narrow >= half:
        return []
    factors = [rung.checked.confidence.factor if rung.checked.confidence else None for rung in checked.rungs]
    after = [0.0 if factor is None else float(factor_probability(factor, narrow)) for factor in factors]
    plan = next(place for place, rung in enumerate(checked.rungs) if rung.checked is checked.checked)
    place = next((place for place, chance in enumerate(after[:plan]) if chance >= checked.goal.confidence), plan)
    run = f"one benchmark of yours that agrees (headway calibrate FILE) leaves {narrow:.2f}"
    do = f"{number_of(counts[place], unit)} would hold at {_percent(after[place])}"
    return [f"what would narrow it: steps are known to a factor of {half:.2f}, and {run}: {do}"]


def _percent(chance: float) -> str:
    """A chance, which is never certain."""
    return "under 1%" if chance <= 1 - SUREST else "over 99%" if chance >= SUREST else f"{chance:.0%}"


def answer(row: Row, checked: CheckedPlan, sized: CheckedPlan | None = None) -> str:
    """The first sentence: what carries the load, for how much, and how surely; else why not, and how many nodes would (`sized`)."""
    plan, offered = checked.plan, checked.goal.offered
    load = number_of(int(offered.users), "user") if offered.users else "the trace"
    if not offered.users and offered.rate is not None:
        load = f"{format_value(offered.rate, '1/s').removesuffix('/s').strip()} requests/s"
    enough = ""
    if sized is not None and sized.holds:
        best = sized.plan.table.row(0) | facts(sized)
        machines = _nodes(best, sized.plan)
        by_card = f", rented by the card (--on {MULTIPLES.sub('', best['system'])})" if sized.plan.best.case.system.rented else ""
        enough = f"{machines} {'does' if machines.startswith('1 ') else 'do'}{_month(best)}{by_card}"
    if plan.fails and enough:
        return sentence(f"One {row['system']} does not carry {load}; {enough}")
    if plan.fails:
        return sentence(words.refusal(row, plan), f": {plan.infeasible}")
    nearest = _nearest(checked)
    if not checked.holds:
        surely = f" with {checked.goal.confidence:.0%} confidence" if checked.checked and checked.checked.is_met else ""
        why = f"; {enough}" if enough else f": {nearest}" if nearest else ""
        return sentence(f"No layout on {row['system']} keeps every limit at {load}{surely}", why)
    spare = int(row.get("spare_nodes") or 0)
    lost = f", {spare} of them spare," if spare else ""
    lacking = serving.unpriced(words.bests(plan), plan.best.case.assumptions.price_metric)
    way = " with prefill apart" if row.get("prefill_replicas") is not None else ""
    machines = _nodes(row, plan)
    verb = "carries" if machines.startswith("1 ") else "carry"
    start = f"{machines}{lost} {verb} {load}{way}{_month(row)}"
    ratio = words.beside_other(plan.table.rows(), plan.objective)
    return sentence(start, f", {ratio}" if ratio else "", f"; {nearest or words.tpot(row)}", last=lacking)


def _month(row: Row) -> str:
    return f" for ${row['usd_per_month']:,.0f}/month" if row.get("usd_per_month") is not None else ""


def _nodes(row: Row, plan: LayoutPlan) -> str:
    """The nodes or cards in words, such as `2 nodes of 8 h100-sxm`, `9 of 16 h100-sxm`, `3 gb200-nvl72` or `8 l4 in machines of 4`."""
    nodes, chips, system = int(row["nodes"]), int(row["node_chips"]), plan.best.case.system
    machine = MULTIPLES.sub("", row["system"])
    if system.rented and chips < system.chip.scale_up_domain:
        together = "" if chips == 1 or nodes == 1 else f" in machines of {chips}"
        return f"{nodes * chips} {machine}{together}"
    if system.chips < nodes * chips:  # of the last node a part is paid for
        return f"{int(system.chips)} of {nodes * chips} {machine}"
    is_multiple = row["system"] == f"{nodes}x{machine}"
    return f"{nodes} {machine}" if chips == 1 or is_multiple else f"{number_of(nodes, 'node')} of {chips} {machine}"


def _beside(status: LimitStatus, between: str) -> str:
    """What was simulated beside its limit."""
    value = "-" if status.simulated is None else format_value(status.simulated.value, "s")
    return f"{status.limit.words} {value}{between}{format_value(status.limit.most_s, 's')}"


def _nearest(checked: CheckedPlan) -> str:
    """The limit that breaks first, its simulated value, and the confidence, which is never certain, beside the one asked for."""
    result = checked.checked
    if result is None or not result.statuses:
        return ""
    if not result.stable:
        return "the queue grows without end"
    sure = result.confidence
    if sure is None:
        return _beside(result.statuses[0], ", limit ")
    status = next((status for status in result.statuses if status.limit == sure.tightest), result.statuses[0])
    return f"{_beside(status, ', limit ')}, {_percent(sure.probability)} confidence ({checked.goal.confidence * 100:.4g}% asked)"


def verdict(checked: CheckedPlan) -> dict[str, Any] | None:
    """What was simulated, for `checked` in JSON."""
    result = checked.checked
    if result is None:
        return None
    limits = [
        {"limit": status.limit.flag, "most_s": status.limit.most_s, "met": bool(status.is_met),
         "simulated_s": None if status.simulated is None else status.simulated.value, "within": status.within}
        for status in result.statuses
    ]  # fmt: skip
    verdict_text = "every limit is met" if result.is_met else "a limit is broken" if result.stable else "overloaded"
    return {
        "answer": f"{result.requests:,} requests simulated: {verdict_text}.", "requests": result.requests, "stable": bool(result.stable),
        "confidence": None if result.confidence is None else result.confidence.probability, "limits": limits, "layouts": checked.tried,
    }  # fmt: skip


def ladder(rows: Sequence[Row], confidence: float, view: View) -> Picture:
    """The chance that every limit holds, by the number of nodes or cards: the plan, the chance asked for, and the price of each."""
    rungs = [row for row in rows if row["kind"] in ("best", "ladder") and row.get("confidence") is not None]
    rungs = sorted((row for row in rungs if row["model"] == rungs[0]["model"]), key=lambda row: row["chips"]) if rungs else []
    if len(rungs) < 2:
        raise BadValue("--plot", "ladder", "a plan whose number of nodes or cards is free, with limits, checked by simulation")
    best = next(row for row in rows if row["kind"] == "best")
    name = "the nearest" if words.is_nearest(best) else "the plan"

    def chance(row: Row) -> str:
        """In whole percent, but never rounded up to the one asked for."""
        text = _percent(row["confidence"])
        return f"{row['confidence']:.1%}" if row["confidence"] < confidence and text == f"{confidence:.0%}" else text

    points = [{"x": float(row["chips"]), "y": 100 * row["confidence"],
               "tip": f"{int(row['chips'])} chips{_month(row)}: every limit holds with a chance of {chance(row)}"}
              for row in rungs]  # fmt: skip
    parts: list[plot.Part] = [
        plot.Series(rows=points, meaning="whole", width=1, dots=55, data="rungs"),
        plot.RuleLines(y=[100 * confidence], text=f"asked for: {confidence:.0%}", data="confidence"),
        plot.Point(x=float(best["chips"]), y=100 * best["confidence"], text=f"{name}: {chance(best)}{_month(best)}",
                   meaning="compute", size=130, data="plan"),
    ]  # fmt: skip
    parts += [plot.Note(x=float(row["chips"]), y=100 * row["confidence"], most=40.0,
                        text=chance(row) + ("" if view.is_narrow else _month(row)))
              for row in rungs if row["chips"] != best["chips"]]  # fmt: skip
    drawing = plot.Plot(
        name="ladder", parts=parts, height=300, heading="Chance that every limit holds (%)",
        x=scale.AxisScale("Chips that are paid for", [row["chips"] for row in rungs], log=False, room=0.08),
        y=scale.AxisScale("", [0, 100], ends=(0, 100), log=False),
    )  # fmt: skip
    title = f"{int(best['chips'])} chips keep every limit with a chance of {chance(best)}"
    below = max((row for row in rungs if row["chips"] < best["chips"]), key=lambda row: row["chips"], default=None)
    title += f", {int(below['chips'])} with {chance(below)}" if below else ""
    caption = "The same layout in fewer and in more: the share of drawn worlds, by the interval of the steps, in which all limits hold."
    return frame.compose(view, [[drawing]], title=title, subtitle=subject(best), caption=caption)
