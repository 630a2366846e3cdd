"""Collectives of the kernel fit, timed by the cost lines to which a layout's collectives compile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from headway.core.quantity import known
from headway.evidence.fit.result import FittedNumbers
from headway.evidence.kernels.classes import KernelClass, KernelKey
from headway.evidence.kernels.rows import Column, KernelRows, KernelTable, family, fastest, per_chip, shape_codes, table
from headway.laws.collectives.cost import collective_term_s
from headway.performance.collectives import Fabric, LinkCosts, RoutedLayer, all_reduce_term, exchange_term, group
from headway.performance.layout import Layout

DOMAIN = 8  # chips in the scale-up domain of every measured machine
SUMS = ("hopper", "blackwell")  # families whose switches reduce (in-switch all-reduce)
PAIRED, SHORT = "pairwise_nvlink_4per_node", 128 << 10  # chips whose pairs reach each other over PCIe; bytes
EAGER = ("eager", "eager_1us_resolution")
DISPATCHED, COMBINED = 1 + 4 / 128, 2.0  # bytes per element: FP8 with a scale for each tile of 128, and BF16
FEW_TOKENS = 512  # largest tokens per chip for which an engine uses the low-latency kernels
MOST_SMS = 24  # SMs that DeepEP's high-throughput kernels used


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkRows:
    """Rows that share fabric, group and model, so one CollectiveTerm."""

    fabric: Fabric
    members: int
    routed: RoutedLayer | None
    message: float  # bytes per token of a chip
    rows: Column
    tokens: Column


def all_reduces(folder: Path) -> tuple[KernelRows, tuple[LinkRows, ...]]:
    """Fastest all-reduce of each size inside a machine, launched from a CUDA graph; a token counts as one byte."""
    rows = table(folder, "collectives")
    rows = fastest(
        rows.where((rows.op == "all_reduce") & ~np.isin(rows.columns["mode"], EAGER) & (rows.n_nodes == 1) & (rows.bytes >= 1024)),
        ("chip", "n_chips", "bytes"),
    )
    places = _places(rows, ("chip", "n_chips"), rows.bytes.astype(float), lambda row: (None, 1.0))
    return _kernels(rows, rows.latency_s, shape_codes(rows.chip, rows.n_chips, np.log2(rows.bytes) // 4)), places


def exchanges(folder: Path) -> tuple[KernelRows, tuple[LinkRows, ...]]:
    """Dispatch plus combine of each case, by the faster of the low-latency and high-throughput kernels."""
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
    """Cases that both tables contain, in a common order."""
    joined_columns = {key: np.concatenate([first.columns[key], second.columns[key]]) for key in keys}
    codes = shape_codes(*joined_columns.values())
    first_codes, second_codes = codes[: len(first.latency_s)], codes[len(first.latency_s) :]
    _, first_index, second_index = np.intersect1d(first_codes, second_codes, return_indices=True)
    return first.where(first_index), second.where(second_index)


def _routed(row: KernelTable) -> tuple[RoutedLayer, float]:
    hidden, experts, active = (float(row.columns[key][0]) for key in ("hidden", "n_experts", "topk"))
    return RoutedLayer(layers=1, experts=experts, active=active, dispatch=DISPATCHED * hidden), hidden * (DISPATCHED + COMBINED) / 2


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
    """Time of the collectives of `place`, in seconds."""
    if place.routed is None:
        term = all_reduce_term(place.fabric, group(place.fabric, place.members, 1), place.message, costs)
    else:
        term = exchange_term(place.fabric, _layout(place.members), place.routed, place.message, costs)
    return collective_term_s(term, place.tokens)


def _layout(members: int) -> Layout:
    degree = known(members, "ep", "", "input", "measured")
    return Layout(dp=degree, ep=degree)


def predicted(places: tuple[LinkRows, ...], costs: LinkCosts, rows: int) -> Any:
    """Predicted time of each row, in seconds."""
    seconds = np.ones(rows)
    for place in places:
        seconds[place.rows] = place_s(place, costs)
    return seconds


def host_round(folder: Path) -> FittedNumbers:
    """Time of a short all-reduce of four chips that are joined in pairs and otherwise by their host's PCIe, launch included."""
    rows = table(folder, "collectives")
    rows = rows.where((rows.op == "all_reduce") & (rows.topology == PAIRED) & (rows.bytes <= SHORT))
    logs = np.array([np.log(np.median(rows.latency_s[rows.chip == chip])) for chip in np.unique(rows.chip)])
    chips = ", ".join(sorted({str(chip).partition("_")[0] for chip in rows.chip}))
    where = f"{chips}; all-reduces of up to {SHORT >> 10} KB of 4 chips, in pairs"
    return FittedNumbers(
        section="collective.other.bf16", key="alpha_host", value=float(np.exp(logs.mean())), unit="s", rows=len(rows.chip), range=where,
        error=float(np.exp(logs.mean()) * logs.std()), source="collectives.parquet: Microsoft Vidur 7d47513 (MIT)",
        meaning="round of a reduction over a host's PCIe, its launch included: short messages wait for the host, not for its links",
    )  # fmt: skip


