"""Prefix hits in capacity and verdict, users who talk, traces of conversations: by hand, against queues with feedback and longer runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headway.core.errors import BadFile
from headway.simulation.capacity import stand
from headway.simulation.simulate import simulate
from headway.simulation.traffic.distributions import Constant, Poisson, parse_lengths
from headway.simulation.traffic.generate import ConversationTurns, Think, generate_conversations, generate_talking_users
from headway.simulation.traffic.read import read_trace
from headway.simulation.traffic.requests import Traffic
from support.command import Cli
from support.simulated import RULES, pace, play

CONVERSATIONS = Path(__file__).parents[1] / "data" / "traces" / "talks.jsonl"
TALKS = "sim llama-3.1-8b --on h100 --sensitivity 0 --prompt 800 --output 2 --turns 4,3s --requests 1000 --kv-tokens"


def feedback(load: float, seed: int, turns: float = 4.0, think: float = 5.0) -> Traffic:
    """Conversations of geometric turns for a server of 0.2 s a turn on average."""
    rng = np.random.default_rng(seed)
    sizes = rng.geometric(1 / turns, 800)
    names = np.repeat(np.arange(len(sizes)), sizes)
    begins = np.repeat(np.cumsum(rng.exponential(turns * 0.2 / load, len(sizes))), sizes)
    first = np.concatenate(([True], names[1:] != names[:-1]))
    pause = np.where(first, 0.0, rng.exponential(think, len(names)))
    sums = np.cumsum(pause)
    shown = begins + sums - np.repeat(sums[first], sizes)
    order = np.argsort(shown, kind="stable")
    return Traffic.of(shown[order], 1, rng.geometric(1 / 20, len(names)), conversation=names[order], pause=pause[order])


@pytest.mark.parametrize(("load", "stable"), [(0.8, True), (2.5, False)])
def test_growth__of_conversations_is_seen_although_their_turns_come_ever_more_slowly(load: float, stable: bool) -> None:
    """Offered load alone decides a queue with feedback (Jackson 1957); its growth is looked at without any capacity."""
    verdicts = [stand(play(feedback(load, seed), "0.01", seats=1, capacity=10**9), None, rate=load / 0.2).stable for seed in range(3)]
    assert verdicts == [stable] * 3


def test_capacity__counts_the_tokens_that_a_cache_of_any_size_finds(cli: Cli) -> None:
    """With room for all, a turn computes what its conversation's earlier turns did not: 802 new tokens and a part of a block."""
    [row] = cli.json(f"{TALKS} 300k --prefix-cache hbm:40GB --rate 10")["rows"]
    lengths, turns, count = (Constant(tokens=800), Constant(tokens=2)), ConversationTurns(mean=4.0, gap=3.0), row["judged_requests"]
    traffic = generate_conversations(Poisson(rate=10.0), 10.0, *lengths, turns, count, 0)
    late = traffic.prompt[traffic.arrival > traffic.arrival[-1] / 2]
    kept = (late - 800 - 1).clip(0) // 64 * 64  # of the prompt and answer before, whose last token has no KV
    assert row["hit_rate_settled"] == pytest.approx(kept.sum() / late.sum(), abs=0.02)
    assert row["stable"] and row["utilisation"] == pytest.approx(10 / row["capacity_req_per_s"])


@pytest.mark.slow
def test_verdict__of_a_cache_is_that_of_its_capacity_and_of_a_run_ten_times_longer(cli: Cli) -> None:
    """The cache holds few of the conversations: what they find when it is still empty carries no lasting load."""
    asked = f"{TALKS} 30k --prefix-cache hbm:4GB --rate 40"
    [row], [longer] = (cli.json(asked.replace("1000", count))["rows"] for count in ("1000", "10k"))
    assert not row["stable"] and not longer["stable"] and row["p99_ttft_s"] is None
    assert row["utilisation"] > 1.0 and row["hit_rate_settled"] < row["hit_rate"]


@pytest.mark.slow
@pytest.mark.parametrize(("room", "recovers"), [("200k", False), ("3M", True)])
def test_verdict__of_what_an_empty_cache_does_not_carry(cli: Cli, room: str, recovers: bool) -> None:
    """The 540 conversations that begin in two minutes have 430k tokens in their first turns, 1.7M in all: too many, or all stay."""
    told = cli.json(f"{TALKS} {room} --prefix-cache hbm:400GB --rate 18")
    [row] = told["rows"]
    assert row["stable"] and row["recovers"] == recovers
    assert row["capacity_without_hits_req_per_s"] < 18 < row["capacity_req_per_s"]
    assert "lives on prefix hits" in told["answer"] and ("a stop is for good" in told["answer"]) != recovers


@pytest.mark.slow
def test_verdict__a_service_that_stops_hitting_in_ten_times_the_requests_does_not_recover(cli: Cli) -> None:
    """With ten times the requests it is overloaded, without a single hit in the end; after a stop it is seen at once."""
    talks = "sim llama-3.1-70b --on 8xh100-sxm --tp 8 --sensitivity 0 --prompt 1k --output 300 --turns 10,20s --prefix-cache hbm:200GB"
    [row], [longer] = (cli.json(f"{talks} --rate 2.2 --requests {count}")["rows"] for count in ("1000", "10k"))
    assert row["stable"] and row["recovers"] is False and not longer["stable"]


