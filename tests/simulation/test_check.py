"""A candidate checked by simulation, against queues whose latencies are known: no queue, M/D/1, and the same requests played otherwise."""

from __future__ import annotations

from dataclasses import replace
from math import exp, factorial, floor, log
from statistics import NormalDist

import numpy as np
import pytest

from headway.core.errors import BadValue
from headway.core.schema import defaults
from headway.laws.serving.request import missed_pairs, missed_tokens
from headway.performance.assumptions import Assumptions
from headway.performance.layout import Layout
from headway.simulation.check.check import CheckedCandidate, check, checks, confidence, scouted
from headway.simulation.check.limits import LatencyLimits, limit_of
from headway.simulation.check.offered import OfferedTraffic, replica_share
from headway.simulation.check.plays import COMPILED, PLAIN, Candidate, PlayableCandidate, candidate, effort, in_flight, playable, stretched
from headway.simulation.questions import Policy
from headway.simulation.simulate import simulate
from headway.simulation.traffic.distributions import Bursty, Constant, Diurnal, Even, Lengths, Lognormal, Poisson
from support.simulated import pace

SERVICE_S, PROMPT = 0.05, 100  # of the queue with one server: a step takes one prompt
LIMITS = LatencyLimits(ttft_p95=1.0, tpot_p95=0.05)


def llama(replicas: int = 1, policy: Policy | None = None, **assumed: object) -> Candidate:
    """Llama 3.1 8B on H100s of its own."""
    taken = defaults(Assumptions, dict(assumed))
    layout = Layout(replicas=replicas)
    return candidate("llama-3.1-8b", f"{replicas}xh100-sxm", layout, prompt=1000, output=100, assumptions=taken, policy=policy or Policy())


def offered(rate: float, prompt: Lengths | int = 1000, output: Lengths | int = 100, **more: object) -> OfferedTraffic:
    lengths = [Constant(tokens=tokens) if isinstance(tokens, int) else tokens for tokens in (prompt, output)]
    return OfferedTraffic(rate=rate, prompt=lengths[0], output=lengths[1], **more)  # type: ignore[arg-type]


def one_server(rate: float, count: int, seed: int = 0) -> PlayableCandidate:
    """A queue with one server: every step takes SERVICE_S and the one prompt that fits in it; answers have one token."""
    scene = playable(llama(policy=Policy(token_budget=PROMPT)), offered(rate, PROMPT, 1), count, (seed,), "plain")
    plan = replace(scene.fleet.scheduler, overhead_s=0.0)
    fleet = replace(scene.fleet, pace=pace(repr(SERVICE_S), scene.fleet.scheduler.rules.seats), scheduler=plan)
    trial = replace(scene.trial, fleet=fleet)
    return replace(scene, trial=trial, able=trial.capacity(scene.loads[0].requests))


def waits_at_most(time: float, rate: float, service: float) -> float:
    """Share of customers of an M/D/1 queue who wait at most so long (Erlang 1909)."""
    terms = [
        exp(rate * (time - k * service)) * (-rate * (time - k * service)) ** k / factorial(k) for k in range(floor(time / service) + 1)
    ]
    return (1.0 - rate * service) * sum(terms)


def mean_s(rate: float, service: float) -> float:
    """Mean response of an M/D/1 queue (Pollaczek and Khinchine)."""
    return service + rate * service**2 / (2 * (1 - rate * service))


def test_play__requests_that_never_meet_have_one_latency() -> None:
    """Even arrivals, slow enough that each request is alone: every percentile is the step of its prompt."""
    scene = playable(llama(), offered(0.2, arrivals="even"), 200, (0,), "plain")
    assert scene.fleet.pace is not None
    statistics = {row.quantity: row for row in scene.play().latencies.all()}
    alone = scene.fleet.pace.step(0.0, 0.0, 1000.0, 500_000.0, 1.0) + scene.fleet.scheduler.overhead_s
    for statistic in (statistics["ttft"].mean, statistics["ttft"].p50, statistics["ttft"].p99):
        assert statistic.value == pytest.approx(alone, rel=1e-3)  # causal pairs: a prompt's own tokens count half
    tpot = statistics["tpot"]
    assert tpot.p50.value == pytest.approx(tpot.p99.value, rel=1e-9) == pytest.approx(tpot.mean.value, rel=1e-9)
    assert (tpot.p95.low, tpot.p95.high) == pytest.approx((tpot.p95.value, tpot.p95.value), rel=1e-9)


