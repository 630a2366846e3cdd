"""The classes of collectives that are fitted: all-reduces in a machine, exchanges in one, and exchanges between machines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from headway.evidence.fitted import FittedNumbers
from headway.evidence.kernel_classes import KernelClass
from headway.evidence.kernel_fit import KernelKey
from headway.evidence.kernel_links import DOMAIN, LinkRows, all_reduces, exchanges, predicted
from headway.evidence.kernel_rows import KernelRows
from headway.fabric import LinkCosts

NEVER = 1.0  # s: a round so slow that the lines which are not measured are not taken
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
    """Each class with its rows: the costs of one are the lines that a layout's own collectives compile to."""
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
