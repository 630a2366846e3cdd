"""`headway price --case NAME`: cost account of a published day, computed and as stated."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from headway.answers import arguments
from headway.core import schema
from headway.core.columns import Column
from headway.core.errors import BadValue
from headway.core.listing import Listing, format_value
from headway.core.trace import record
from headway.economics.price.published_day import STATED_COLUMNS, Account, account, case
from headway.report import output
from headway.report.words import sentence

COLUMNS = {
    "quantity": Column("", "what follows from the published figures"),
    "value": Column("", "its value in SI, in the row's unit"),
    "unit": Column("", "unit of value and stated"),
    "stated": Column("", "the same as its operator states it"),
    "over_stated": Column("", "value over stated"),
    "about": Column("", "what it is"),
}
VIEW = ("quantity", "value", "stated", "over_stated", "about")


def run(args: Any) -> output.Answer:
    """Answer with a row per figure of the account."""
    day = case(args.case, arguments.catalog(args))
    rows = list(_rows(day))

    def tree(row: Mapping[str, Any], key: str) -> Any:
        if key != "value":
            raise BadValue("--explain", key, "value, of the row that --where leaves: --where 'quantity = cost_output' --explain value")
        with record():
            return getattr(account(day), row["quantity"])

    notes = [f"{day.nodes.source}, {day.nodes.date}; chips at {format_value(float(day.chip_price), 'USD/s')}: {day.chip_price.source}"]
    return output.Answer(Listing(rows, tree=tree), columns=COLUMNS, notes=notes, describe=lambda table: _describe(table, day))


def _rows(day: Any) -> Any:
    marks, day_account = schema.fields(Account), account(day)
    for name in (field.name for field in dataclasses.fields(day_account)):
        value, stated_value = getattr(day_account, name), getattr(day, STATED_COLUMNS[name]) if name in STATED_COLUMNS else None
        row: dict[str, Any] = {"quantity": name, "value": float(value), "unit": marks[name][0].unit}
        row |= {"stated": None if stated_value is None else float(stated_value)}
        yield row | {"over_stated": None if stated_value is None else float(value / stated_value), "about": marks[name][0].help}


def _describe(table: Any, day: Any) -> output.Summary:
    """Summary: the account in one sentence, then the figures."""
    rows = {row["quantity"]: row for row in table}
    people = [{**row, "value": _cell(row, "value"), "stated": _cell(row, "stated"), "over_stated": _over(row)} for row in rows.values()]
    if not {"cost", "revenue", "gross_margin", "nodes"} <= rows.keys():
        return output.Summary(sentence(f"{day.title}, {day.window}"), VIEW, people=Listing(people))
    cost, revenue, nodes = (_cell(rows[name], "value") for name in ("cost", "revenue", "nodes"))
    headline = f"{day.title}, {day.window}: cost {cost}, revenue {revenue}, margin {rows['gross_margin']['value']:.1%}"
    identity = f"its own rates imply {nodes} nodes, {_cell(rows['nodes'], 'stated')} are stated: the rates are means over the window"
    return output.Summary(sentence(headline), VIEW, people=Listing(people), remarks=[identity])


def _cell(row: Mapping[str, Any], key: str) -> str:
    """Text of a figure; large sums in whole dollars."""
    value = row[key]
    if value is not None and row["unit"] == "USD":
        return f"${value:,.0f}"
    return f"{value:.5g}" if value is not None and not row["unit"] and abs(value) < 1000 else format_value(value, row["unit"])


def _over(row: Mapping[str, Any]) -> str:
    return "-" if row["over_stated"] is None else f"{row['over_stated']:.5f}"
