"""Machines side by side, chip by chip, and models side by side: facts, ratios to the first, at equal cost and at equal power."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headway.core.catalog import Catalog
from headway.core.units import UsdPerSecond, Watt
from headway.hardware.chip import price_quote
from headway.hardware.system import System, domain_bandwidth, system

CHIP_FACTS = ("peak_bf16", "peak_fp8", "peak_fp4", "hbm", "hbm_bw", "sram", "scale_up_bw", "scale_out_bw")
MODEL_FACTS = ("total_params", "active_params", "sparsity", "layers", "hidden", "kv_bytes_per_token", "kv_read_bytes_per_token",
               "state_bytes_per_sequence", "max_context")  # fmt: skip
EQUAL_BY = {"usd": "price", "watt": "watts"}  # basis -> the column that is made equal


def machine_rows(systems: list[System], basis: str, cost: UsdPerSecond, power: Watt, watts: Sequence[Any]) -> list[dict[str, Any]]:
    """A row per machine: facts of a chip (of the whole machine where the basis is that), ratios to the first, chips that a budget takes."""
    rows: list[dict[str, Any]] = []
    for machine, chip_watts in zip(systems, watts, strict=True):
        quote = price_quote(machine.chip)
        single = machine.chips == 1  # its links usually join more chips; those of a part of a machine are the links to its own chips
        domain = machine.chip.scale_up_domain if single else machine.scale_up_domain
        row: dict[str, Any] = {"machine": machine.name, "chips": machine.chips, "scale_up_domain": domain}
        row |= {key: getattr(machine.chip, key) for key in CHIP_FACTS} | ({} if single else {"scale_up_bw": domain_bandwidth(machine)})
        if basis == "machine":
            row |= {key: row[key] * machine.chips for key in CHIP_FACTS if row[key] is not None}
        row |= {"price": None if quote is None else quote.value, "watts": chip_watts}
        first = rows[0] if rows else row
        row |= {f"{key}_ratio": _ratio(row, first, key, basis) for key in CHIP_FACTS}
        row["chips_at_cost"] = cost / row["price"] if cost is not None and row["price"] is not None else None
        row["chips_at_power"] = power / row["watts"] if power is not None and row["watts"] is not None else None
        rows.append(row)
    return rows


WALL, CHIP_ALONE = "the machine's power at the wall, over its chips", "the chip's TDP"


def watts_of(systems: Sequence[System], catalog: Catalog) -> tuple[list[Any], str]:
    """Power of a chip of each machine, all on one basis, and the basis: at the wall where that is known of all, else TDP."""
    wall = [_wall_watts(machine, catalog) for machine in systems]
    return (wall, WALL) if all(watts is not None for watts in wall) else ([machine.chip.tdp for machine in systems], CHIP_ALONE)


def _wall_watts(machine: System, catalog: Catalog) -> Any:
    """A chip's share of its machine's power, or of that of a catalogue machine of the same chip; None where neither is published."""
    if machine.power is not None:
        return machine.power / machine.chips
    for name in catalog.files("systems"):
        usual = system(name, catalog)
        if usual.power is not None and (usual.chip.name, usual.chip.tdp) == (machine.chip.name, machine.chip.tdp):
            return usual.power / usual.chips
    return None


def _ratio(row: dict[str, Any], first: dict[str, Any], key: str, basis: str) -> Any:
    """Ratio of a fact to the first machine's; None where a fact, price or power is not known."""
    if row[key] is None or first[key] is None:
        return None
    ratio = row[key] / first[key]
    if basis not in EQUAL_BY:
        return ratio
    value, baseline = row[EQUAL_BY[basis]], first[EQUAL_BY[basis]]
    return None if value is None or baseline is None else ratio / (value / baseline)


def model_rows(summaries: list[Any]) -> list[dict[str, Any]]:
    """A row per model: counts and cache, and their ratios to the first."""
    rows: list[dict[str, Any]] = []
    for summary in summaries:
        row: dict[str, Any] = {"model": summary.name} | {key: getattr(summary, key) for key in MODEL_FACTS}
        first = rows[0] if rows else row
        rows.append(row | {f"{key}_ratio": row[key] / first[key] if row[key] and first[key] else None for key in MODEL_FACTS})
    return rows
