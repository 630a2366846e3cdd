"""The factors that runs of one's own put on a server: on its step, its fixed costs, the host's launches, the start of a run and TTFT."""

from __future__ import annotations

from dataclasses import dataclass

from headway.core.units import Number

PARAMETERS = ("step", "fixed", "host", "start", "first")  # fields of RunFactors, the order of slopes and covariances
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
