"""The sentences and tables of `headway price`: what tokens cost and sell for, what drives the width, the margin at a list price."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headway import output
from headway.cli import words
from headway.errors import BadValue
from headway.listing import Listing

BY_KIND = {"in": "fresh input", "cached": "cached input", "out": "output"}
ENDS = ("chip_price", "utilisation", "margin")
DRIVERS = {
    "estimate": "the estimate of the times",
    "chip_price": "the price of a chip",
    "utilisation": "utilisation",
    "margin": "the margin",
}
GRID_VIEW = ("price_in", "price_in_lo~price_in_hi", "price_cached", "price_out", "price_out_lo~price_out_hi", "cost_in", "cost_out",
        "prefill_share", "sheet_margin", "sheet_margin_lo~sheet_margin_hi", "tpot_s", "driver", "why")  # fmt: skip
HOW = (
    "intervals: 90 %, the estimate's own 90 % interval with the price of a chip (even in its logarithm between the ends), utilisation and "
    "margin (even between theirs), deviations of the logarithms in quadrature; ends: every input at its better or its worse end at once"
)


def describe(table: Any) -> output.Summary:
    """The sentence, a table by kind of token or by row, and what drives the width."""
    from headway.price import LAID

    rows = list(table)
    if not rows:
        return output.Summary("No row is left.")
    priced = [row for row in rows if row.get("price_out") is not None]
    if not priced:
        return output.Summary(f"{_where(rows[0])}: no price, {rows[0]['why']}.", [*LAID, "why"])
    if len(rows) == 1:
        row = rows[0]
        return output.Summary(f"{_where(row)}: {_sold(row)}.", people=_by_kind(row), after=[*_after(row), HOW])
    view = [*_varying(rows), *(key for key in GRID_VIEW if any(row.get(key.partition("~")[0]) is not None for row in rows))]
    summary = _margins(priced) or _span(priced)
    return output.Summary(f"{_where(rows[0], _varying(rows))}: {len(rows)} prices, {summary}.", view, [HOW])


def _span(rows: Sequence[Mapping[str, Any]]) -> str:
    least, most = (output.cell("price_out", pick(rows, key=lambda row: row["price_out"])) for pick in (min, max))
    return f"output from {least} to {most} per Mtok" if least != most else f"output {least} per Mtok"


def _varying(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    from headway.price import LAID

    keys = [
        key for key in rows[0] if key in (*LAID, "hit_rate", *(f"{n}{e}" for n in ENDS for e in ("", "_lo", "_hi")), "tpot", "ttft", "e2e")
    ]
    varying_keys = [key for key in keys if len({row.get(key) for row in rows}) > 1]
    for name in ENDS:  # a point is shown once
        if all(row.get(f"{name}_lo") == row.get(f"{name}_hi") for row in rows):
            varying_keys = [key for key in varying_keys if key not in (f"{name}_lo", f"{name}_hi")]
        else:
            varying_keys = [key for key in varying_keys if key != name]
    return varying_keys


def _margins(rows: Sequence[Mapping[str, Any]]) -> str:
    if rows[0].get("sheet_margin") is None:
        return ""
    ends = (pick(rows, key=lambda row: row["sheet_margin"]) for pick in (min, max))
    least, most = (f"{row['sheet_margin']:.0%} (hit rate {row['hit_rate']:.0%})" for row in ends)
    return f"the list leaves a margin of {least} to {most}"


def _where(row: Mapping[str, Any], varying: Sequence[str] = ()) -> str:
    if {"model", "system"} & set(varying):
        return "Cost to price"
    if varying:
        return f"{row['model']} on {row['system']}"
    return f"{row['model']} on {row['system']} with {_pool(row)}{words.layout(row)}, {words.formats(row)}, {words.work(row)}"


def _pool(row: Mapping[str, Any]) -> str:
    """The prefill pool, before what is then the decode pool's."""
    if row.get("prefill_replicas") is None:
        return ""
    prefill_layout = {key: int(row[f"prefill_{key}"]) for key in ("tp", "ep", "dp", "pp", "cp", "replicas")}
    return f"{int(row['prefill_chips'])} chips that prefill ({words.layout(prefill_layout)}) and {int(row['decode_chips'])} that decode: "


