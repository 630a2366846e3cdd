"""What collectives reach: rounds and shares of links, fitted through the very lines that a layout's collectives compile to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from headway.evidence.kernel_rows import Column, KernelRows, KernelTable, family, fastest, per_chip, shape_codes, table
from headway.fabric import Fabric, LinkCosts
from headway.laws.collective_lines import collective_term_s
from headway.layout import Layout
from headway.network import UNITY, RoutedLayer, all_reduce_term, exchange_term, group
from headway.quantity import known

DOMAIN = 8  # of every machine measured
SUMS = ("hopper", "blackwell")  # families whose switches add
EAGER = ("eager", "eager_1us_resolution")
DISPATCHED, COMBINED = 1 + 4 / 128, 2.0  # bytes an element: FP8 with a scale for each tile of 128, and BF16
FEW_TOKENS = 512  # per chip, up to which an engine takes the kernels for few
MOST_SMS = 24  # that DeepEP's kernels for many tokens were given


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkRows:
    """Rows that share a fabric, a group and a model: one CollectiveTerm."""

    fabric: Fabric
    members: int
    routed: RoutedLayer | None
    message: float  # bytes per token of a chip
    rows: Column
    tokens: Column


def all_reduces(folder: Path) -> tuple[KernelRows, tuple[LinkRows, ...]]:
    """The fastest all-reduce of each size inside one machine, launched from a graph; one token is one byte here."""
    rows = table(folder, "collectives")
    rows = fastest(
        rows.where((rows.op == "all_reduce") & ~np.isin(rows.columns["mode"], EAGER) & (rows.n_nodes == 1) & (rows.bytes >= 1024)),
        ("chip", "n_chips", "bytes"),
    )
    places = _places(rows, ("chip", "n_chips"), rows.bytes.astype(float), lambda row: (None, 1.0))
    return _kernels(rows, rows.latency_s, shape_codes(rows.chip, rows.n_chips, np.log2(rows.bytes) // 4)), places


def exchanges(folder: Path) -> tuple[KernelRows, tuple[LinkRows, ...]]:
    """Dispatch and combine together, by the kernel that is faster of those for few tokens and for many."""
    rows = table(folder, "moe_all_to_all")
    few = rows.tokens_per_rank <= FEW_TOKENS
    rows = rows.where(((rows.sms == 0) | ((rows.sms == MOST_SMS) & ~few)) & (rows.tokens_per_rank >= 2))
    keys = ("chip", "n_chips", "hidden", "n_experts", "topk", "tokens_per_rank")
    dispatch, combine = (fastest(rows.where(rows.phase == phase), (*keys, "impl")) for phase in ("dispatch", "combine"))
    dispatch, combine = _matched(dispatch, combine, (*keys, "impl"))
    both = KernelTable({**dispatch.columns, "latency_s": dispatch.latency_s + combine.latency_s})
    both = fastest(both, keys)
    places = _places(both, keys[:5], both.tokens_per_rank.astype(float), _routed)
    return _kernels(both, both.latency_s, shape_codes(*(both.columns[key] for key in keys[:5]))), places


def _matched(first: KernelTable, second: KernelTable, keys: tuple[str, ...]) -> tuple[KernelTable, KernelTable]:
    """Cases that both have, in one order."""
    joined_columns = {key: np.concatenate([first.columns[key], second.columns[key]]) for key in keys}
    codes = shape_codes(*joined_columns.values())
    first_codes, second_codes = codes[: len(first.latency_s)], codes[len(first.latency_s) :]
    _, first_index, second_index = np.intersect1d(first_codes, second_codes, return_indices=True)
    return first.where(first_index), second.where(second_index)


def _routed(row: KernelTable) -> tuple[RoutedLayer, float]:
    hidden, experts, active = (float(row.columns[key][0]) for key in ("hidden", "n_experts", "topk"))
    return RoutedLayer(layers=UNITY, experts=experts, active=active, dispatch=DISPATCHED * hidden), hidden * (DISPATCHED + COMBINED) / 2


def _kernels(rows: KernelTable, seconds: Column, shape: Column) -> KernelRows:
    return KernelRows(chip=rows.chip, shape=shape, seconds=seconds, work=(np.arange(len(seconds)),))


def _places(
    rows: KernelTable, keys: tuple[str, ...], tokens: Column, read: Callable[[KernelTable], tuple[RoutedLayer | None, float]]
) -> tuple[LinkRows, ...]:
    codes, places = shape_codes(*(rows.columns[key] for key in keys)), []
    for code in np.unique(codes):
        indices = np.flatnonzero(codes == code)
        routed, message = read(rows.where(indices[:1]))
        places.append(
            LinkRows(fabric=_fabric(str(rows.chip[indices[0]])), members=int(rows.n_chips[indices[0]]), routed=routed, message=message,
                  rows=indices, tokens=tokens[indices])
        )  # fmt: skip
    return tuple(places)


def _fabric(name: str) -> Fabric:
    names = np.array([name])
    up, out = (float(per_chip(names, fact)[0]) for fact in ("scale_up_bw", "scale_out_bw"))
    return Fabric(kind="switch", domain=DOMAIN, up=up, exchange=up, out=out, in_switch=family(name) in SUMS)


def place_s(place: LinkRows, costs: LinkCosts) -> Any:
    """Time of the collectives of one place."""
    if place.routed is None:
        term = all_reduce_term(place.fabric, group(place.fabric, place.members, 1), place.message, costs)
    else:
        term = exchange_term(place.fabric, _layout(place.members), place.routed, place.message, costs)
    return collective_term_s(term, place.tokens)


def _layout(members: int) -> Layout:
    degree = known(members, "ep", "", "input", "measured")
    return Layout(dp=degree, ep=degree)


def predicted(places: tuple[LinkRows, ...], costs: LinkCosts, rows: int) -> Any:
    """Time of every row."""
    seconds = np.ones(rows)
    for place in places:
        seconds[place.rows] = place_s(place, costs)
    return seconds
