"""Chips by generation (latency floor, balanced batch and context) and models by release date. Glue: the arithmetic is in laws/."""

from __future__ import annotations

import dataclasses
from typing import Any

from headway.core.catalog import Catalog, default_catalog
from headway.core.errors import UnsupportedModel
from headway.core.quantity import default
from headway.core.units import Byte, BytePerToken
from headway.hardware.chip import Chip, chip
from headway.laws.architecture.params import sparsity
from headway.laws.roofline.balance import capacity_context, domain_read_s, drain_s, hardware_ratio
from headway.laws.scaling.power_laws import tokens_per_param
from headway.models.config import catalogue_index
from headway.models.config import model as find_model
from headway.models.describe import Release, releases
from headway.models.model import Model
from headway.models.precision import formats
from headway.models.totals import active_params, kv_bytes_per_token, loaded_bytes, total_params

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


def _row(device: Chip, model: str, weights: Byte, kv: BytePerToken) -> TrendRow:
    peaks = {"bf16": device.peak_bf16, "fp8": device.peak_fp8, "fp4": device.peak_fp4}
    bandwidth, width = device.hbm_bw, {name: formats()[name].bytes for name in peaks}
    intensity = {name: None if None in (peak, bandwidth) else peak / bandwidth for name, peak in peaks.items()}
    ratio = {name: None if None in (peak, bandwidth) else hardware_ratio(width[name], peak, bandwidth) for name, peak in peaks.items()}
    fits, floor, context = _of_domain(device, weights, kv)
    return TrendRow(
        year=device.year, vendor=device.vendor, chip=device.name,
        **{f"flop_per_byte_{name}": value for name, value in intensity.items()},
        **{f"hardware_ratio_{name}": value for name, value in ratio.items()},
        drain_s=None if None in (device.hbm, bandwidth) else drain_s(device.hbm, bandwidth),
        hbm_per_flop=None if None in (device.hbm, device.peak_bf16) else device.hbm / device.peak_bf16,
        scale_up_domain=device.scale_up_domain, model=model, fits=fits, latency_floor_s=floor, longest_context=context,
    )  # fmt: skip


def _of_domain(device: Chip, weights: Byte, kv: BytePerToken) -> tuple[bool | None, Any, Any]:
    """Whether the model fits in the chip's usual scale-up domain, its latency floor and its longest context there."""
    if None in (device.hbm, device.scale_up_domain):
        return None, None, None
    context = capacity_context(device.scale_up_domain * device.hbm, weights, SEQUENCES, kv)
    if not context > 0:
        return False, None, None
    return True, None if device.hbm_bw is None else domain_read_s(weights, device.scale_up_domain, device.hbm_bw), context


# -- models by release date: size, active share, context, KV per token, and the scale-up domain that was on sale by then --------


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ModelTrendRow:
    """One model; None where a fact is not public."""

    released: str
    year: Any
    model: str
    family: str
    total_params: Any
    active_params: Any
    sparsity: Any
    max_context: Any
    kv_bytes_per_token: Any
    training_tokens: Any
    tokens_per_active: Any
    tokens_status: str | None
    weights_bytes: Any
    domain_chip: str | None
    scale_up_domain: Any
    domain_hbm: Any
    fits: bool | None


def trend_models(catalog: Catalog | None = None) -> list[ModelTrendRow]:
    """The catalogue's models with a known release date, oldest first."""
    domains = switched_domains(catalog or default_catalog())
    dated = [(releases()[row["name"]], row["family"]) for row in catalogue_index() if row["name"] in releases()]
    return [_of_release(release, family, domains) for release, family in sorted(dated, key=lambda pair: (pair[0].month, pair[0].name))]


def switched_domains(catalog: Catalog) -> list[Chip]:
    """Chips whose scale-up domain is joined all to all by switches, each with its usual domain, by year."""
    chips = [chip(name, catalog) for name in catalog.files("chips")]
    complete = [
        device for device in chips
        if device.topology == "switch" and None not in (device.year, device.scale_up_domain, device.hbm)
    ]  # fmt: skip
    return sorted(complete, key=lambda device: (device.year, device.name))


def domain_of(year: int, domains: list[Chip]) -> Chip | None:
    """The chip with the largest switched domain announced before the year of a release: that is what it could be served on."""
    earlier = [device for device in domains if device.year < year]
    return max(earlier, key=lambda device: (device.scale_up_domain * device.hbm, device.name), default=None)


def _of_release(release: Release, family: str, domains: list[Chip]) -> ModelTrendRow:
    model = find_model(release.name)
    total, active = total_params(model), active_params(model)
    tokens, device = release.training_tokens, domain_of(int(release.year), domains)
    weights, hbm = _weights(model), None if device is None else device.scale_up_domain * device.hbm
    return ModelTrendRow(
        released=release.month, year=release.year, model=release.name, family=family, total_params=total, active_params=active,
        sparsity=sparsity(total, active), max_context=model.max_context, kv_bytes_per_token=kv_bytes_per_token(model),
        training_tokens=tokens, tokens_per_active=None if tokens is None else tokens_per_param(tokens, active),
        tokens_status=None if tokens is None else release.status, weights_bytes=weights,
        domain_chip=None if device is None else device.name, scale_up_domain=None if device is None else device.scale_up_domain,
        domain_hbm=hbm, fits=None if None in (weights, hbm) else bool(weights < hbm),
    )  # fmt: skip


def _weights(model: Any) -> Any:
    try:
        return loaded_bytes(model)
    except UnsupportedModel:
        return None
