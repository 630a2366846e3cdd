"""Words of `plan` at a load: nodes, cost, the limit that is nearest, the confidence, and what was simulated."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headway.core.listing import Listing, format_value
from headway.core.table import Table, from_rows
from headway.laws.step.layer_terms import replica_chips
from headway.performance.achieved import efficiencies, platform
from headway.report import output, serving
from headway.report import plan as words
from headway.report.words import Row, number_of, sentence
from headway.serving.plan.candidates import rented_together
from headway.simulation.check.check import SUREST
from headway.simulation.check.plan_at_load import facts_of

if TYPE_CHECKING:
    from headway.serving.plan.choice import Choice
    from headway.serving.plan.plan import LayoutPlan
    from headway.simulation.check.check import CheckedCandidate
    from headway.simulation.check.latencies import LimitStatus
    from headway.simulation.check.plan_at_load import CheckedPlan

MULTIPLES = re.compile(r"^(\d+x)+")  # 2x16xh100-sxm: two of 16 chips each
FIRST = ("kind", "system", "nodes", "layout", "utilisation", "p95_ttft_s", "p95_tpot_s", "confidence", "usd_per_month")
DEGREES = ("tp", "cp", "dp", "pp")  # whose product is a replica's chips
COLUMNS = ("kind", "system", "nodes", "layout", "kv", "utilisation", "concurrency", "ttft_s", "tpot_s")


def facts(checked: CheckedPlan, spare: int = 0) -> dict[str, Any]:
    """Nodes of a best row, those that are spare, the most sequences of a rank that its engine admits, and what was simulated of it."""
    more: dict[str, Any] = {}
    if not checked.plan.fails:
        case = checked.plan.best.case
        system, engine = case.system, "other" if case.assumptions.engine == "none" else case.assumptions.engine
        node = node_chips(checked.plan.best)
        more |= {"nodes": -(-int(system.chips) // node), "node_chips": node, "spare_nodes": spare}
        more["max_seqs"] = int(efficiencies().engine(engine, platform(system.chip), "max_sequences"))
    more |= facts_of(checked)
    result = checked.checked
    if checked.holds or checked.plan.fails or result is None:
        return more
    broken = next((status for status in result.statuses if not status.is_met), None)
    if not result.stable:
        why = "overloaded"
    elif broken is not None and broken.simulated is not None:
        why = _beside(broken, ", limit ")
    else:
        why = f"fewer than {checked.goal.confidence:.0%} confidence"
    return more | {"why": why}


def node_chips(best: Choice) -> int:
    """Chips of one node, or of one machine that clouds rent: a card where the pools of a plan take machines of unlike sizes."""
    system = best.case.system
    if not system.rented:
        return int(system.scale_up_domain or system.chips)
    layouts = [layout for layout in (best.case.layout, best.prefill) if layout is not None]
    sizes = {int(rented_together(system, replica_chips(*(int(getattr(layout, name)) for name in DEGREES)))) for layout in layouts}
    return sizes.pop() if len(sizes) == 1 else 1


def with_facts(table: Table, facts_of_rows: Sequence[Row]) -> Table:
    """The table of a plan with more columns, which hold for its first rows alone."""
    blank = dict.fromkeys(key for facts_of_row in facts_of_rows for key in facts_of_row if key not in table.keys())  # noqa: SIM118
    more = [*facts_of_rows, *({} for _ in range(len(table)))]
    rows = [{**row, **blank, **more[number]} for number, row in enumerate(table.rows())]
    return dataclasses.replace(from_rows(rows, table.notes), tree=table.tree)


def describe(rows: Table, checked: CheckedPlan, sized: CheckedPlan | None = None, changes: Sequence[output.Help] = ()) -> output.Summary:
    """Summary: nodes, cost and the nearest limit; layouts; what was simulated; `changes` are those of the user's own layout."""
    plain = rows.rows()
    first = next((row for row in plain if row["kind"] == "best"), plain[0])
    points = [row | {"layout": words.layout(row)} for row in plain if row["kind"] != "elasticity"]
    simulated = [key for key in first if key.startswith(("p50_", "p90_", "p95_", "p99_", "mean_"))]
    drafts = ["draft_tokens"] if len({row.get("draft_tokens") for row in points}) > 1 else []
    view = [*COLUMNS, *drafts, *simulated, "confidence", "usd_per_mtok_out", "usd_per_hour", "usd_per_month", "bound", "why"]
    result, spare, remarks = checked.checked, int(first.get("spare_nodes") or 0), []
    if result is not None:
        limits = ", ".join(_beside(status, " of ") for status in result.statuses)
        short = ", in plain Python and therefore few" if result.is_short else ""
        played = number_of(checked.tried, "layout")
        remarks.append(f"simulated {result.requests:,} requests{short}: {limits or 'stable'}; {played} played")
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


