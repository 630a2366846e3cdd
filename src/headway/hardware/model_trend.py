"""Models by release date: size, active share, context, KV per token, and the scale-up domain that was on sale by then."""

from __future__ import annotations

import dataclasses
from typing import Any

from headway.core.catalog import Catalog, default_catalog
from headway.core.errors import UnsupportedModel
from headway.hardware.chip import Chip, chip
from headway.laws.architecture.params import sparsity
from headway.laws.scaling.power_laws import tokens_per_param
from headway.models.config import catalogue_index
from headway.models.config import model as find_model
from headway.models.releases import Release, releases
from headway.models.totals import active_params, kv_bytes_per_token, loaded_bytes, total_params


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
    return [_row(release, family, domains) for release, family in sorted(dated, key=lambda pair: (pair[0].month, pair[0].name))]


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


def _row(release: Release, family: str, domains: list[Chip]) -> ModelTrendRow:
    model = find_model(release.name)
    total, active = total_params(model), active_params(model)
    tokens, device = release.training_tokens, domain_of(int(release.year), domains)
    weights, hbm = _weights(model), None if device is None else device.scale_up_domain * device.hbm
    return ModelTrendRow(
        released=release.month,
        year=release.year,
        model=release.name,
        family=family,
        total_params=total,
        active_params=active,
        sparsity=sparsity(total, active),
        max_context=model.max_context,
        kv_bytes_per_token=kv_bytes_per_token(model),
        training_tokens=tokens,
        tokens_per_active=None if tokens is None else tokens_per_param(tokens, active),
        tokens_status=None if tokens is None else release.status,
        weights_bytes=weights,
        domain_chip=None if device is None else device.name,
        scale_up_domain=None if device is None else device.scale_up_domain,
        domain_hbm=hbm,
        fits=None if None in (weights, hbm) else bool(weights < hbm),
    )


def _weights(model: Any) -> Any:
    try:
        return loaded_bytes(model)
    except UnsupportedModel:
        return None
