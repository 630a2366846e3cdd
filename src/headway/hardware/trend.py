"""Chips by generation: their latency floor, balanced batch and context. Glue: the arithmetic is in laws/."""

from __future__ import annotations

import dataclasses
from typing import Any

from headway.core.catalog import Catalog, default_catalog
from headway.core.quantity import default
from headway.hardware.chip import Chip, chip
from headway.laws.roofline.balance import capacity_context, domain_read_s, drain_s, hardware_ratio
from headway.models.config import model as find_model
from headway.models.model import Model
from headway.models.precision import formats
from headway.models.totals import kv_bytes_per_token, loaded_bytes

MODEL = "deepseek-v3"
SEQUENCES = default(1, "sequences", "", "the longest context is that of one sequence alone")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TrendRow:
    """One chip; None where a fact is not public or the model does not fit."""

    year: Any
    vendor: str
    chip: str
    flop_per_byte_bf16: Any
    flop_per_byte_fp8: Any
    flop_per_byte_fp4: Any
    hardware_ratio_bf16: Any
    hardware_ratio_fp8: Any
    hardware_ratio_fp4: Any
    drain_s: Any
    hbm_per_flop: Any
    scale_up_domain: Any
    model: str
    fits: bool | None
    latency_floor_s: Any
    longest_context: Any


def trend_chips(catalog: Catalog | None = None, model: str | Model = MODEL) -> list[TrendRow]:
    """All chips with a known year, oldest first."""
    where = catalog or default_catalog()
    resolved_model = find_model(model)
    weights, kv = loaded_bytes(resolved_model), kv_bytes_per_token(resolved_model)
    chips = [chip(name, where) for name in where.files("chips")]
    dated = sorted((device for device in chips if device.year is not None), key=lambda device: (device.year, device.vendor, device.name))
    return [_row(device, resolved_model.name, weights, kv) for device in dated]


def _row(device: Chip, model: str, weights: Any, kv: Any) -> TrendRow:
    peaks = {"bf16": device.peak_bf16, "fp8": device.peak_fp8, "fp4": device.peak_fp4}
    bandwidth, width = device.hbm_bw, {name: formats()[name].bytes for name in peaks}
    intensity = {name: None if None in (peak, bandwidth) else peak / bandwidth for name, peak in peaks.items()}
    ratio = {name: None if None in (peak, bandwidth) else hardware_ratio(width[name], peak, bandwidth) for name, peak in peaks.items()}
    fits, floor, context = _of_domain(device, weights, kv)
    return TrendRow(
        year=device.year,
        vendor=device.vendor,
        chip=device.name,
        **{f"flop_per_byte_{name}": value for name, value in intensity.items()},
        **{f"hardware_ratio_{name}": value for name, value in ratio.items()},
        drain_s=None if None in (device.hbm, bandwidth) else drain_s(device.hbm, bandwidth),
        hbm_per_flop=None if None in (device.hbm, device.peak_bf16) else device.hbm / device.peak_bf16,
        scale_up_domain=device.scale_up_domain,
        model=model,
        fits=fits,
        latency_floor_s=floor,
        longest_context=context,
    )


def _of_domain(device: Chip, weights: Any, kv: Any) -> tuple[bool | None, Any, Any]:
    """Whether the model fits in the chip's usual scale-up domain, its latency floor and its longest context there."""
    if None in (device.hbm, device.scale_up_domain):
        return None, None, None
    context = capacity_context(device.scale_up_domain * device.hbm, weights, SEQUENCES, kv)
    if not context > 0:
        return False, None, None
    return True, None if device.hbm_bw is None else domain_read_s(weights, device.scale_up_domain, device.hbm_bw), context
