"""Words of `plan` at a load: nodes, cost, the limit that is nearest, the confidence, and what was simulated."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Any

from headway.core.listing import Listing, format_value
from headway.report import money, output, serving
from headway.report import plan as words
from headway.report.words import number_of, sentence

MULTIPLES = re.compile(r"^(\d+x)+")  # 2x16xh100-sxm: two of 16 chips each
FIRST = ("kind", "system", "nodes", "layout", "utilisation", "p95_ttft_s", "p95_tpot_s", "confidence", "usd_per_month")
COLUMNS = ("kind", "system", "nodes", "layout", "kv", "utilisation", "concurrency", "ttft_s", "tpot_s")


def facts(checked: Any, spare: int = 0) -> dict[str, Any]:
    """Nodes of a best row, those that are spare, the most sequences of a rank that its engine admits, and what was simulated of it."""
    from headway.performance.achieved import efficiencies, platform
    from headway.simulation.check.plan_at_load import facts_of

    out: dict[str, Any] = {}
    if not checked.plan.fails:
        query = checked.plan.best.case
        system = query.system
        node = int(system.scale_up_domain or system.chips)
        engine = "other" if query.assumptions.engine == "none" else query.assumptions.engine
        out |= {"nodes": -(-int(system.chips) // node), "node_chips": node, "spare_nodes": spare}
        out["max_seqs"] = int(efficiencies().engine(engine, platform(system.chip), "max_sequences"))
    out |= facts_of(checked)
    return out if checked.holds or checked.plan.fails else out | {"why": unsure(checked)}


def unsure(checked: Any) -> str:
    """Why a layout that was simulated does not hold."""
    result = checked.checked
    if not result.stable:
        return "overloaded"
    broken = next((status for status in result.statuses if not status.is_met), None)
    if broken is not None and broken.simulated is not None:
        value, most = (format_value(number, "s") for number in (broken.simulated.value, broken.limit.most_s))
        return f"{broken.limit.words} {value}, limit {most}"
    return f"fewer than {checked.goal.confidence:.0%} confidence"


def with_facts(table: Any, facts_of_rows: Sequence[Mapping[str, Any]]) -> Any:
    """The table of a plan with more columns, which hold for its first rows alone."""
    from headway.core.table import from_rows

    blank = dict.fromkeys(key for facts_of_row in facts_of_rows for key in facts_of_row if key not in table.keys())  # noqa: SIM118
    more = [*facts_of_rows, *({} for _ in range(len(table)))]
    rows = [{**row, **blank, **more[number]} for number, row in enumerate(table.rows())]
    return dataclasses.replace(from_rows(rows, table.notes), tree=table.tree)


def describe(rows: Any, checked: Any, sized: Any = None, changes: Sequence[output.Help] = ()) -> output.Summary:
    """Summary: nodes, cost and the nearest limit; layouts; what was simulated; `changes` are those of the user's own layout."""
    plain = rows.rows()
    first = next((row for row in plain if row["kind"] == "best"), plain[0])
    points = [row | {"layout": words.layout(row)} for row in plain if row["kind"] != "elasticity"]
    simulated = [key for key in first if key.startswith(("p50_", "p90_", "p95_", "p99_", "mean_"))]
    view = [*COLUMNS, *simulated, "confidence", "usd_per_mtok_out", "usd_per_hour", "usd_per_month", "bound", "why"]
    remarks = [*_limits(checked), *_spare(first), *money.load_costs(first), *words.current(plain), serving.DEFINED]
    return output.Summary(
        answer(first, checked, sized), view, people=Listing(points), binds=serving.binds(first),
        helps=changes, remarks=remarks, first=FIRST,
    )  # fmt: skip


def answer(row: Mapping[str, Any], checked: Any, sized: Any = None) -> str:
    """The first sentence: what carries the load, for how much, and how surely."""
    plan = checked.plan
    if plan.fails:
        return _refusal(row, checked, sized)
    start = f"{_nodes(row)}{_lost(row)} {'carries' if int(row['nodes']) == 1 else 'carry'} {_load(checked.goal.offered)}"
    month = row.get("usd_per_month")
    cost = f" for ${month:,.0f}/month" if month is not None else ""
    lacking = money.unpriced(words.bests(plan), plan.best.case.assumptions.price_metric)
    if not checked.holds:
        surely = f" with {checked.goal.confidence:.0%} confidence" if checked.checked.is_met else ""
        refused = f"No layout on {row['system']} keeps every limit at {_load(checked.goal.offered)}{surely}"
        nearest, enough = _nearest(checked), _enough(sized)
        return sentence(refused, f"; {enough}" if enough else f": {nearest}" if nearest else "")
    figure = _nearest(checked)
    return sentence(f"{start}{cost}", f"; {figure}" if figure else f"; {words.tpot(row)}", last=lacking)


