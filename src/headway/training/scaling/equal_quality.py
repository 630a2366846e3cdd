"""Lifetime compute of models of one quality against their training tokens: fewer parameters on more tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.laws.scaling import lifetime
from headway.training.scaling.compute import cheapest, given_size, point, sized
from headway.training.scaling.fits import fit

POINTS = 120
SPAN = 12.0  # tokens drawn reach from the cheapest over this to the cheapest times this


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityCurve:
    """One law's curve: tokens, lifetime compute over that of the cheapest model, and the marked tokens."""

    law: str
    tokens: Any
    over_cheapest: Any  # None where no size reaches the quality
    best_tokens: float
    rule_tokens: float  # training equal to serving


def quality_curve(law: str, flags: Mapping[str, Any]) -> QualityCurve:
    """The curve of one law at the quality of the model that the simple rule makes, whose cost the sentence tells."""
    by, at = fit(law), point(flags)
    columns = given_size(by, at)
    loss, rl = columns["rule_loss"], columns["rule_tokens"] * at.rl * at.eta
    best = cheapest(by, loss, rl, columns["serving_tokens"])
    centre = float(best.tokens)
    tokens = np.geomspace(centre / SPAN, centre * SPAN, POINTS)
    with np.errstate(all="ignore"):
        active, left_to_size = sized(by, loss, tokens)
        bill = lifetime.life_flop(active, tokens, rl, columns["serving_tokens"])
    ratio = np.where(np.asarray(left_to_size) > 0, np.asarray(bill) / float(best.flop), np.nan)
    return QualityCurve(law=law, tokens=tokens, over_cheapest=ratio, best_tokens=centre, rule_tokens=float(columns["serving_tokens"]))