def answer(row: Row, checked: CheckedPlan, sized: CheckedPlan | None = None) -> str:
    """The first sentence: what carries the load, for how much, and how surely; else why not, and how many nodes would (`sized`)."""
    plan, offered = checked.plan, checked.goal.offered
    load = number_of(int(offered.users), "user") if offered.users else "the trace"
    if not offered.users and offered.rate is not None:
        load = f"{format_value(offered.rate, '1/s').removesuffix('/s').strip()} requests/s"
    enough = ""
    if sized is not None and sized.holds:
        best = sized.plan.table.row(0) | facts(sized)
        enough = f"{_nodes(best, sized.plan)} {'does' if int(best['nodes']) == 1 else 'do'}{_month(best)}"
    if plan.fails and enough:
        return sentence(f"One {row['system']} does not carry {load}; {enough}")
    if plan.fails:
        return sentence(words.refusal(row, plan), f": {plan.infeasible}")
    nearest = _nearest(checked.checked)
    if not checked.holds:
        surely = f" with {checked.goal.confidence:.0%} confidence" if checked.checked and checked.checked.is_met else ""
        why = f"; {enough}" if enough else f": {nearest}" if nearest else ""
        return sentence(f"No layout on {row['system']} keeps every limit at {load}{surely}", why)
    spare = int(row.get("spare_nodes") or 0)
    lost = f", {spare} of them spare," if spare else ""
    lacking = serving.unpriced(words.bests(plan), plan.best.case.assumptions.price_metric)
    start = f"{_nodes(row, plan)}{lost} {'carries' if int(row['nodes']) == 1 else 'carry'} {load}{_month(row)}"
    return sentence(start, f"; {nearest or words.tpot(row)}", last=lacking)


def _month(row: Row) -> str:
    return f" for ${row['usd_per_month']:,.0f}/month" if row.get("usd_per_month") is not None else ""


def _nodes(row: Row, plan: LayoutPlan) -> str:
    """The nodes or cards in words, such as `2 nodes of 8 h100-sxm`, `3 gb200-nvl72`, `5 l4` or `8 l4 in machines of 4`."""
    nodes, chips, system = int(row["nodes"]), int(row["node_chips"]), plan.best.case.system
    machine = MULTIPLES.sub("", row["system"])
    if system.rented and chips < system.chip.scale_up_domain:
        together = "" if chips == 1 or nodes == 1 else f" in machines of {chips}"
        return f"{nodes * chips} {machine}{together}"
    is_multiple = row["system"] == f"{nodes}x{machine}"
    return f"{nodes} {machine}" if chips == 1 or is_multiple else f"{number_of(nodes, 'node')} of {chips} {machine}"


def _beside(status: LimitStatus, between: str) -> str:
    """What was simulated beside its limit."""
    value = "-" if status.simulated is None else format_value(status.simulated.value, "s")
    return f"{status.limit.words} {value}{between}{format_value(status.limit.most_s, 's')}"


def _nearest(result: CheckedCandidate | None) -> str:
    """The limit that breaks first, its simulated value, and the confidence, which is never certain."""
    if result is None or not result.statuses:
        return ""
    if not result.stable:
        return "the queue grows without end"
    sure = result.confidence
    if sure is None:
        return _beside(result.statuses[0], ", limit ")
    status = next((status for status in result.statuses if status.limit == sure.tightest), result.statuses[0])
    share = "under 1%" if sure.probability <= 1 - SUREST else f"{sure.probability:.0%}"
    share = "over 99%" if sure.probability >= SUREST else share
    return f"{_beside(status, ', limit ')}, {share} confidence"


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
