"""`headway price --memory-share MACHINE`: share of memory in the price of a chip and of a machine."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from headway.answers import arguments
from headway.core import schema
from headway.core.columns import Column
from headway.core.errors import BadValue, MissingFact
from headway.core.listing import Listing, computed, format_value
from headway.core.trace import record
from headway.economics.chip_cost import CAPEX, fact, parts
from headway.economics.questions import MemoryShare
from headway.report import output
from headway.report.words import sentence

TEXTS = ("memory", "device", "date", "source")
UNITS = {"size": "byte", "usd_per_byte_lo": "USD/byte", "usd_per_byte_hi": "USD/byte", "usd_lo": "USD", "usd_hi": "USD"}
DOCS = {
    "memory": "HBM, DRAM, flash, or all of them",
    "device": "the tier whose price it has",
    "size": "bytes of the whole machine",
    "usd_per_byte_lo": "price of a byte, low end",
    "usd_per_byte_hi": "price of a byte, high end",
    "usd_lo": "cost of the memory, low end",
    "usd_hi": "cost of the memory, high end",
    "share_of_chips_lo": "share of what the chips cost to buy, low end",
    "share_of_chips_hi": "share of what the chips cost to buy, high end",
    "share_of_machine_lo": "share of what the chips cost with host, network and storage, low end",
    "share_of_machine_hi": "share of what the chips cost with host, network and storage, high end",
    "date": "date of the price",
    "source": "source of the price",
}
CLAIM = "the lecture's host says that about half of capital spending goes to memory; compare with all memory (headway lecture FS-09)"


def run(args: Any) -> output.Answer:
    """Answer with a row per memory of each machine."""
    catalog = arguments.catalog(args)
    host_memory = schema.read(args, MemoryShare, skip=("memory_share",))
    if any(isinstance(value, tuple) for value in host_memory.values()):
        raise BadValue("--dram, --flash", "a list", "one size each")
    machines = [machine for machine, _ in arguments.systems(args, args.memory_share)]
    rows = [
        (machine, number, _row(machine, part))
        for machine in machines
        for number, part in enumerate(parts(machine, **host_memory, catalog=catalog))
    ]
    if not rows:
        raise MissingFact(
            args.memory_share, "kind of HBM and its price", "of h100-sxm, h200-sxm, gb200, gb300, rubin-vr200, tpu-v7 it is known"
        )

    def tree(row: Mapping[str, Any], key: str) -> Any:
        machine, number = next((system, at) for system, at, entry in rows if all(row.get(name) == entry[name] for name in entry))
        with record():
            return computed(getattr(parts(machine, **host_memory, catalog=catalog)[number], key, None), key)

    columns = {key: Column(UNITS.get(key, ""), doc) for key, doc in DOCS.items()}
    listing = Listing([row for _, _, row in rows], tree=tree, notes=tuple(_notes(machines)))
    return output.Answer(listing, columns=columns, describe=_describe)


def _row(machine: Any, part: Any) -> dict[str, Any]:
    values = {field.name: getattr(part, field.name) for field in dataclasses.fields(part)}
    plain = {key: value if isinstance(value, str | None) else float(value) for key, value in values.items()}
    return {"system": machine.name, "chips": int(machine.chips)} | plain


def _notes(machines: list[Any]) -> list[str]:
    """Notes on the price assumed for each chip."""
    notes = []
    for machine in machines:
        capex = fact(machine.chip, CAPEX)
        note = next((row.note for row in machine.chip.costs if row.metric == CAPEX and row.note), "")
        price_text = (
            f"${float(capex):,.0f} to buy, {capex.date}, {capex.source}{f' ({note})' if note else ''}"
            if capex
            else "no price to buy it by is known"
        )
        notes.append(f"{machine.chip.name}: {price_text}")
    notes.append(CLAIM)
    return list(dict.fromkeys(notes))


def _describe(table: Any) -> output.Summary:
    """Summary: the shares in one sentence, then each memory."""
    rows = list(table)
    first = rows[0]
    chips, machine = (_share(first, f"share_of_{what}") for what in ("chips", "machine"))
    costs = f"{first['memory']} costs ${first['usd_lo']:,.0f} .. ${first['usd_hi']:,.0f}"
    share = f", {chips} of the chips' price and {machine} with host, network and storage" if chips != "-" else ""
    total = next((row for row in rows if row["memory"] == "all" and row["system"] == first["system"]), None)
    more = f"; all memory {_share(total, 'share_of_machine')} of the machine" if total and total["share_of_machine_lo"] is not None else ""
    people = [_memory_row(row) for row in rows]
    return output.Summary(sentence(f"{first['system']}: {costs}", share, more), people=Listing(people))


def _memory_row(row: Mapping[str, Any]) -> dict[str, str]:
    low, high = (f"${row[f'usd_{end}']:,.0f}" for end in ("lo", "hi"))
    shares = {"of the chips": _share(row, "share_of_chips"), "of the machine": _share(row, "share_of_machine")}
    start = {"system": row["system"], "memory": row["memory"], "size": format_value(row["size"], "byte"), "$/GB": _per_gb(row)}
    return start | {"USD": f"{low} .. {high}"} | shares | {"date": row["date"], "source": row["source"]}


def _share(row: Mapping[str, Any], name: str) -> str:
    low, high = row[f"{name}_lo"], row[f"{name}_hi"]
    return "-" if low is None else f"{low:.1%} .. {high:.1%}"


def _per_gb(row: Mapping[str, Any]) -> str:
    low, high = row["usd_per_byte_lo"], row["usd_per_byte_hi"]
    return "-" if low is None else f"{low * 1e9:.3g} .. {high * 1e9:.3g}"
