"""Replicas of several attention ranks or pipeline stages in a closed loop: `serve` beside the simulator."""

from __future__ import annotations

import pytest

from headway.models.precision import Precision
from headway.performance.layout import Layout
from headway.performance.request import Requests, closed_loop
from headway.serving.serve import serve
from headway.simulation.check.check import check
from headway.simulation.check.limits import LatencyLimits
from headway.simulation.check.offered import OfferedTraffic
from headway.simulation.check.plays import Candidate, candidate
from headway.simulation.traffic.distributions import Constant, Lengths, Lognormal

HEADLINE = ("deepseek-v3", "gb200-nvl72", Layout(dp=8, ep=8), 8000, 1000, 1376)  # one replica, prompts and answers, users
CASES = (
    HEADLINE,
    ("deepseek-v3", "8xh200", Layout(dp=8, ep=8), 8000, 300, 256),
    ("qwen3-30b-a3b", "4xh200", Layout(dp=4, ep=4), 4000, 300, 128),
    ("mixtral-8x7b", "8xh100-sxm", Layout(tp=2, dp=4), 4000, 300, 128),
    ("llama-3.1-70b", "8xh100-sxm", Layout(tp=2, pp=4), 4000, 200, 64),
    ("qwen3-30b-a3b", "4xh100", Layout(pp=4), 4000, 300, 512),
    ("llama-3.1-8b", "8xh100-sxm", Layout(pp=8), 5000, 500, 512),  # prompts of all eight micro-batches come together
)
FP8 = Precision(kv="fp8")
TURNS = 4  # requests of each user


def scattered_e2e_s(deployment: Candidate, prompt: int, output: int, users: int, scatter: float) -> float:
    """E2E time by the fixed point, where lengths of answers have this standard deviation over their mean."""
    case = deployment.query.at(deployment.layout, deployment.query.load)
    server = case.server(case.compiled())
    times = closed_loop(server, Requests(prompt=float(prompt), output=float(output), spread=scatter), float(users))
    return float(times.ttft + times.tpot * (output - 1))


@pytest.mark.parametrize(("name", "machine", "layout", "prompt", "output", "users"), CASES)
def test_closed_loop__between_users_in_lockstep_and_users_in_no_order(
    name: str, machine: str, layout: Layout, prompt: int, output: int, users: int
) -> None:
    """Answers of one length keep users who begin together in lockstep, drawn ones do not; `serve` assumes that lengths scatter a little.

    So its time of a request lies between lockstep and what it says of lengths that scatter widely, and told how much they scatter it is
    within 15 % of users who draw them so.
    """
    row = serve(name, machine, layout, batch=users, prompt=prompt, output=output, precision=FP8).row(0)
    deployment = candidate(name, machine, layout, prompt=prompt, output=output, precision=FP8)
    played = []
    lengths: tuple[Lengths, ...] = (Constant(tokens=output), Lognormal(mean=output, sigma=0.3))
    for answers in lengths:
        offered = OfferedTraffic(users=users, prompt=Constant(tokens=prompt), output=answers)
        checked = check(deployment, offered, LatencyLimits(e2e=1e6), requests=TURNS * users, how="plain")
        played.append(checked.statuses[0].simulated)
    lockstep, drawn = (time.value for time in played if time is not None)
    assert row["fits"]
    scattered = scattered_e2e_s(deployment, prompt, output, users, 0.3)
    assert lockstep < row["e2e_s"] < scattered
    assert scattered == pytest.approx(drawn, rel=0.15)
