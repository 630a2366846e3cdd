"""Words and columns of `headway matmul` and `headway collective`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headway.core import columns, units
from headway.core.columns import Column
from headway.core.listing import Listing
from headway.report.output import Summary

TIMES = ("time_s", "serial_s", "compute_s", "memory_s", "network_s")


def sizes(names: Sequence[str]) -> dict[str, Column]:
    """Columns of the dimensions of the arrays."""
    return {name: Column("", f"size of dimension {name}") for name in names}


def show(key: str, value: Any, table: dict[str, Column]) -> str:
    """A cell with its unit; counts in full."""
    if value is None or isinstance(value, str):
        return value or "-"
    unit = table[key].unit if key in table else ""
    if unit == "" and float(value) < 1e6:
        return f"{value:,.6g}" if float(value) < 100 else f"{value:,.0f}"
    if unit == "flop/byte":
        return f"{value:.4g} FLOP/B"
    return units.show(value, unit, 4)


def people(rows: Sequence[dict[str, Any]], keys: Sequence[str], table: dict[str, Column]) -> Listing:
    """Rows for a text table: cells with units, columns without a value left out."""
    present = [key for key in keys if any(row.get(key) is not None for row in rows)]
    return Listing([{key: show(key, row.get(key), table) for key in present} for row in rows])


def product(rows: Any, varying: Sequence[str]) -> Summary:
    """Sentence and table of a product."""
    row_list = list(rows)
    totals = [row for row in row_list if row["kind"] == "total"]
    if not totals:
        return Summary(f"{len(row_list)} steps.", (), (), people(row_list, ("kind", "what", "bytes", "network_s"), columns.table("matmul")))
    first = totals[0]
    time = f"{units.show(first['time_s'], 's', 4)} to {units.show(first['serial_s'], 's', 4)}"
    headline = f"{time} per chip, bound by {first['bound']}: {units.show(first['flop'], 'flop', 4)}"
    headline += f" at {first['intensity']:.4g} FLOP per byte."
    if len(totals) > 1:
        headline = f"{len(totals)} points; the first: {headline}"
        keys = (*varying, *TIMES, "bound", "intensity", "attained_flops", "balanced")
        return Summary(headline, (), _notes(first), people(totals, keys, columns.table("matmul")))
    single = len([row for row in row_list if row["kind"] == "product"]) == 1
    keys = ("kind", "what", "flop", "bytes", "intensity", "compute_s", "memory_s", "network_s", "balanced")
    visible_rows = [row for row in row_list if row["kind"] != "total"] + ([] if single and len(row_list) == 2 else totals)
    return Summary(headline, (), _notes(first, single), people(visible_rows, keys, columns.table("matmul")))


def symbols(rows: Any) -> Summary:
    """Sentence and table of a product without sizes."""
    total, *steps = list(rows)
    bytes_line = [f"Bytes that it reads and writes: {total['bytes_equation']}."] if len(steps) > 1 else []
    keys = ("kind", "what", "flop_equation", "bytes_equation")
    return Summary(f"Each chip computes {total['flop_equation']} FLOP.", keys, bytes_line, Listing(steps))


def _notes(first: dict[str, Any], single: bool = False) -> list[str]:
    chips = (
        f"; all {first['chips']:,.0f} chips {units.show(first['flop_all_chips'], 'flop', 4)}, "
        f"{units.show(first['bytes_all_chips'], 'byte', 4)}"
        if first["chips"] > 1
        else ""
    )
    lines = [f"A chip: {first['flop_equation']} FLOP, {first['bytes_equation']} bytes{chips}."]
    lines += ["From full overlap to none: the longest of compute, memory and network, or their sum."]
    if first["balanced"] is not None:
        lines.append(f"Compute and memory balance at {first['balanced']:,.0f} rows (first dimension), every byte counted.")
    elif single and first["compute_s"] < first["memory_s"]:
        lines.append("No number of rows balances compute and memory here.")
    return lines


def collective(rows: Any, share: str) -> Summary:
    """Sentence and table of a collective."""
    row_list = list(rows)
    first = row_list[0]
    among = f" among {first['members']} chips" if first["members"] else ""
    headline = f"{first['operation']} of {units.show(first['bytes'], 'byte', 4)}{among} takes {units.show(first['time_s'], 's', 4)},"
    headline += f" bound by {first['bound']}."
    headline = headline if len(row_list) == 1 else f"{len(row_list)} sizes; the first: {headline}"
    share_text = (
        "(n-1)/n of the array moves (--share limit: all of it)"
        if share == "exact"
        else "the whole array moves, as on a long ring (--share exact)"
    )
    share_text = "" if first["operation"] == "send" else f"{share_text}; "
    after = [f"Time: {share_text}links at their peak, so nothing real is faster."]
    keys = ("operation", "over", "members", "bytes", "time_s", "exact_s", "limit_s", "latency_s", "transfer_s", "bound", "bandwidth",
            "latency_bound_bytes")  # fmt: skip
    return Summary(headline, (), after, people(row_list, keys, columns.table("collective")))
