"""Value of routed experts: the dense model of equal loss, by each law of routed models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headway.laws.architecture.params import sparsity
from headway.laws.arithmetic import relative, times
from headway.laws.scaling import experts as laws
from headway.laws.scaling import power_laws
from headway.training.scaling import compute
from headway.training.scaling.compute import ScalingPoint
from headway.training.scaling.fits import DEFAULT, Leverage, RoutedFit, clark, fit, leverage, routed

LING = "ling"


def names() -> tuple[str, ...]:
    """Every law of experts, refitted laws first because their absolute loss is more accurate."""
    return (*sorted(routed(), key=lambda name: not name.endswith("-refit")), LING)


def law_columns(name: str) -> Callable[[ScalingPoint], dict[str, Any]]:
    """The function from a point to the columns of the named law."""
    if name == LING:
        return lambda at: _ling(leverage(), at)
    return lambda at: _clark(routed()[name], at)


def _experts(at: ScalingPoint) -> Any:
    """Experts as given, or the number that gives the total parameters."""
    if at.experts is not None:
        return at.experts
    return laws.experts_for_total(sparsity(at.total, at.active), _share())


def _share() -> Any:
    return laws.routed_share(clark()["blocks_share"], clark()["ffn_share"])


def _clark(by: RoutedFit, at: ScalingPoint) -> dict[str, Any]:
    """The columns of Clark's law: every second FFN routed, one expert per token."""
    experts = _experts(at)
    expert_count, total = laws.saturated(experts, by.start, by.most), laws.routed_total_params(at.active, experts, _share())
    exponent, dense = (laws.routed_exponent(by.a, by.c, number) for number in (expert_count, by.start))
    effective = laws.effective_params(at.active, expert_count, by.start, exponent, dense, by.b)
    return {
        "active": at.active, "experts": experts, "total_of_law": total, "total_over_active": sparsity(total, at.active),
        "experts_counted": expert_count, "effective_params": effective, "effective_over_active": relative(effective, at.active),
        "cutoff_params": laws.routing_cutoff(by.b, by.c), "loss_routed": laws.routed_loss(at.active, expert_count, by.a, by.b, by.c, by.d),
    }  # fmt: skip


def _ling(by: Leverage, at: ScalingPoint) -> dict[str, Any]:
    """The columns of Ling's law: efficiency leverage of compute, which equals that of size at equal tokens."""
    experts = _experts(at)
    tokens = compute.chinchilla_tokens(fit(DEFAULT), at.active) if at.tokens is None else at.tokens
    flop = power_laws.training_flop(at.active, tokens) if at.flop is None else at.flop
    fineness = by.granularity if at.granularity is None else at.granularity
    share = relative(at.per_token, experts)
    gain = laws.efficiency_leverage(share, fineness, flop, by.a, by.d, by.gamma, by.beta, by.start, by.most)
    return {
        "active": at.active, "experts": experts, "flop": flop, "granularity": fineness, "effective_params": times(at.active, gain),
        "effective_over_active": gain,
    }  # fmt: skip