NEVER = 1.0  # s per round: so slow that the lines without measurements are never the fastest
ASSUMED_ALPHA_OUT = FittedNumbers(
    section="collective.other.bf16", key="alpha_out", value=10e-6, unit="s", error=5e-6, rows=0, range="5..20 us for one RDMA message",
    meaning="round of a reduction over scale-out: assumed, as no table has one launched from a graph", source="an assumption",
)  # fmt: skip


def _alpha(name: str, start: float, meaning: str) -> KernelKey:
    return KernelKey(name=name, unit="s", start=start, low=1e-7, high=2e-4, meaning=meaning)


def _share(name: str, start: float, meaning: str) -> KernelKey:
    return KernelKey(name=name, unit="", start=start, low=0.02, high=1.0, meaning=meaning)


REDUCTION_KEYS = (_alpha("alpha", 4e-6, "round of a reduction over scale-up links, launched from a graph"),
           _share("eff_network", 0.65, "share of scale-up bandwidth that reductions and gathers reach"),
           _share("eff_in_switch", 0.5, "the same where the switch does the adding"))  # fmt: skip
EXCHANGE_KEYS = (_alpha("alpha_exchange", 12e-6, "round of an exchange of experts over scale-up links"),
             _share("eff_exchange", 0.5, "share of scale-up bandwidth that exchanges of experts reach"))  # fmt: skip
EXCHANGE_OUT_KEYS = (EXCHANGE_KEYS[0], _alpha("alpha_exchange_out", 24e-6, "round of an exchange of experts over scale-out links"),
        _share("eff_out", 0.9, "share of scale-out bandwidth that exchanges of experts reach"))  # fmt: skip


def collectives(folder: Path) -> tuple[tuple[KernelClass, KernelRows], ...]:
    """Collective classes with their rows: all-reduce, exchange of experts inside a machine, and across machines."""
    reduced, exchanged = all_reduces(folder), exchanges(folder)
    inside = _chips(*exchanged) <= DOMAIN
    rows = exchanged[0]
    return (
        (
            _kind(REDUCTION_KEYS, reduced, _reduction, "all-reduces of 1 KB..1 GB in a machine of 8", "collectives", "all-reduce"),
            reduced[0],
        ),
        (
            _kind(EXCHANGE_KEYS, exchanged, _exchange, "DeepEP in a machine of 8, 2..131072 tokens a chip", "moe_all_to_all", "exchange"),
            rows.where(inside),
        ),
        (
            _kind(EXCHANGE_OUT_KEYS, exchanged, _exchange_out, "DeepEP over 2, 4 and 8 machines of 8", "moe_all_to_all", "exchange out"),
            rows.where(~inside),
        ),
    )


def _kind(
    keys: tuple[KernelKey, ...],
    read: tuple[KernelRows, tuple[LinkRows, ...]],
    costs: Callable[[Any], LinkCosts],
    where: str,
    table: str,
    label: str,
) -> KernelClass:
    rows, places = read

    def predict(p: Any, work: Any) -> Any:
        return predicted(places, costs(p), len(rows))[work[0]]

    return KernelClass(name="collective", read=lambda folder, dtype: rows, predict=predict, keys=keys, shared=(), dtypes=("bf16",),
                       range=where, table=table, differs=0.05, like="collective", label=label,
                       borrowed=("alpha_exchange",) if keys is EXCHANGE_OUT_KEYS else ())  # fmt: skip


def _reduction(p: Any) -> LinkCosts:
    return LinkCosts(up=p[0], out=NEVER, exchange_up=NEVER, exchange_out=NEVER, efficiency=p[1], in_switch=p[2], exchange=1.0, beyond=1.0)


def _exchange(p: Any) -> LinkCosts:
    return LinkCosts(up=NEVER, out=NEVER, exchange_up=p[0], exchange_out=NEVER, efficiency=1.0, in_switch=1.0, exchange=p[1], beyond=1.0)


def _exchange_out(p: Any) -> LinkCosts:
    return LinkCosts(up=NEVER, out=NEVER, exchange_up=p[0], exchange_out=p[1], efficiency=1.0, in_switch=1.0, exchange=p[2], beyond=p[2])


def _chips(rows: KernelRows, places: tuple[LinkRows, ...]) -> Any:
    members = np.zeros(len(rows), int)
    for place in places:
        members[place.rows] = place.members
    return members