@pytest.mark.parametrize("factor", [1.0, 1.25])
def test_play__queue_with_one_server_follows_lindley(factor: float) -> None:
    """Each response of the same arrivals, one after another: exact, at 70 % and at 87.5 % of the capacity."""
    result = one_server(14.0, 3000).play(factor)
    arrival, end, ends = one_server(14.0, 3000).loads[0].traffic.arrival, 0.0, []
    for time in arrival:
        end = max(end, time) + SERVICE_S * factor
        ends.append(end)
    responses = (np.array(ends) - arrival)[300:]  # after the warm-up
    sampled = result.latencies.statistic("ttft", "p95")
    assert sampled is not None and sampled.value == pytest.approx(np.percentile(responses, 95), rel=1e-9)
    assert result.latencies.within("ttft", 0.2) == pytest.approx((responses <= 0.2).mean(), abs=1e-12)
    assert result.utilisation == pytest.approx(0.7 * factor, rel=0.01)


def test_play__queue_with_one_server_has_the_known_mean_and_percentile() -> None:
    rate = 14.0
    latencies = one_server(rate, 12_000, 1).play().latencies
    ttft, mean = latencies.statistic("ttft", "p95"), latencies.statistic("ttft", "mean")
    assert ttft is not None and ttft.low is not None and ttft.high is not None
    assert waits_at_most(ttft.low - SERVICE_S, rate, SERVICE_S) <= 0.95 <= waits_at_most(ttft.high - SERVICE_S, rate, SERVICE_S)
    assert mean is not None and mean.low is not None and mean.high is not None
    assert mean.low <= mean_s(rate, SERVICE_S) <= mean.high
    assert mean.high - mean.low < 0.15 * mean.value


def test_confidence__of_a_queue_with_one_server() -> None:
    """The factor at which the mean response meets its limit follows from the formula, and its probability from that."""
    rate, most, spread = 12.0, 0.15, 1.358
    low, high = 0.5, 1 / (rate * SERVICE_S)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if mean_s(rate, middle * SERVICE_S) <= most else (low, middle)
    truth = NormalDist(0.0, log(spread) / NormalDist().inv_cdf(0.95)).cdf(log(low))
    scene, limit = one_server(rate, 6_000, 1), limit_of("ttft", most)
    answer = confidence(lambda factor: [scene.play(factor).excess(limit)], [limit], [spread], highest=scene.highest_factor)
    assert answer is not None and answer.factor == pytest.approx(low, rel=0.02)
    assert answer.probability == pytest.approx(truth, abs=0.03)


def test_play__longer_steps_are_no_sooner() -> None:
    scene = playable(llama(), offered(12.0, Lognormal(mean=1000, sigma=0.8), Lognormal(mean=100, sigma=0.8)), 600, (0,), "plain")
    plays = [scene.play(factor).latencies for factor in (0.7, 0.9, 1.0, 1.1, 1.4)]
    for quantity in ("ttft", "tpot", "e2e"):
        for statistic in ("mean", "p50", "p95"):
            values = [latencies.statistic(quantity, statistic) for latencies in plays]
            numbers = [value.value for value in values if value is not None]
            assert numbers == sorted(numbers) and len(numbers) == 5


def test_play__units_of_time_change_nothing() -> None:
    """Steps 1.3 times as long, with the traffic as it comes, give what hastened traffic gives in units of 1.3 s."""
    scene = playable(llama(engine="vllm", policy=None), offered(12.0), 500, (0,), "plain")
    slow, load = stretched(scene.fleet, 1.3), scene.loads[0]
    assert slow.pace is not None
    run = simulate(load.traffic, slow.pace, slow.scheduler.rules, overhead_s=slow.scheduler.overhead_s, how="plain")
    ours, = scene.play(1.3).runs  # fmt: skip
    for times in ("first", "finish"):
        assert getattr(ours, times) * 1.3 == pytest.approx(getattr(run, times), rel=1e-9)


