"""Sentence and table of `sim --plan`: whether every limit is met, and latencies beside the limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headway.core.listing import Listing, format_value
from headway.report import output, serving, sim

QUANTITIES = ("ttft", "tpot", "itl", "e2e")
STATISTICS = ("mean", "p50", "p95", "p99")
MOST_NAMED = 3  # limits in the first sentence


def describe(rows: Any, statuses: Sequence[Any]) -> output.Summary:
    """Summary of a played plan: the verdict, a row for each latency, the load and what the engine meets."""
    row_list = list(rows)
    row = row_list[0]
    if row.get("fits") is False:
        return output.Summary(f"The plan does not run: {row['why']}.")
    table = [_latency(row, quantity, [status for status in statuses if status.limit.quantity == quantity]) for quantity in QUANTITIES]
    columns = ("latency", *STATISTICS, "limit", "requests within")
    remarks = [_load(row), *sim.verdict(row), *_close(statuses), *sim.sensitive(row), *sim.rejected_requests(row), sim.DEFINED]
    return output.Summary(_sentence(row, statuses), columns, people=Listing(table), remarks=remarks)


def _sentence(row: Mapping[str, Any], statuses: Sequence[Any]) -> str:
    """The verdict in at most 30 words."""
    count = f"in {row['measured']:,} requests"
    if not row["stable"]:
        return f"Overloaded: {_share(row)}, so the queue grows and {'no limit is met' if statuses else 'latencies have no value'}."
    if not statuses:
        figures = f"p95 TTFT {serving.value(row, 'p95_ttft_s')}, p95 TPOT {serving.value(row, 'p95_tpot_s')}"
        return f"The plan is stable and has no limits: {figures}, {count}."
    broken = [status for status in statuses if not status.is_met]
    parts = [_figure(status) for status in (broken or statuses)[:MOST_NAMED]]
    if not broken:
        return f"Every limit is met: {', '.join(parts)}, {count}."
    verdict = "The limit is broken" if len(statuses) == 1 else f"{len(broken)} of {len(statuses)} limits are broken"
    return f"{verdict}: {', '.join(parts)}, {count}."


def _figure(status: Any) -> str:
    simulated = "without a value" if status.simulated is None else format_value(status.simulated.value, "s")
    return f"{status.limit.words} {simulated} of {format_value(status.limit.most_s, 's')}"


def _latency(row: Mapping[str, Any], quantity: str, statuses: Sequence[Any]) -> dict[str, str]:
    """One row of the table."""
    limits = ", ".join(f"{format_value(status.limit.most_s, 's')} {status.limit.statistic}" for status in statuses)
    within = row.get(f"{quantity}_within")
    cells = {statistic: serving.value(row, f"{statistic}_{quantity}_s") for statistic in STATISTICS}
    share = "-" if within is None else f"{within:.1%}"
    return {"latency": quantity.upper(), **cells, "limit": limits or "-", "requests within": share}


def _share(row: Mapping[str, Any]) -> str:
    share = row.get("utilisation")
    if not share:
        return "the load"
    return f"load is {share:.0%} of capacity ({serving.value(row, 'capacity_req_per_s')})"


def _load(row: Mapping[str, Any]) -> str:
    users = row.get("users")
    standing = "stable" if row["stable"] else "not stable"
    if users:
        rate = serving.value(row, "req_per_s")
        return f"load: {users} users who each wait for an answer and ask again; {rate} of requests are answered."
    where = f"{serving.layout(row)}, {serving.formats(row)}"
    return f"load: {serving.value(row, 'offered_req_per_s')} of requests on {where}; {_share(row)}, {standing}."


def _close(statuses: Sequence[Any]) -> list[str]:
    """Line on limits within the sampling error."""
    close = [status.limit.words for status in statuses if status.is_close]
    if not close:
        return []
    return [f"{' and '.join(close)}: the limit lies within the error of so few requests; more --requests decide."]
