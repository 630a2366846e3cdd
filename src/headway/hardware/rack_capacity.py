"""Models that fit in one scale-up domain, and the latency floor that its bandwidth sets. Glue: the arithmetic is in laws/."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headway.hardware.system import System
from headway.laws.roofline.balance import domain_read_s
from headway.laws.step.memory import fits_hbm
from headway.models.config import catalogue_index
from headway.models.config import model as find_model
from headway.models.model import Model
from headway.models.totals import loaded_bytes, sequence_bytes, total_params


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelNeed:
    """Memory that one model needs in a domain: weights as in its checkpoint, and the KV cache of one sequence."""

    model: str
    params: Any
    weights: Any
    sequence: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFit:
    """One model that fits in one domain, and its latency floor."""

    model: str
    total_params: Any
    weights_bytes: Any
    latency_floor_s: Any


def need(model: Model, context: Any) -> ModelNeed:
    """Bytes of weights, and of the KV cache and state of one sequence of `context` tokens."""
    sequence = sequence_bytes(model, context)
    return ModelNeed(model=model.name, params=total_params(model), weights=loaded_bytes(model), sequence=sequence)


def catalogue_needs(context: Any) -> tuple[ModelNeed, ...]:
    """Memory needs of all models of the catalogue, the largest first."""
    needs = (need(find_model(row["name"]), context) for row in catalogue_index())
    return tuple(sorted(needs, key=lambda row: (-row.params, row.model)))


cached_needs = functools.lru_cache(maxsize=4)(catalogue_needs)  # not for explain, which records every call


def fits(model_need: ModelNeed, system: System, chips: Any) -> Any:
    """Whether a model and one sequence fit in a domain of `chips` chips; None where the memory is not known."""
    hbm = system.chip.hbm
    return None if hbm is None else fits_hbm(model_need.weights, model_need.sequence, chips * hbm)


def floor_s(model_need: ModelNeed, system: System, chips: Any) -> Any:
    """Latency floor: time to read a model's weights once with the whole domain; None where it does not fit or a fact is missing."""
    bandwidth = system.chip.hbm_bw
    return domain_read_s(model_need.weights, chips, bandwidth) if bandwidth is not None and fits(model_need, system, chips) else None


def fitting(needs: Sequence[ModelNeed], system: System, chips: Any) -> tuple[ModelFit, ...]:
    """All models that fit, the largest first."""
    return tuple(
        ModelFit(model=row.model, total_params=row.params, weights_bytes=row.weights, latency_floor_s=floor_s(row, system, chips))
        for row in needs
        if fits(row, system, chips)
    )