def test_check__one_replica_stands_for_all() -> None:
    """The percentiles of one replica at its share lie within the errors of those of the whole fleet."""
    subject, load = llama(4), offered(44.0, Lognormal(mean=1000, sigma=0.8))
    share = playable(subject, load, 3000, (1,), "plain").play()
    loading = load.load(12_000, 2)
    whole_fleet = subject.fleet(loading.traffic, False)
    scene = playable(subject, load, 3000, (1,), "plain")
    fleet_scene = replace(scene, trial=replace(scene.trial, fleet=whole_fleet), loads=(loading,), able=None)
    fleet_play = fleet_scene.play()
    for quantity in ("ttft", "tpot"):
        for statistic in ("mean", "p50", "p95"):
            one_s, all_s = (play.latencies.statistic(quantity, statistic) for play in (share, fleet_play))
            assert one_s is not None and all_s is not None and None not in (one_s.low, one_s.high, all_s.low, all_s.high)
            assert max(one_s.low or 0, all_s.low or 0) <= min(one_s.high or 0, all_s.high or 0), (quantity, statistic)


@pytest.mark.parametrize(
    "process", [Poisson(rate=12.0), Bursty(rate=12.0, cv=2.0), Even(rate=12.0), Diurnal(rate=12.0, period=4.0, levels=(1.0, 3.0))]
)
def test_replica_share__every_nth_arrival(process: Poisson | Bursty | Even | Diurnal) -> None:
    share = replica_share(process, 4).draw(np.random.default_rng(0), 40_000)
    thinned = process.draw(np.random.default_rng(1), 160_000)[::4]
    gaps, truth = np.diff(share), np.diff(thinned)
    assert gaps.mean() == pytest.approx(truth.mean(), rel=0.02)
    assert np.quantile(gaps, [0.05, 0.5, 0.95]) == pytest.approx(np.quantile(truth, [0.05, 0.5, 0.95]), rel=0.04)


def test_check__same_seed_same_answer() -> None:
    first, second, third = (check(llama(), offered(8.0), LIMITS, requests=300, seeds=(seed,), how="plain") for seed in (3, 3, 4))
    assert first.statuses == second.statuses and first.confidence == second.confidence
    assert first.statuses != third.statuses


def test_check__overload_is_never_confident() -> None:
    few = llama(policy=Policy(max_seqs=64))
    capacity_req_per_s = check(few, offered(1.0), (), requests=400, how="plain").capacity_req_per_s
    assert capacity_req_per_s is not None
    over = check(few, offered(1.15 * capacity_req_per_s), LatencyLimits(tpot_p95=5.0), requests=500, how="plain")
    assert not over.stable and not over.is_met and not over.holds(0.5) and over.latencies == ()
    assert over.confidence is not None and over.confidence.probability < 0.5
    assert over.utilisation == pytest.approx(1.15, rel=0.05)


def test_check__overload_is_seen_without_a_simulated_capacity() -> None:
    """As of a short play, requests that fill memory or steps are overload."""
    able = check(llama(), offered(1.0), (), requests=400, how="plain").capacity_req_per_s or 0.0
    for share, stable in ((0.5, True), (2.0, False)):
        scene = playable(llama(), offered(share * able), 400, (0,), "plain", with_capacity=False)
        assert scene.able is None and scene.play().stable == stable


def test_check__expected_value_as_limit_is_even() -> None:
    load, subject = offered(6.0), llama()
    simulated = check(subject, load, LatencyLimits(tpot=1.0), requests=400, how="plain").statuses[0].simulated
    assert simulated is not None
    limit = LatencyLimits(tpot=simulated.value * 1.0001)
    answer = check(subject, load, limit, requests=400, how="plain").confidence
    assert answer is not None and answer.probability == pytest.approx(0.5, abs=0.01)


def test_check__hit_tokens_are_not_prefilled() -> None:
    """Alone on the machine, TTFT is the step of the tokens that miss, which attend to all before them."""
    scene = playable(llama(hit_rate=0.75), offered(0.2, 4000, arrivals="even"), 60, (0,), "plain")
    assert scene.fleet.pace is not None
    ttft = scene.play().latencies.statistic("ttft", "p50")
    uncached, pairs = float(missed_tokens(4000, 0.75)), float(missed_pairs(4000.0, 0.75))
    expected = scene.fleet.pace.step(0.0, 0.0, uncached, pairs, 1.0) + scene.fleet.scheduler.overhead_s
    assert ttft is not None and ttft.value == pytest.approx(expected, rel=1e-3)


