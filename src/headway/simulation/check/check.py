"""A candidate checked by simulation: latencies beside the limits, stability, goodput, and the confidence that every limit holds.

checked = check(candidate, OfferedTraffic(rate=12.0, prompt=..., output=...), LatencyLimits(ttft_p95=1.5, tpot_p95=0.040))
checked.is_met, checked.confidence.probability, checked.utilisation
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import log

import numpy as np

from headway.core.errors import BadValue
from headway.simulation.check.candidate import Candidate
from headway.simulation.check.confidence import DEFAULT, Confidence, confidence
from headway.simulation.check.effort import AUTO, COMPILED, PLAIN, Effort, effort, lifetimes
from headway.simulation.check.latencies import LatencyStatistics, LimitStatus
from headway.simulation.check.limits import LatencyLimit, check_limits, check_requests
from headway.simulation.check.offered import OfferedTraffic
from headway.simulation.check.plays import WARMUP, PlayableCandidate, PlayResult, goodput, is_shared_out, playable

SCOUTS = 400  # requests of a first short play, before anything is compiled
FAR = log(1.5)  # excess over a limit, as a logarithm, that no sampling error explains
Progress = Callable[[int, int], None]  # candidates checked, candidates in all


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedCandidate:
    """What the simulator says of a candidate; with `why` it cannot run, and the rest is empty."""

    candidate: Candidate
    why: str = ""
    stable: bool = False
    statuses: tuple[LimitStatus, ...] = ()  # every limit beside its simulated statistic
    latencies: tuple[LatencyStatistics, ...] = ()
    confidence: Confidence | None = None  # None without limits
    utilisation: float | None = None  # offered rate over capacity; None for users, and where plain Python cannot simulate the capacity
    capacity_req_per_s: float | None = None  # of all replicas
    goodput_req_per_s: float | None = None
    good_share: float | None = None  # requests that keep every limit
    in_service: float | None = None  # mean requests in service in all replicas
    rejected: float = 0.0  # share of requests longer than a replica's KV cache
    requests: int = 0  # of one play, all seeds together
    replicas_played: int = 0
    seeds: tuple[int, ...] = ()
    plays: int = 0
    is_short: bool = False  # plain Python played fewer requests than machine code would

    @property
    def is_met(self) -> bool:
        """Whether the queue is stable and every limit is met with steps as estimated."""
        return not self.why and self.stable and all(status.is_met for status in self.statuses)

    def holds(self, needed: float = DEFAULT) -> bool:
        """Whether every limit is met with at least this confidence; without limits, whether the queue is stable."""
        if self.confidence is None:
            return self.is_met
        return self.stable and self.confidence.reaches(needed)


def check(
    candidate: Candidate, offered: OfferedTraffic, limits: Iterable[LatencyLimit], *, needed: float = DEFAULT, exact: bool = True,
    requests: int | None = None, seeds: Sequence[int] = (0,), how: str = AUTO,
) -> CheckedCandidate:  # fmt: skip
    """A candidate played under traffic, at expected steps and at longer and shorter ones.

    `exact` finds the confidence to a hundredth (in plain Python to four); else the plays end once it is known whether `needed` is reached.
    """
    return next(checks((candidate,), offered, limits, needed=needed, exact=exact, requests=requests, seeds=seeds, how=how))


def checks(
    candidates: Sequence[Candidate], offered: OfferedTraffic, limits: Iterable[LatencyLimit], *, needed: float = DEFAULT,
    exact: bool = True, requests: int | None = None, seeds: Sequence[int] = (0,), how: str = AUTO, progress: Progress | None = None,
) -> Iterator[CheckedCandidate]:  # fmt: skip
    """Each candidate checked, in order; a caller that stops early pays for no more. All play the same requests."""
    if not 0.5 <= needed < 1.0:
        raise BadValue("--confidence", needed, "a probability from 0.5 to below 1, such as 0.8")
    if not seeds:
        raise BadValue("seeds", "none", "at least one seed")
    wanted_limits = check_limits(limits, _longest_output(offered, seeds[0]))
    if offered.trace is not None:
        check_requests(wanted_limits, len(offered.trace), 0.0, "--trace")
    meet = not all(is_shared_out(candidate, offered) for candidate in candidates)
    work = effort(wanted_limits, how, requests, WARMUP if offered.lasting else 0.0, len(candidates), meet)
    for number, candidate in enumerate(candidates):
        yield _checked(candidate, offered, wanted_limits, work, tuple(seeds), needed if not exact else None)
        if progress is not None:
            progress(number + 1, len(candidates))


def _longest_output(offered: OfferedTraffic, seed: int) -> int:
    return int(offered.load(1_000, seed).traffic.output.max())


def _checked(
    candidate: Candidate, offered: OfferedTraffic, limits: tuple[LatencyLimit, ...], work: Effort, seeds: tuple[int, ...],
    needed: float | None,
) -> CheckedCandidate:  # fmt: skip
    hopeless = scouted(candidate, offered, limits, work, seeds) if needed is not None and offered.lasting and limits else None
    if hopeless is not None:
        return hopeless
    scene = playable(candidate, offered, work.requests, seeds, work.how)
    if scene.fleet.pace is None:
        return CheckedCandidate(candidate=candidate, why=scene.fleet.why)
    scene = lengthened(scene, candidate, offered, work, seeds)
    results: dict[float, PlayResult] = {}

    def excess(factor: float) -> list[float]:
        results[factor] = scene.play(factor)
        return [results[factor].excess(limit) for limit in limits]

    spreads = [candidate.step_spread(limit.quantity) for limit in limits]
    sure = confidence(excess, limits, spreads, highest=scene.highest_factor, needed=needed, close=work.close)
    first = results.get(1.0) or scene.play(1.0)
    return reported(candidate, scene, first, limits, sure, work, seeds)


def scouted(
    candidate: Candidate, offered: OfferedTraffic, limits: tuple[LatencyLimit, ...], work: Effort, seeds: tuple[int, ...]
) -> CheckedCandidate | None:
    """The answer of a short play in plain Python that breaks a limit by far; None if it does not, and longer plays decide.

    A play begins with empty replicas, so that a short one of a lasting load shows latencies too low rather than too high.
    """
    if work.how != COMPILED or work.requests <= SCOUTS:
        return None
    scene = playable(candidate, offered, SCOUTS, seeds[:1], PLAIN, with_capacity=False)
    if scene.fleet.pace is None:
        return None
    first = scene.play()
    if max((first.excess(limit) for limit in limits), default=0.0) <= FAR or not first.stable:
        return None
    tightest = max(limits, key=first.excess)
    unsure = Confidence(probability=0.0, low=0.0, high=0.5, factor=None, tightest=tightest, plays=1)
    return reported(candidate, scene, first, limits, unsure, replace(work, is_short=True), seeds[:1])


def lengthened(
    scene: PlayableCandidate, candidate: Candidate, offered: OfferedTraffic, work: Effort, seeds: Sequence[int]
) -> PlayableCandidate:
    """The candidate with more requests where a play would last too few times in service; the fleet and its capacity stay."""
    count = lifetimes(scene.fleet, scene.loads[0], work)
    if offered.trace is not None or count <= len(scene.loads[0].traffic):
        return scene
    return replace(scene, loads=tuple(offered.load(count, seed, scene.shares) for seed in seeds))


def reported(
    candidate: Candidate, scene: PlayableCandidate, first: PlayResult, limits: tuple[LatencyLimit, ...], sure: Confidence | None,
    work: Effort, seeds: tuple[int, ...],
) -> CheckedCandidate:  # fmt: skip
    """The answer from the play with steps as estimated, and the confidence."""
    from headway.simulation.results import occupancy

    rate, share = goodput(scene, first, limits) if first.stable else (None, None)
    return CheckedCandidate(
        candidate=candidate, stable=first.stable, statuses=first.latencies.statuses(limits, first.stable),
        latencies=first.latencies.all() if first.stable else (), confidence=sure, utilisation=first.utilisation,
        capacity_req_per_s=scene.able and scene.able.per_s * scene.shares, goodput_req_per_s=rate, good_share=share,
        in_service=float(np.mean([occupancy(run)["running_mean"] for run in first.runs])) * scene.shares,
        rejected=first.latencies.rejected, requests=scene.requests, replicas_played=scene.fleet.replicas, seeds=seeds,
        plays=1 if sure is None else sure.plays, is_short=work.is_short,
    )  # fmt: skip
