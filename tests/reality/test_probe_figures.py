"""Figures of a probe on requests of a server whose law is known, played without a clock: step, slopes, batch limit, departures."""

from __future__ import annotations

import heapq
import random
from dataclasses import dataclass, replace

import pytest

from headway.reality.probe.observed import ServerFigures, StepFit, figures
from headway.reality.probe.run import ProbeRun, StageRun
from headway.reality.probe.schedule import LOAD, SPARSE, WARM_UP, ProbeStage, stages
from headway.reality.probe.stream import StreamedRequest
from headway.report.probe import summary

WITHIN = 0.15  # what the issue asks for


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """A server's law, and the delay of the network, exponential with this mean."""

    fixed: float
    request: float
    token: float = 0.0
    prefill: float = 1e-5
    seats: int = 6
    interval: float = 0.0
    jitter: float = 0.0002

    def stage(self, stage: ProbeStage, begin: float, draw: random.Random) -> tuple[StageRun, float]:
        """A stage, request by request, and when it ended."""
        arrivals = [(begin + at * 1e-4, stage.requests - 1 - at) for at in range(stage.concurrency)]
        left, riders, done, now = stage.requests - stage.concurrency, [], [], begin
        heapq.heapify(arrivals)
        while arrivals or riders:
            if not riders:
                now = max(now, arrivals[0][0])
            if self.interval:
                now = -(-now // self.interval) * self.interval
            boarding = []
            while arrivals and arrivals[0][0] <= now and len(riders) < self.seats:
                arrival, _ = heapq.heappop(arrivals)
                uneven = draw.uniform(0.75, 1.25) if stage.kind == LOAD else 1
                boarding.append((arrival, max(round(stage.output * uneven), 2), []))
                riders.append(boarding[-1])
            if not riders:
                now = max(now, arrivals[0][0]) + 1e-9
                continue
            context = sum(stage.prompt + len(times) for _, _, times in riders)
            end = now + self.fixed + self.request * len(riders) + self.token * context + self.prefill * stage.prompt * len(boarding)
            for _, _, times in riders:
                times.append(end + draw.expovariate(1 / self.jitter))
            for arrival, wants, times in [rider for rider in riders if len(rider[2]) == rider[1]]:
                done.append(StreamedRequest(start=arrival, times=tuple(times), prompt_tokens=stage.prompt, output_tokens=wants,
                                            is_counted=True, is_ended=True))  # fmt: skip
                if left:
                    left -= 1
                    pause = draw.expovariate(1 / (1.5 * (times[-1] - arrival))) if stage.kind == SPARSE else 5e-4
                    heapq.heappush(arrivals, (max(times[-1], end) + pause, left))
            riders = [rider for rider in riders if len(rider[2]) < rider[1]]
            now = max(end, now + 1e-9)
        return StageRun(stage=stage, requests=tuple(done), seconds=now - begin), now

    def probe(self, seed: int = 1) -> ProbeRun:
        """A whole probe."""
        draw, result, now = random.Random(seed), ProbeRun(), 1000.0
        for stage in stages((128, 1024), 64, (1, 2, 4, 8, 16)):
            if stage.kind != WARM_UP:
                run, now = self.stage(stage, now + 0.1, draw)
                result.stages.append(run)
        return result


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_figures__steps_one_after_another_have_their_law(seed: int) -> None:
    server = Played(fixed=0.010, request=0.001, token=4e-7)
    told = figures(server.probe(seed))
    assert told.step is not None and told.interval_s is None
    assert told.step.fixed_s == pytest.approx(server.fixed, rel=WITHIN)
    assert told.step.request_s == pytest.approx(server.request, rel=WITHIN)
    assert told.step.token_s == pytest.approx(server.token, rel=WITHIN)
    assert (told.most_decoding, told.is_limited) == (6.0, True)
    assert told.prefill_tok_per_s == pytest.approx(1 / (server.prefill + server.token), rel=WITHIN)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_figures__trains_on_a_timetable_have_interval_slope_and_seats(seed: int) -> None:
    """Steps are shorter than the interval, so that no user sees them in the pace of tokens."""
    server = Played(fixed=0.004, request=0.0006, interval=0.020, prefill=2e-6)
    told = figures(server.probe(seed))
    assert told.interval_s == pytest.approx(server.interval, rel=0.02) and told.step is not None
    assert told.step.request_s == pytest.approx(server.request, rel=WITHIN)
    assert told.step.fixed_s == pytest.approx(server.fixed, abs=0.2 * server.interval)
    assert (told.most_decoding, told.is_limited) == (6.0, True)


def test_figures__late_trains_show_their_step_in_the_pace() -> None:
    server = Played(fixed=0.015, request=0.004, interval=0.020, prefill=2e-6, seats=12)
    told = figures(server.probe())
    assert told.step is not None and told.step.request_s == pytest.approx(server.request, rel=WITHIN)


def test_figures__no_limit_shows_below_it() -> None:
    told = figures(Played(fixed=0.010, request=0.001, seats=100).probe())
    assert told.is_limited is False and told.most_decoding == pytest.approx(16, abs=2)


def test_figures__without_a_slope_say_so() -> None:
    """A flat step: the slope is small beside its interval, or not told apart."""
    told = figures(Played(fixed=0.010, request=0.0).probe())
    assert told.step is not None and (told.step.request_s or 0) < 0.0003


def test_figures__a_rate_of_prefill_is_told_apart_from_noise() -> None:
    """Prompts are free here: whatever difference shows is the network's."""
    rates = [figures(Played(fixed=0.010, request=0.001, prefill=0.0, jitter=0.002).probe(seed)).prefill_tok_per_s for seed in range(8)]
    assert sum(rate is not None for rate in rates) <= 2


def test_words__state_what_is_told_apart_and_where_to_look() -> None:
    fits = [StepFit(fixed_s=0.01, request_s=0.001, token_s=1e-6, fixed_half=0.002, request_half=half, token_half=2e-6, points=9)
            for half in (0.0002, 0.002)]  # fmt: skip
    server = ServerFigures(step=fits[0], alone=None, most_decoding=8.0, is_limited=False, interval_s=None, prefill_tok_per_s=None,
                           unloaded_s=None, most_sent=8)  # fmt: skip
    told, flat = (summary(ProbeRun(), replace(server, step=fit, most_sent=sent), "p.json") for fit, sent in zip(fits, (8, 32), strict=True))
    assert told.headline == "A step takes 10 ms + 1 ms per request."
    assert "90 % intervals: the fixed part ± 2 ms, the slope by request ± 200 us" in told.remarks
    assert flat.headline.startswith("Tokens come every 10 ms") and "per request" not in flat.headline
    assert "a higher --concurrency" in " ".join(told.remarks) and "(--output)" in " ".join(flat.remarks)
    assert "on a timetable" in " ".join(flat.remarks) and "on a timetable" not in " ".join(told.remarks)


def test_words__a_pace_of_whole_departures_is_no_step() -> None:
    """Steps of 10.6 to 13.6 ms on a clock of 12 ms: users see 24."""
    probe = Played(fixed=0.010, request=0.0006, interval=0.012).probe()
    told = summary(probe, figures(probe), "p.json")
    assert told.headline.startswith("Tokens come every 24 ms") and "a step is up to 12 ms shorter" in " ".join(told.remarks)
