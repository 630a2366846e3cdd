"""Prefill and decode on replicas of their own: a prompt is computed in one pool, handed over, and answered in the other.

The first token is out when the decode pool has taken the request in: its queue and the hand-over are part of TTFT.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headway.sim.pacing import StepPace
from headway.sim.simulate import SimulatedRun, simulate
from headway.sim.state import Rules
from headway.sim.traffic.record import Traffic


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefillDecodePools:
    """Replicas for prompts and replicas for answers, of the same layout."""

    prefill: int
    decode: int
    transfer_s: Any  # of each request's KV cache


def split(
    traffic: Traffic, pace: StepPace, rules: Rules, pools: PrefillDecodePools, *, overhead_s: float = 0.0, how: str = "auto",
    prefix: Any = None, routing: str = "least-loaded", patience: float | None = None,
) -> tuple[SimulatedRun, SimulatedRun]:  # fmt: skip
    """What a client sees, with what the decode pool did; and the run of the prefill pool, to which prompts go by `routing`.

    A user gives up after `patience` seconds without a first token; turns of conversations are sent as recorded.
    """
    routing = "least-loaded" if routing == "round-robin" else routing  # a prompt's steps are too long to take turns
    prompts = replace(traffic, output=np.ones_like(traffic.output), pause=None)
    waits = None if patience is None else patience - overhead_s
    beyond = (traffic.prompt + traffic.output + rules.block - 1) // rules.block > rules.capacity  # of the decode pool's cache
    before = simulate(
        prompts, pace, rules._replace(mixed=0), replicas=pools.prefill, how=how, routing=routing, prefix=prefix, barred=beyond,
        patience=waits,
    )  # fmt: skip
    handed = before.finish + pools.transfer_s
    decode_requests = np.flatnonzero(np.isfinite(handed))
    order = decode_requests[np.argsort(handed[decode_requests], kind="stable")]
    answers = Traffic.of(handed[order], traffic.prompt[order], traffic.output[order])
    after = simulate(
        answers, pace, rules._replace(handed=1, caching=0), replicas=pools.decode, how=how, routing="least-loaded",
        patience=None if waits is None else traffic.arrival[order] + waits - handed[order],
    )  # fmt: skip
    times = {key: np.full(len(traffic), np.nan) for key in ("first", "finish", "abandonment")}
    if waits is not None:
        times["abandonment"] = before.abandonment + overhead_s
    for key, values in times.items():
        if getattr(after, key) is not None:
            values[order] = getattr(after, key) + overhead_s
    replica = np.full(len(traffic), -1)
    replica[order] = after.replica
    client_run = replace(
        after, traffic=traffic, arrival=before.arrival, scheduled=before.scheduled, **times, refused=before.refused, replica=replica,
        overhead_s=overhead_s, interrupted=before.interrupted or after.interrupted,
        compile_s=before.compile_s + after.compile_s, wall_s=before.wall_s + after.wall_s,
    )  # fmt: skip
    return client_run, before
