"""What collectives reach: rounds and shares of links, fitted through the very lines that a layout's collectives compile to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from headway.evidence.kernel_rows import Column, Kernels, Table, family, fastest, per_chip, shape_codes, table
from headway.fabric import Fabric, LinkCosts
from headway.laws.collective_lines import collective_term_s
from headway.layout import Layout
from headway.network import ONE, Routed, all_reduce_term, exchange_term, group
from headway.quantity import known

DOMAIN = 8  # of every machine measured
SUMS = ("hopper", "blackwell")  # families whose switches add
EAGER = ("eager", "eager_1us_resolution")
DISPATCHED, COMBINED = 1 + 4 / 128, 2.0  # bytes an element: FP8 with a scale for each tile of 128, and BF16
FEW_TOKENS = 512  # per chip, up to which an engine takes the kernels for few
MOST_SMS = 24  # that DeepEP's kernels for many tokens were given


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Rows that share a fabric, a group and a model: one CollectiveTerm."""

    fabric: Fabric
    members: int
    routed: Routed | None
    message: float  # bytes per token of a chip
    rows: Column
    tokens: Column


def all_reduces(folder: Path) -> tuple[Kernels, tuple[Place, ...]]:
    """The fastest all-reduce of each size inside one machine, launched from a graph; one token is one byte here."""
    rows = table(folder, "collectives")
    rows = fastest(
        rows.where((rows.op == "all_reduce") & ~np.isin(rows.columns["mode"], EAGER) & (rows.n_nodes == 1) & (rows.bytes >= 1024)),
        ("chip", "n_chips", "bytes"),
    )
    places = _places(rows, ("chip", "n_chips"), rows.bytes.astype(float), lambda row: (None, 1.0))
    return _kernels(rows, rows.latency_s, shape_codes(rows.chip, rows.n_chips, np.log2(rows.bytes) // 4)), places


def exchanges(folder: Path) -> tuple[Kernels, tuple[Place, ...]]:
    """Dispatch and combine together, by the kernel that is faster of those for few tokens and for many."""
    rows = table(folder, "moe_all_to_all")
    few = rows.tokens_per_rank <= FEW_TOKENS
    rows = rows.where(((rows.sms == 0) | ((rows.sms == MOST_SMS) & ~few)) & (rows.tokens_per_rank >= 2))
    keys = ("chip", "n_chips", "hidden", "n_experts", "topk", "tokens_per_rank")
    there, back = (fastest(rows.where(rows.phase == phase), (*keys, "impl")) for phase in ("dispatch", "combine"))
    there, back = _matched(there, back, (*keys, "impl"))
    both = Table({**there.columns, "latency_s": there.latency_s + back.latency_s})
    both = fastest(both, keys)
    places = _places(both, keys[:5], both.tokens_per_rank.astype(float), _routed)
    return _kernels(both, both.latency_s, shape_codes(*(both.columns[key] for key in keys[:5]))), places


def _matched(one: Table, other: Table, keys: tuple[str, ...]) -> tuple[Table, Table]:
    """Cases that both have, in one order."""
    together = {key: np.concatenate([one.columns[key], other.columns[key]]) for key in keys}
    codes = shape_codes(*together.values())
    mine, theirs = codes[: len(one.latency_s)], codes[len(one.latency_s) :]
    _, here, there = np.intersect1d(mine, theirs, return_indices=True)
    return one.where(here), other.where(there)


def _routed(row: Table) -> tuple[Routed, float]:
    hidden, experts, active = (float(row.columns[key][0]) for key in ("hidden", "n_experts", "topk"))
    return Routed(layers=ONE, experts=experts, active=active, dispatch=DISPATCHED * hidden), hidden * (DISPATCHED + COMBINED) / 2


def _kernels(rows: Table, seconds: Column, shape: Column) -> Kernels:
    return Kernels(chip=rows.chip, shape=shape, seconds=seconds, work=(np.arange(len(seconds)),))


def _places(rows: Table, keys: tuple[str, ...], tokens: Column, read: Callable[[Table], tuple[Routed | None, float]]) -> tuple[Place, ...]:
    codes, found = shape_codes(*(rows.columns[key] for key in keys)), []
    for code in np.unique(codes):
        here = np.flatnonzero(codes == code)
        routed, message = read(rows.where(here[:1]))
        found.append(
            Place(fabric=_fabric(str(rows.chip[here[0]])), members=int(rows.n_chips[here[0]]), routed=routed, message=message,
                  rows=here, tokens=tokens[here])
        )  # fmt: skip
    return tuple(found)


def _fabric(name: str) -> Fabric:
    one = np.array([name])
    up, out = (float(per_chip(one, fact)[0]) for fact in ("scale_up_bw", "scale_out_bw"))
    return Fabric(kind="switch", domain=DOMAIN, up=up, exchange=up, out=out, in_switch=family(name) in SUMS)


def place_s(place: Place, costs: LinkCosts) -> Any:
    """Time of the collectives of one place."""
    if place.routed is None:
        term = all_reduce_term(place.fabric, group(place.fabric, place.members, 1), place.message, costs)
    else:
        term = exchange_term(place.fabric, _layout(place.members), place.routed, place.message, costs)
    return collective_term_s(term, place.tokens)


def _layout(members: int) -> Layout:
    ways = known(members, "ep", "", "input", "measured")
    return Layout(dp=ways, ep=ways)


def predicted(places: tuple[Place, ...], costs: LinkCosts, rows: int) -> Any:
    """Time of every row."""
    found = np.ones(rows)
    for place in places:
        found[place.rows] = place_s(place, costs)
    return found
