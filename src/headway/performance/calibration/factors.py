"""The factors that runs of one's own put on a server: on its step, its fixed costs, the host's launches, the start of a run and TTFT."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headway.core.units import Number
from headway.laws.calibration import by_own_runs
from headway.laws.step.coefficients import StepCoefficients
from headway.performance.request import Scheduling, Server

PARAMETERS = ("step", "fixed", "host", "start", "first")  # fields of RunFactors, the order of slopes and covariances
FIRST = PARAMETERS.index("first")  # which multiplies TTFT and nothing else
MOVE = 0.1  # of a factor's logarithm, by which slopes are found: well above what root finding leaves, and small beside the priors
# Part of what all steps take longer that a TTFT does not: over 102 measured deployments TPOT and TTFT err independently (correlation
# 0.06), but of one deployment they have some causes in common.
STEPS_WITHOUT_PROMPTS = 0.75
TRAINED = ("step", "memory")  # the same of training: time of a step, memory of the fullest chip
FIXED = ("fixed", "expert_fixed", "sequence", "prompted")  # of a step's achieved rates
HOST = ("host_launch", "host_routed", "host_latent")
REMAINDERS = ("decode_remainder", "prompt_remainder")
STARTS = ("first_round_share", "start_share")  # of an engine's scheduling


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFactors:
    """Measured over predicted, of each part that runs can tell apart; 1 where they say nothing. Numbers, or arrays over servers."""

    step: Number = 1  # all of a step
    fixed: Number = 1  # its fixed costs: launches, the engine's work
    host: Number = 1  # the host's launches in a step with prompts
    start: Number = 1  # share of a run's requests that come at once at its start
    first: Number = 1  # TTFT, after all else


def factors_of(logs: Any) -> dict[str, Any]:
    """Factors by name from the logarithms of the parameters, which are the last axis."""
    values = dict(zip(PARAMETERS, np.moveaxis(np.asarray(logs, dtype=float), -1, 0), strict=True))
    values["first"] = values["first"] - STEPS_WITHOUT_PROMPTS * values["step"]
    return {name: np.exp(value) for name, value in values.items()}


def calibrated_step(step: StepCoefficients, factors: RunFactors) -> StepCoefficients:
    """A step with the factors of runs on all of it, on its fixed costs and on the host's launches; drafts take as much longer."""
    achieved = step.achieved
    scaled = {REMAINDERS: factors.step, FIXED: factors.fixed, HOST: factors.host}
    values = {name: by_own_runs(getattr(achieved, name), factor) for names, factor in scaled.items() for name in names}
    drafts = tuple(
        replace(term, first=calibrated_step(term.first, factors), further=calibrated_step(term.further, factors)) for term in step.drafts
    )
    return replace(step, achieved=replace(achieved, **values), drafts=drafts)


def calibrated_scheduling(rules: Scheduling, factors: RunFactors) -> Scheduling:
    """An engine's scheduling with the share of requests that come at once as runs have it, all at most; streaming is a fixed cost."""
    starts = {name: np.minimum(by_own_runs(getattr(rules, name), factors.start), 1) for name in STARTS}
    return replace(rules, streaming_overhead_s=by_own_runs(rules.streaming_overhead_s, factors.fixed), **starts)


def calibrated(server: Server, factors: RunFactors) -> Server:
    """A server with the factors that runs of one's own put on it; floors are those of the server without."""
    return replace(
        server, step=calibrated_step(server.step, factors), scheduling=calibrated_scheduling(server.scheduling, factors),
        first_token_factor=factors.first,
    )  # fmt: skip