def _lost(row: Mapping[str, Any]) -> str:
    """Clause on the nodes that may be lost."""
    spare = int(row.get("spare_nodes") or 0)
    return f", {spare} of them spare," if spare else ""


def _spare(row: Mapping[str, Any]) -> list[str]:
    """Note on the nodes to which times and load belong where some may be lost."""
    spare = int(row.get("spare_nodes") or 0)
    if not spare:
        return []
    rest = int(row["nodes"]) - spare
    return [f"times, load and replicas are those of {number_of(rest, 'node')} with {spare} of {int(row['nodes'])} lost (--spare)"]


def _nodes(row: Mapping[str, Any]) -> str:
    """The nodes in words, such as `2 nodes of 8 h100-sxm` or `3 gb200-nvl72`."""
    nodes, chips = int(row["nodes"]), int(row["node_chips"])
    machine = MULTIPLES.sub("", row["system"])
    is_multiple = row["system"] == f"{nodes}x{machine}"
    return f"{nodes} {machine}" if chips == 1 or is_multiple else f"{number_of(nodes, 'node')} of {chips} {machine}"


def _load(offered: Any) -> str:
    if offered.users:
        return number_of(int(offered.users), "user")
    if offered.rate is None:
        return "the trace"
    return f"{format_value(offered.rate, '1/s').removesuffix('/s').strip()} requests/s"


def _refusal(row: Mapping[str, Any], checked: Any, sized: Any) -> str:
    """Why one machine does not carry the load, and how many would."""
    start = words.refusal(row, checked.plan)
    enough = _enough(sized)
    if enough:
        return sentence(f"One {row['system']} does not carry {_load(checked.goal.offered)}; {enough}")
    return sentence(start, f": {checked.plan.infeasible}")


def _enough(sized: Any) -> str:
    """Clause on the nodes that carry what a fixed machine does not; empty where none do."""
    if sized is None or not sized.holds:
        return ""
    best = sized.plan.table.row(0) | facts(sized)
    month = f" for ${best['usd_per_month']:,.0f}/month" if best["usd_per_month"] is not None else ""
    return f"{_nodes(best)} {'does' if int(best['nodes']) == 1 else 'do'}{month}"


def _nearest(checked: Any) -> str:
    """The limit that breaks first, its simulated value, and the confidence."""
    result = checked.checked
    if result is None or not result.statuses:
        return ""
    if not result.stable:
        return "the queue grows without end"
    sure = result.confidence
    status = next((status for status in result.statuses if sure is not None and status.limit == sure.tightest), result.statuses[0])
    value = "-" if status.simulated is None else format_value(status.simulated.value, "s")
    text = f"{status.limit.words} {value}, limit {format_value(status.limit.most_s, 's')}"
    return text if sure is None else f"{text}, {_share(sure.probability)} confidence"


def _share(probability: float) -> str:
    """A confidence in percent; none is certain."""
    from headway.simulation.check.check import SUREST

    if probability >= SUREST:
        return "over 99%"
    return "under 1%" if probability <= 1 - SUREST else f"{probability:.0%}"


def _limits(checked: Any) -> list[str]:
    """A note on each limit beside what was simulated."""
    result = checked.checked
    if result is None:
        return [] if checked.plan.fails else ["not simulated: limits hold for expected means alone"]
    parts = [
        f"{status.limit.words} {'-' if status.simulated is None else format_value(status.simulated.value, 's')} of "
        f"{format_value(status.limit.most_s, 's')}" for status in result.statuses
    ]  # fmt: skip
    short = ", in plain Python and therefore few" if result.is_short else ""
    return [f"simulated {result.requests:,} requests{short}: {', '.join(parts) or 'stable'}; {number_of(checked.tried, 'layout')} played"]


def verdict(checked: Any) -> dict[str, Any] | None:
    """What was simulated, for `checked` in JSON."""
    result = checked.checked
    if result is None:
        return None
    sure = result.confidence
    limits: Sequence[Mapping[str, Any]] = [
        {"limit": status.limit.flag, "most_s": status.limit.most_s, "met": bool(status.is_met),
         "simulated_s": None if status.simulated is None else status.simulated.value, "within": status.within}
        for status in result.statuses
    ]  # fmt: skip
    verdict_text = "every limit is met" if result.is_met else "a limit is broken" if result.stable else "overloaded"
    return {
        "answer": f"{result.requests:,} requests simulated: {verdict_text}.", "requests": result.requests, "stable": bool(result.stable),
        "confidence": None if sure is None else sure.probability, "limits": limits, "layouts": checked.tried,
    }  # fmt: skip