def _sold(row: Mapping[str, Any]) -> str:
    def price_text(kind: str) -> str:
        middle, low, high = (output.cell(f"price_{kind}{end}", row) for end in ("", "_lo", "_hi"))
        return f"{middle} per Mtok of {BY_KIND[kind]} (90 % {low} .. {high})" if low != high else f"{middle} per Mtok of {BY_KIND[kind]}"

    ends = [f"{name.replace('_', ' ')} {_interval(row, name)}" for name in ENDS]
    kinds = ", ".join(price_text(kind) for kind in BY_KIND if row.get(f"price_{kind}") is not None)
    return f"{kinds}, at {', '.join(ends)}{_at_list(row)}"


def _at_list(row: Mapping[str, Any]) -> str:
    if row.get("sheet_margin") is None:
        return ""
    middle, low, high = (row[f"sheet_margin{end}"] for end in ("", "_lo", "_hi"))
    return f"; the list leaves a margin of {middle:.0%} (90 % {low:.0%} .. {high:.0%}) at a hit rate of {row['hit_rate']:.0%}"


def _interval(row: Mapping[str, Any], name: str) -> str:
    low, high = (output.cell(f"{name}_{end}", row) for end in ("lo", "hi"))
    return low if low == high else f"{low} .. {high}"


def _by_kind(row: Mapping[str, Any]) -> Listing:
    """One row for each kind of token."""
    shares = {"in": row["prefill_share"], "cached": None, "out": row["decode_share"]}
    token_rows = []
    for kind, name in BY_KIND.items():
        if row.get(f"cost_{kind}") is None:
            continue
        cost, price = (_three(row, f"{stem}_{kind}") for stem in ("cost", "price"))
        line = {"tokens": name, "cost": cost[0], "cost 90 %": cost[1], "price": price[0], "price 90 %": price[1], "price, ends": price[2]}
        if row.get(f"sheet_{kind}") is not None:
            line["list"] = output.cell(f"sheet_{kind}", row)
        share = shares[kind]
        token_rows.append(line | {"share of a request's cost": "-" if share is None else f"{share:.0%}"})
    return Listing(token_rows)


def _three(row: Mapping[str, Any], stem: str) -> tuple[str, str, str]:
    middle, low, high, least, most = (output.cell(f"{stem}{end}", row) for end in ("", "_lo", "_hi", "_least", "_most"))
    return middle, f"{low} .. {high}", f"{least} .. {most}"


def _after(row: Mapping[str, Any]) -> list[str]:
    lines = [f"what binds a step: {row['bound']}; TPOT {output.cell('tpot_s', row)}, {output.cell('tok_per_s_chip', row)} per chip"]
    shares = {name: row.get(f"width_{name}") for name in DRIVERS}
    drivers = [f"{DRIVERS[name]} {share:.0%}" for name, share in sorted(shares.items(), key=lambda item: -(item[1] or 0)) if share]
    if drivers:
        lines.append(f"what drives the width of the price of output: {', '.join(drivers)}")
    if row["utilisation"] < 1:
        lines.append(
            f"idle hours are paid for: at a utilisation of {row['utilisation']:.0%} they are {1 - row['utilisation']:.0%} of the cost"
        )
    if row.get("power_share") is not None:
        lines.append(f"power is {_share(row, 'power_share')} of the price of a chip by the hour")
    if row.get("memory_share_lo") is not None:
        lines.append(
            f"HBM is {row['memory_share_lo']:.1%} .. {row['memory_share_hi']:.1%} of what a chip costs to buy (more with --memory-share)"
        )
    return lines


def _share(row: Mapping[str, Any], name: str) -> str:
    low, high = row[f"{name}_lo"], row[f"{name}_hi"]
    return f"{low:.1%}" if low == high else f"{low:.1%} .. {high:.1%}"


def figure(table: Any) -> dict[str, Any]:
    """Margin against hit rate at a sheet; else prices against what varies most."""
    from headway import figures

    rows = [row for row in table if row.get("price_out") is not None]
    varying = [key for key in _varying(rows) if "~" not in key and key not in words.TEXTS] if rows else []
    if not varying:
        raise BadValue("--plot", "nothing varies", "a list or a range, such as --hit 0..0.95 or --margin 0,0.4,0.8")
    x = "hit_rate" if "hit_rate" in varying else max(varying, key=lambda key: len({row[key] for row in rows}))
    ys = ("sheet_margin",) if rows[0].get("sheet_margin") is not None else ("price_in", "price_out")
    title = f"{rows[0]['model']} on {rows[0]['system']}"
    return figures.table(rows, x, ys, [key for key in varying if key != x], title, "band: 90 % interval")
