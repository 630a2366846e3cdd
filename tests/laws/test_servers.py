"""Queues of textbooks against sums over states, closed forms and limits."""

from __future__ import annotations

import math

import numpy as np
import pytest

from headway.laws.queueing.departures import beat_wait_s
from headway.laws.queueing.servers import erlang_b, erlang_c, kingman_wait_s, servers_wait_s
from support.command import Cli


@pytest.mark.parametrize(("servers", "load"), [(1, 0.3), (2, 1.9), (10, 8.0), (40, 33.0)])
def test_waiting_is_what_the_states_of_the_queue_sum_to(servers: int, load: float) -> None:
    """State n of M/M/c has weight load^n / n!, and beyond the servers load^n / (c! c^(n - c))."""
    states = [load**n / math.factorial(n) for n in range(servers)]
    states += [load**servers / math.factorial(servers) * (load / servers) ** extra for extra in range(6000)]
    waiting = [max(0, n - servers) * weight for n, weight in enumerate(states)]
    assert float(erlang_c(servers, load)) == pytest.approx(sum(states[servers:]) / sum(states), rel=1e-9)
    in_line = sum(waiting) / sum(states)
    assert float(servers_wait_s(servers, load, 2.0)) == pytest.approx(in_line / (load / 2.0), rel=1e-9)  # Little's law
    alone = [load**n / math.factorial(n) for n in range(servers + 1)]
    assert float(erlang_b(servers, load)) == pytest.approx(alone[-1] / sum(alone), rel=1e-12)


def test_arrays_are_each_of_theirs() -> None:
    waits = servers_wait_s(np.array([1, 4, 9]), np.array([0.5, 4.0, 8.0]), 1.0)
    assert waits[0] == pytest.approx(1.0) and math.isinf(waits[1]) and waits[2] == pytest.approx(float(servers_wait_s(9, 8.0, 1.0)))


def test_one_server_is_kingmans_and_more_of_them_wait_less() -> None:
    assert float(servers_wait_s(1, 0.8, 0.5)) == pytest.approx(kingman_wait_s(0.8, 1.0, 1.0, 0.5))
    pooled = [float(servers_wait_s(count, 0.8 * count, 1.0)) for count in (1, 2, 4, 16, 64)]
    assert pooled == sorted(pooled, reverse=True)
    assert kingman_wait_s(1e-9, 1.0, 0.0, 1.0) < beat_wait_s(1.0)


@pytest.mark.parametrize(("servers", "load"), [("0", "1"), ("2.5", "1"), ("2", "0"), ("2", "-1"), ("2", "nan"), ("1e9", "1")])
def test_what_is_no_queue_is_one_line(servers: str, load: str, cli: Cli) -> None:
    answer = cli("law", "erlang_c", f"servers={servers}", f"load={load}")
    assert answer.status == 2 and len(answer.err.strip().splitlines()) == 1