def test_check__requests_too_long_for_the_cache_break_limits_on_means() -> None:
    subject = llama(policy=Policy(kv_tokens=3000))
    checked = check(subject, offered(0.5, Lognormal(mean=1000, sigma=0.8)), LatencyLimits(ttft=9.0, ttft_p50=9.0, ttft_p99=9.0),
                    requests=600, how="plain")  # fmt: skip
    assert 0.01 < checked.rejected < 0.5
    assert [status.is_met for status in checked.statuses] == [False, True, False]


def test_check__layout_that_does_not_fit_has_a_reason() -> None:
    subject = candidate("llama-3.1-70b", "h100-sxm", Layout(), prompt=1000, output=100)
    checked = check(subject, offered(1.0), LIMITS, requests=200, how="plain")
    assert "no room for a KV cache" in checked.why and not checked.is_met and not checked.holds()


def test_check__closed_loop_of_users() -> None:
    users = OfferedTraffic(users=8, prompt=Constant(tokens=1000), output=Constant(tokens=100))
    checked = check(llama(2), users, LatencyLimits(tpot=0.05), requests=200, how="plain")
    assert checked.stable and checked.utilisation is None and checked.replicas_played == 1
    assert checked.in_service is not None and 6.0 < checked.in_service <= 8.0


def test_checks__stop_when_the_caller_does() -> None:
    done: list[tuple[int, int]] = []
    answers = checks(
        [llama(), llama(2)], offered(4.0), LIMITS, requests=200, how="plain", exact=False, progress=lambda *at: done.append(at)
    )
    first = next(answers)
    assert isinstance(first, CheckedCandidate) and first.holds() and done == []
    assert next(answers).plays <= 3 and done == [(1, 2)]


def test_scouted__decides_only_where_a_short_play_breaks_a_limit_by_far() -> None:
    """What it decides is what longer plays say."""
    load, subject = offered(14.0), llama()
    simulated = check(subject, load, LIMITS, requests=800, how="plain").statuses[1].simulated
    assert simulated is not None
    work = effort(tuple(LIMITS), COMPILED, None, 0.1)
    near, far = (LatencyLimits(tpot_p95=simulated.value / factor) for factor in (1.2, 2.5))
    assert scouted(subject, load, tuple(near), work, (0,)) is None
    hopeless = scouted(subject, load, tuple(far), work, (0,))
    assert hopeless is not None and not hopeless.is_met and not hopeless.holds(0.5) and hopeless.is_short
    assert not check(subject, load, far, requests=800, how="plain").is_met
    assert scouted(subject, load, tuple(far), effort(tuple(LIMITS), PLAIN, None, 0.1), (0,)) == hopeless


@pytest.mark.parametrize("needed", [0.0, 0.3, 1.0])
def test_checks__confidence_is_a_probability_above_even(needed: float) -> None:
    with pytest.raises(BadValue, match="--confidence"):
        check(llama(), offered(1.0), LIMITS, needed=needed)


def test_offered__one_source_alone() -> None:
    with pytest.raises(BadValue, match="one of --rate"):
        OfferedTraffic(prompt=Constant(tokens=1), output=Constant(tokens=1))
    with pytest.raises(BadValue, match="a rate and users"):
        OfferedTraffic(rate=1.0, users=2, prompt=Constant(tokens=1), output=Constant(tokens=1))
    with pytest.raises(BadValue, match="--prompt and --output"):
        OfferedTraffic(rate=1.0)


def test_effort__higher_percentiles_take_more_requests_in_either_form() -> None:
    p95, p99 = ((limit_of(name, 1.0),) for name in ("ttft_p95", "ttft_p99"))
    plain, compiled = ([effort(limits, how, None, 0.1) for limits in (p95, p99)] for how in (PLAIN, COMPILED))
    assert plain[1].requests > plain[0].requests and [replace(work, how=COMPILED) for work in plain] == compiled
    with pytest.raises(BadValue, match="p99 TTFT"):
        effort(p99, PLAIN, 100, 0.1)


def test_in_flight__littles_law_in_the_simulation() -> None:
    scene = playable(llama(), offered(10.0), 1500, (0,), "plain")
    e2e = scene.play().latencies.statistic("e2e", "mean")
    assert e2e is not None
    assert in_flight(scene.fleet, scene.loads[0]) == pytest.approx(10.0 * e2e.value, rel=0.15)
