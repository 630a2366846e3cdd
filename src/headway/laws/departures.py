"""Batches that leave on a fixed beat, as trains do: waits, rates and shares of traffic."""

from __future__ import annotations

from headway.formula import formula
from headway.units import Number, Second, Token, TokenPerSecond

ONE_TOKEN: Token = 1.0  # what a decode step gives each sequence
RUNS_WAITED: Number = 1.0  # just missed: one whole beat until the next departure


@formula(source="Reiner Pope, blackboard lecture, 2026-04-29: wait one beat, ride one beat")
def worst_latency_s(step_s: Second) -> Second:
    """A request that just missed a departure waits one beat, then rides one, as long as no batch is full.

    >>> worst_latency_s(20e-3)
    0.04
    """
    return step_s * RUNS_WAITED + step_s


@formula(source="tokens per step over the time of a step")
def step_tokens_per_s(tokens: Token, step_s: Second) -> TokenPerSecond:
    """The rate of the whole domain.

    >>> step_tokens_per_s(2000, 20e-3)
    100000.0
    """
    return tokens / step_s


@formula(source="one token per step")
def user_tokens_per_s(step_s: Second) -> TokenPerSecond:
    """What each user sees: one token per step.

    >>> user_tokens_per_s(20e-3)
    50.0
    """
    return ONE_TOKEN / step_s


@formula(source="rate times beat: Little's law")
def tokens_in_flight(tokens_per_s: TokenPerSecond, tokens_per_s_user: TokenPerSecond) -> Token:
    """Sequences decoded together, from the rate of the domain and of one user.

    >>> round(tokens_in_flight(266.4e3, 21.0))  # a decode unit of DeepSeek, 18 nodes
    12686
    """
    return tokens_per_s / tokens_per_s_user * ONE_TOKEN


@formula(source="tokens over the length of the period")
def mean_tokens_per_s(tokens: Token, period_s: Second) -> TokenPerSecond:
    """Traffic quoted per month, as a rate.

    >>> round(mean_tokens_per_s(1.3e15, 2.63e6) / 1e6)  # 1.3 quadrillion tokens a month
    494
    """
    return tokens / period_s


@formula(source="rate of one system over all traffic")
def share_of_traffic(tokens_per_s: TokenPerSecond, traffic: TokenPerSecond) -> Number:
    """How much of a service one system carries: its inverse is the number of systems.

    >>> share_of_traffic(128e3, 128e6)
    0.001
    """
    return tokens_per_s / traffic
