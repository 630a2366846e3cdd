"""The loop against answers worked out by hand, and against the step law with nobody else in service."""

from __future__ import annotations

import numpy as np
import pytest

from headway.performance.layout import Layout
from headway.serving.serve import serve
from headway.simulation import state as of
from headway.simulation.simulate import simulate
from headway.simulation.traffic.requests import Traffic
from support.simulated import RULES, pace, play, real

UNLOADED = (
    ("llama-3.1-70b", "8xh100-sxm", Layout(tp=8)),
    ("qwen2.5-0.5b", "h100", Layout()),
    ("mixtral-8x7b-v0.1", "8xh100-sxm", Layout(tp=8)),
    ("gpt-oss-120b", "8xh100-sxm", Layout(tp=4)),
    ("deepseek-v3", "gb200-nvl72", Layout(tp=1, ep=64, dp=64)),
    ("deepseek-v3.2", "8xh200-sxm", Layout(tp=8, ep=8)),
    ("minimax-m1-80k", "8xh200-sxm", Layout(tp=8)),
    ("qwen3-next-80b-a3b", "8xh100-sxm", Layout(tp=4, pp=2)),
)


@pytest.mark.parametrize(("model", "system", "layout"), UNLOADED, ids=[case[0] for case in UNLOADED])
def test_simulate__lone_request_has_ttft_and_tpot_of_serve(model: str, system: str, layout: Layout) -> None:
    prompt, output = 3000, 700
    traffic = Traffic.of([0.0, 1e5], prompt, output)
    made = real(model, system, layout, traffic)
    assert made.pace
    run = simulate(traffic, made.pace, made.scheduler.rules, overhead_s=made.scheduler.overhead_s, how="plain")
    contexts = prompt + np.arange(1, output)  # each new token attends to itself and to all before it
    steps = serve(model, system, layout, batch=1, context=list(contexts.astype(float))).values("step_s")
    unloaded = serve(model, system, layout, batch=1, prompt=prompt, output=output).row(0)
    tpot = (run.finish - run.first) / (output - 1)
    assert tpot == pytest.approx(np.mean(np.asarray(steps, float)), rel=1e-9)
    assert tpot == pytest.approx(unloaded["tpot_s"], rel=1e-3)  # Simpson's rule of three contexts there
    assert run.first - run.arrival == pytest.approx(unloaded["ttft_s"], rel=1e-9)
    assert run.first - run.arrival == pytest.approx(unloaded["ttft_unloaded_s"], rel=1e-9)


def test_chunked_prefill__beside_decodes_by_hand() -> None:
    # A: 3 tokens of prompt, 4 of answer; B comes at 0.5 with 6 and 2. Four tokens a step, a step takes 1 s.
    run = play(Traffic.of([0.0, 0.5], [3, 6], [4, 2]), "1.0", budget=4, chunk=4)
    assert run.first.tolist() == [1.0, 3.0]  # B's prompt goes in chunks of 3 beside A's decodes
    assert run.finish.tolist() == [4.0, 4.0]
    assert run.scheduled.tolist() == [0.0, 1.0]


def test_prefill_first__decodes_wait_by_hand() -> None:
    run = play(Traffic.of([0.0, 0.5], [3, 6], [4, 2]), "1.0", budget=4, chunk=4, mixed=0)
    assert run.first.tolist() == [1.0, 3.0]  # A waits while B's prompt takes two steps
    assert run.finish.tolist() == [6.0, 4.0]


def test_departures__steps_start_on_the_beat() -> None:
    run = play(Traffic.of([0.003, 0.031], 1, [3, 1]), "0.004 + 0.02 * (1.0 if tokens > 1.0 else 0.0)", departures=0.02)
    assert run.scheduled == pytest.approx([0.02, 0.04])
    assert run.finish == pytest.approx([0.08, 0.06])


def test_departures__long_step_misses_the_next_beat() -> None:
    run = play(Traffic.of([0.0], 1, 3), "0.025", departures=0.02)
    assert run.finish == pytest.approx([0.12])


def test_preemption__latest_request_goes_back_to_the_queue() -> None:
    # 10 blocks of 2: each request ends with 6 blocks, so that two do not fit.
    run = play(Traffic.of([0.0, 0.0], 4, 8), "1.0", capacity=10, block=2)
    assert run.total_count(of.PREEMPTED) == 1
    assert run.finish[0] == 8.0
    assert run.completed.all()
    assert run.first[1] == 1.0  # counted once
    assert run.total(of.EMITTED) == 16.0
    reserved = play(Traffic.of([0.0, 0.0], 4, 8), "1.0", capacity=10, block=2, reserve=1.0)
    assert reserved.total_count(of.PREEMPTED) == 0
    assert reserved.first[1] == 9.0


def test_admission__refuses_only_the_request_that_never_fits() -> None:
    run = play(Traffic.of([0.0, 0.1, 0.2], [10, 500, 10], 5), "1.0", capacity=20, block=16)
    assert run.refused.tolist() == [False, True, False]
    assert run.completed.tolist() == [True, False, True]


def test_priority__first_class_is_scheduled_first() -> None:
    run = play(Traffic.of([0.0, 0.1, 0.2], 1, 5), "1.0", seats=1, lanes=2 * of.LANE, ranks=[1, 1, 0])
    assert run.scheduled.tolist() == [0.0, 10.0, 5.0]


def test_speculation__several_tokens_per_step() -> None:
    run = play(Traffic.of([0.0], 4, 9), "1.0", accept=2.0)
    assert run.finish.tolist() == [5.0]


def test_closed_loop__next_request_follows_the_answer() -> None:
    traffic = Traffic.of(np.zeros(6), 1, 3)
    run = simulate(traffic, pace("1.0"), RULES._replace(closed=1), users=2, think=np.full(6, 0.5), how="plain")
    assert run.finish.tolist() == [3.0, 3.0, 6.5, 6.5, 10.0, 10.0]


def test_draft_cost__lengthens_decode_and_not_prefill() -> None:
    from headway.cli.main import main

    def first(*argv: str) -> dict[str, float]:
        import contextlib
        import io
        import json

        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            assert main([*argv, "--accept-length", "2", "--draft-cost", "0.2", "--prompt", "2k", "--output", "200", "-o", "json"]) == 0
        return json.loads(out.getvalue())["rows"][0]

    alone = first("sim", "llama-3.1-8b", "--on", "h100", "--rate", "0.01", "--arrivals", "even", "--requests", "20")
    served = first("serve", "llama-3.1-8b", "--on", "h100", "--batch", "1")
    assert alone["mean_ttft_s"] == pytest.approx(served["ttft_s"], rel=1e-9)
    assert alone["mean_tpot_s"] == pytest.approx(served["tpot_s"], rel=0.01)