@pytest.mark.parametrize("more", ["--patience 30ms", "--patience 30ms --replicas 3", "--patience 1ms", "--kv-tokens 1500"])
def test_users__who_give_up_or_are_refused_send_as_many_requests_as_asked(cli: Cli, more: str) -> None:
    asked = f"sim --step 20ms+1ms*n --loop plain --users 7 --turns 6,1s --prompt 300 --output 20 --max-seqs 4 --requests 250 {more}"
    [row] = cli.json(asked)["rows"]
    assert row["completed"] + row["cancelled"] == 250 == row["requests"] - row["rejected"]


def talking(users: int = 3, count: int = 60, think: Think | None = None) -> Traffic:
    lengths = (Constant(tokens=10), parse_lengths("uniform:2,9", "output", answers=True))
    return generate_talking_users(users, think, *lengths, ConversationTurns(mean=3.0, gap=4.0), count, seed=5)


@pytest.mark.parametrize(("replicas", "users"), [(1, 3), (2, 4)])
def test_users__go_on_with_a_conversation_then_begin_the_next(replicas: int, users: int) -> None:
    """Each request is sent its pause after an answer of the same user: so many are answered as asked, never more at once than users."""
    traffic = talking(users)
    run = simulate(traffic, pace("0.5", 32), RULES, users=users, sends=60, replicas=replicas, how="plain")
    assert len(run.traffic) == 60 and run.completed.all() and not run.refused.any()
    edges = sorted([(time, 1) for time in run.arrival] + [(time, -1) for time in run.finish])
    assert max(np.cumsum([step for _, step in edges])) <= users
    assert run.traffic.prompt.max() > 30, "prefixes grow"
    begins = np.sort(run.arrival)[:users]
    assert begins.min() > 0 and len(set(begins)) == users, "users do not begin together"


def test_users__wait_for_the_pause_of_their_next_turn_by_hand() -> None:
    traffic = Traffic.of(np.zeros(5), [1, 6, 1, 6, 1], 2, conversation=[0, 0, 1, 1, 2], pause=[0.0, 3.0, 7.0, 2.0, 9.0])
    run = simulate(traffic, pace("1.0", 32), RULES, users=1, sends=4, how="plain")
    assert run.arrival.tolist() == [0.0, 5.0, 14.0, 18.0]
    assert run.finish.tolist() == [2.0, 7.0, 16.0, 20.0]


def test_users__who_give_up_begin_another_conversation() -> None:
    traffic = Traffic.of(np.zeros(4), [1, 6, 1, 6], [40, 2, 2, 2], conversation=[0, 0, 1, 1], pause=[0.0, 3.0, 7.0, 2.0])
    run = simulate(traffic, pace("1.0", 32), RULES, users=1, sends=3, how="plain", patience=[0.5, 9.0, 9.0, 9.0])
    assert run.abandonment[0] == 0.5 and run.arrival.tolist() == [0.0, 7.5, 11.5]


def test_users__with_turns_find_what_they_said_before(cli: Cli) -> None:
    asked = "sim llama-3.1-8b --on h100 --users 8 --turns 4,2s --prompt 900 --output 20 --requests 200 --loop plain --sensitivity 0"
    [bare], [cached] = (cli.json(f"{asked}{more}")["rows"] for more in ("", " --prefix-cache hbm:40GB"))
    assert bare["requests"] == cached["requests"] == 200 and cached["hit_rate"] > 0.5
    assert cached["mean_ttft_s"] < bare["mean_ttft_s"] and cached["stable"] and cached["utilisation"] is None


def test_sessions__are_read_as_turns_after_answers() -> None:
    trace = read_trace(CONVERSATIONS)
    assert trace.traffic.conversation.tolist() == [0, -1, 0, 0, 1] and trace.traffic.pause is not None
    assert trace.traffic.pause.tolist() == [0.0, 0.0, 2.5, 0.5, 0.0]
    run = play(trace.traffic, "1.0", seats=8)
    assert run.arrival.tolist() == [0.0, 1.0, 5.5, 8.0 + 0.0, 60.0]
    assert trace.sorted == 0 and "2 turns of conversations" in trace.notes()[0]


@pytest.mark.parametrize("line", ['{"session_id": "b", "input_length": 1, "output_length": 1}', '{"input_length": 1, "output_length": 1}',
                                  '{"timestamp": 1, "session_id": [], "input_length": 1, "output_length": 1}'])  # fmt: skip
def test_sessions__without_a_time_are_malformed(tmp_path: Path, line: str) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text(f"{line}\n", encoding="utf-8")
    with pytest.raises(BadFile, match=r"timestamp|session_id"):
        read_trace(path)


def test_hit_rates__up_to_one_are_computed(cli: Cli) -> None:
    asked = "serve llama-3.1-8b --on h100 --prompt 4k --output 100 --batch 8 --hit-rate 0.9,0.97,0.999,1"
    rows: list[dict[str, Any]] = cli.json(asked)["rows"]
    times = [row["ttft_s"] for row in rows]
    assert times == sorted(times, reverse=True) and times[-1] > 0 and all(row["ttft_floor_s"] <= row["ttft_s"] for row in rows)
