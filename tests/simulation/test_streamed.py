"""Runs whose requests are not kept, beside runs that keep them; sketches beside sorted values; memory that is told beside what is used."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.simulation import capacity, results, streamed
from headway.simulation.compiled import available
from headway.simulation.simulate import simulate
from headway.simulation.sketch import RELATIVE_ERROR, QuantileSketch
from headway.simulation.streamed import simulate_stream
from headway.simulation.traffic import stream as pieces_of
from headway.simulation.traffic.distributions import parse_arrivals, parse_lengths
from headway.simulation.traffic.generate import generate
from headway.simulation.traffic.stream import DrawnTraffic
from support.command import Cli
from support.simulated import RULES, pace

LAW = "0.005 + 1e-4 * batch + 2e-5 * tokens + 1e-8 * context"
PERCENTS = (1, 50, 90, 99, 99.9)
COUNT = 6000


def drawn(arrivals: str = "poisson", rate: float = 30.0, count: int = COUNT) -> DrawnTraffic:
    lengths = parse_lengths("lognormal:300,1", "prompt"), parse_lengths("lognormal:80,1", "output")
    return DrawnTraffic(arrivals=parse_arrivals(arrivals, rate), prompt=lengths[0], output=lengths[1], count=count, seed=4)


def whole(traffic: DrawnTraffic) -> Any:
    return generate(traffic.arrivals, traffic.prompt, traffic.output, traffic.count, traffic.seed)


# -- requests drawn piece by piece ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arrivals", ["poisson", "even", "bursty:3", "diurnal:1min,1,0,4"])
def test_pieces__are_the_requests_drawn_at_once(arrivals: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces_of, "PIECE", 700)
    traffic = drawn(arrivals)
    parts, at_once = list(traffic.pieces()), whole(traffic)
    for name in ("arrival", "prompt", "output"):
        assert np.concatenate([getattr(part, name) for part in parts]).tolist() == getattr(at_once, name).tolist()
    assert traffic.span == (at_once.arrival[0], at_once.arrival[-1])
    assert (traffic.sample.prompt + traffic.sample.output).max() == (at_once.prompt + at_once.output).max()


# -- sketches ------------------------------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(st.just(0.0), st.floats(1e-8, 1e6)), min_size=1, max_size=200), st.floats(0, 100))
def test_percentiles__within_the_error_that_is_said(values: list[float], percent: float) -> None:
    sketch = QuantileSketch(batches=1)
    sketch.add(np.array(values), np.zeros(len(values), int))
    exact = np.percentile(values, percent, method="inverted_cdf")
    assert sketch.percentiles([percent])[0] == pytest.approx(exact, rel=RELATIVE_ERROR * 1.0001)
    assert sketch.mean == pytest.approx(np.mean(values)) and sketch.largest == max(values)


# -- runs ----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("replicas", "way", "rate", "room"),
    [(1, "round-robin", 6.0, 4000), (4, "round-robin", 30.0, 400), (4, "least-loaded", 30.0, 400), (2, "round-robin", 60.0, 400)],
)
def test_stream__has_every_figure_of_the_run_that_keeps_its_requests(
    replicas: int, way: str, rate: float, room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pieces_of, "PIECE", 500)
    rules, traffic = RULES._replace(capacity=room, seats=24, block=16), drawn(rate=rate)
    about: Any = {"replicas": replicas, "routing": way, "overhead_s": 0.01, "how": "plain"}
    limits = {"ttft_s": 0.1, "tpot_s": 0.02}
    run = simulate_stream(traffic, pace(LAW, 24), rules, warmup=0.1, limits=limits, **about)
    kept = simulate(whole(traffic), pace(LAW, 24), rules, **about)
    sample = results.measured(kept, 0.1)
    exact = results.run_rates(kept) | results.goodput(kept, sample, limits) | results.latencies(kept, sample, PERCENTS)
    told = run.tally.rates() | run.tally.goodput() | run.tally.latencies(run, PERCENTS)
    assert told.keys() == exact.keys() and (told["rejected"] > 0) == (room == 400)
    known = {name for key in results.SPANS for name in results.percentile_keys(PERCENTS, key)}
    for key, value in exact.items():
        if key.endswith("_ci_s") and (room == 400 or "tpot" in key):
            continue  # batches are by number, refused requests and answers of one token included
        if key not in known:  # times between tokens are counted in parts of a jump, and jumps end where pieces do
            assert told[key] == pytest.approx(value, rel=1e-5 if "itl" in key else 1e-9), key
    for key in results.SPANS:
        values = sample.values(key, known=True)
        for percent, name in zip(PERCENTS, results.percentile_keys(PERCENTS, key), strict=True):
            low, high = (np.percentile(values, percent, method=method) for method in ("lower", "higher"))
            assert low * (1 - RELATIVE_ERROR) <= told[name] <= high * (1 + RELATIVE_ERROR) + 1e-12, name
    assert results.queued_share(run) == pytest.approx(results.queued_share(kept))
    assert run.tally.stand(None, None).stable == capacity.stand(kept, None).stable == (rate < 60)
    assert run.tally.stand(None, None).growth == pytest.approx(capacity.stand(kept, None).growth, rel=0.02)


def test_stream__forgets_requests_that_have_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces_of, "PIECE", 100)
    most = []
    count = streamed.StreamedPlay.count
    monkeypatch.setattr(streamed.StreamedPlay, "count", lambda play: (most.append(len(play.slots.number)), count(play))[1])
    simulate_stream(drawn(rate=6.0), pace(LAW, 24), RULES._replace(capacity=4000, seats=24, block=16), how="plain")
    assert max(most) < 400


# -- memory --------------------------------------------------------------------------------------------------------------------------

ASKED = ("sim", "llama-3.1-8b", "--on", "h100", "--engine", "vllm", "--rate", 4, "--prompt", 500, "--output", 200)


def test_limit_memory__refuses_before_the_run(cli: Cli) -> None:
    answer = cli(*ASKED, "--requests", 90_000_000, "--patience", "10s", "--limit-memory", "2GB")
    assert answer.status == 2 and "about 10.2 GB" in answer.err and answer.err.count("\n") == 1
    assert cli(*ASKED, "--requests", 500, "--limit-memory", "100MB").status == 2


@pytest.mark.parametrize("more", [("--find", "rate", "--so-that", "p99_ttft_s=1s"), ("--rate", 4, "--prefix-cache", "hbm:4GB")])
def test_limit_memory__counts_longer_runs_that_the_answer_may_need(cli: Cli, more: tuple[Any, ...]) -> None:
    words = ("sim", "llama-3.1-8b", "--on", "h100", "--prompt", 500, "--output", 20, "--turns", "4,3s", "--requests", 20_000, *more)
    answer = cli(*words, "--limit-memory", "310MB")
    assert answer.status == 2 and "its longest run may take" in answer.err and answer.err.count("\n") == 1


@pytest.mark.skipif(not available(), reason="plain Python plays fewer")
@pytest.mark.parametrize(("rate", "gap", "longest"), [(18, "300s", "216,000"), (18, "3s", "200,000"), (5000, "300s", "1,000,000")])
def test_limit_memory__counts_what_is_played_after_a_stop(cli: Cli, rate: int, gap: str, longest: str) -> None:
    """Four stops of two minutes, or of a conversation of ten turns, are played: 4 x 10 x 300 s x 18/s = 216,000 requests."""
    talks = ("sim", "llama-3.1-8b", "--on", "h100", "--prompt", 500, "--output", 20, "--turns", f"10,{gap}", "--prefix-cache", "hbm:4GB")
    answer = cli(*talks, "--rate", rate, "--requests", 1000, "--limit-memory", "200MB")
    assert answer.status == 2 and f"of {longest} requests" in answer.err


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not say what a process held at most")
@pytest.mark.parametrize("more", [("--turns", "5,60s"), ("--patience", "100s"), ()])
def test_memory__is_at_most_what_is_told(more: tuple[str, ...]) -> None:
    words = [str(word) for word in (*ASKED, "--requests", 1_000_000, *more, "--limit-memory", "2GB", "-o", "json")]
    # Linux's own word: getrusage also counts what the process held before it became this command, which is this test's.
    used = "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))"
    code = f"import sys; from headway.cli.main import main; main(sys.argv[1:]); {used}"
    out = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True, env=os.environ).stdout
    document, _, kilobytes = out.strip().rpartition("\n")
    (note,) = (text for text in json.loads(document)["notes"] if "of memory" in text)
    told = float(note.split("about ")[1].split(" ")[0])
    assert int(kilobytes) * 1024 / 1e6 < told
