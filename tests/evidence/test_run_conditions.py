"""What a row says of its run beside lengths and users: the engine's batch limit, how many requests, and a rate that was carried."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from headway.evidence.rows.row import read_rows
from headway.evidence.rows.tasks import Task, Unpredictable, tasks
from headway.evidence.serving.machines import machines
from headway.evidence.serving.predict import Prediction, predict
from headway.evidence.serving.runs import unsteady
from headway.performance.request import Requests, capacity
from support.command import Cli
from support.synthetic import Rig, csv_text, tasks_of

PROMPT, OUTPUT = 1000, 400
LIMITS = (1, 4, 16, 64, 256, 1024)


def predicted(*changes: Mapping[str, object], mode: str = "serving_concurrency", users: int = 64) -> list[Prediction]:
    """Predictions of one chip's rows with other cells."""
    line = Rig("llama-3.1-8b", "H100-SXM-80GB", 1, "vllm", 1).line("r", mode, PROMPT, OUTPUT, users, "x")
    found = predict(tasks_of(csv_text([line | {key: str(value) for key, value in change.items()} for change in changes])))
    assert all(not prediction.why for prediction in found), [prediction.why for prediction in found]
    return found


def at_rates(*rates: float, **more: object) -> list[Prediction]:
    return predicted(*({"batch_or_concurrency": "", "rate_req_s": rate} | more for rate in rates))


def tpot(prediction: Prediction) -> float:
    assert prediction.tpot is not None
    return prediction.tpot.expected


def ttft(prediction: Prediction) -> float:
    assert prediction.ttft is not None
    return prediction.ttft.expected


def rate(prediction: Prediction) -> float:
    assert prediction.rate is not None
    return prediction.rate.expected


def least_capacity() -> float:
    """Requests per second of the expected server with every seat taken."""
    task = tasks_of(
        csv_text([Rig("llama-3.1-8b", "H100-SXM-80GB", 1, "vllm", 1).line("r", "serving_concurrency", PROMPT, OUTPUT, 1, "x")])
    )[0]
    return float(np.ravel(capacity(machines([task.setup]).online(), Requests(prompt=float(PROMPT), output=float(OUTPUT))))[0])


# -- the batch limit ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["serving_concurrency", "offline_throughput"])
def test_max_num_seqs__more_never_finish_less(mode: str) -> None:
    rates = [rate(prediction) for prediction in predicted(*({"max_num_seqs": limit} for limit in LIMITS), mode=mode, users=2048)]
    assert rates == sorted(rates) and rates[-1] > 5 * rates[0]


@pytest.mark.parametrize("limit", [1, 8, 100])
def test_max_num_seqs__an_offline_run_is_one_of_as_many_users(limit: int) -> None:
    limited, counted = predicted(
        {"max_num_seqs": limit, "batch_or_concurrency": ""}, {"batch_or_concurrency": limit}, mode="offline_throughput"
    )
    assert rate(limited) == pytest.approx(rate(counted), rel=1e-9)


def test_max_num_seqs__users_beyond_it_wait() -> None:
    """By Little's law: with 64 users for 8 seats, seven eighths of a request's time are its wait."""
    limited, free = predicted({"max_num_seqs": 8}, {})
    assert ttft(limited) > 10 * ttft(free) and tpot(limited) < tpot(free)
    lasts = ttft(limited) + (OUTPUT - 1) * tpot(limited)
    assert lasts == pytest.approx(64 * OUTPUT / rate(limited), rel=1e-6)


def test_max_num_seqs__none_that_binds_changes_nothing() -> None:
    limited, free = predicted({"max_num_seqs": 512}, {})
    assert (ttft(limited), tpot(limited)) == (ttft(free), tpot(free))


# -- the number of requests ---------------------------------------------------------------------------------------------------------


def test_requests__the_first_round_is_less_of_a_longer_run() -> None:
    """A run of as many requests as users is its start alone: each prompt comes with all others, and half of them are before it."""
    runs = predicted(*({"requests": 64 * rounds} for rounds in (1, 2, 10, 1000)))
    times = [ttft(run) for run in runs]
    assert times == sorted(times, reverse=True) and times[0] > 2 * times[-1]
    shares = [(time - times[-1]) / (times[0] - times[-1]) for time in times[1:3]]
    assert shares == pytest.approx([1 / 2, 1 / 10], abs=0.03)


def test_requests__fewer_than_the_seats_of_an_offline_run() -> None:
    few, users = predicted(
        {"requests": 16, "batch_or_concurrency": ""}, {"requests": 16, "batch_or_concurrency": 16}, mode="offline_throughput"
    )
    assert rate(few) == pytest.approx(rate(users), rel=1e-9)


def test_requests__fewer_than_users_are_not_served_at_once() -> None:
    few, counted = predicted({"requests": 16}, {"requests": 16, "batch_or_concurrency": 16})
    assert tpot(few) == pytest.approx(tpot(counted), rel=1e-9)
    assert any(flag.startswith("requests: 16 of 64 users") for flag in few.flags)


def test_max_num_seqs__below_a_stated_batch_is_refused(tmp_path: Path) -> None:
    line = Rig("llama-3.1-8b", "H100-SXM-80GB", 2, "vllm", 1).line("r", "decode_step", 2000, 100, 64, "x")
    path = tmp_path / "rows.csv"
    path.write_text(csv_text([line | {"max_num_seqs": str(limit)} for limit in (16, 32)]), encoding="utf-8")
    short, enough = tasks(read_rows(path)[0])  # two copies with 32 sequences each
    assert isinstance(short, Unpredictable) and short.why.startswith("max_num_seqs: 16 sequences of an instance, fewer than the 32")
    assert isinstance(enough, Task)


# -- a rate -------------------------------------------------------------------------------------------------------------------------


def test_rate__far_below_the_capacity_is_a_request_alone() -> None:
    alone, rare = predicted({"batch_or_concurrency": "", "roofline": "tpot_low_qps"}, {"batch_or_concurrency": "", "rate_req_s": 0.001})
    assert tpot(rare) == pytest.approx(tpot(alone), rel=0.01) and alone.tpot is not None and rare.tpot is not None
    assert rare.tpot.high / rare.tpot.low == pytest.approx(alone.tpot.high / alone.tpot.low, rel=0.02)


def test_rate__a_row_called_unloaded_is_at_its_rate() -> None:
    stated, plain = predicted(
        {"batch_or_concurrency": "", "rate_req_s": 4, "roofline": "tpot_low_qps"}, {"batch_or_concurrency": "", "rate_req_s": 4}
    )
    assert (ttft(stated), tpot(stated)) == (ttft(plain), tpot(plain))


@pytest.mark.parametrize("share", [0.5, 0.9, 1.0, 1.1, 1.6])
def test_rate__carried_is_never_infeasible(share: float) -> None:
    """Little's law: the sequences that decode at once are at most the engine's, also at a rate that the expected server cannot carry."""
    at = share * least_capacity()
    (prediction,) = at_rates(at)
    assert at * (OUTPUT - 1) * tpot(prediction) <= 1024
    assert rate(prediction) == pytest.approx(at * OUTPUT) and math.isfinite(ttft(prediction))
    assert any(flag.startswith("rate_req_s") for flag in prediction.flags) == (share > 1.5)


def test_rate__that_no_datasheet_allows_was_not_carried() -> None:
    """However many arrive, a token takes no less than the floor of every seat, and the answer stays the same."""
    many, more = at_rates(100 * least_capacity(), 1000 * least_capacity())
    assert many.tpot is not None and many.tpot.floor < many.tpot.low <= many.tpot.expected
    assert (ttft(many), tpot(many)) == (ttft(more), tpot(more))
    assert any("more than the datasheet allows" in flag for flag in many.flags)


def test_rate__interval_is_wider_the_nearer_the_capacity() -> None:
    most = least_capacity()
    found = at_rates(*(share * most for share in (0.01, 0.3, 0.6, 0.8)))
    widths = [prediction.tpot.high / prediction.tpot.low for prediction in found if prediction.tpot]
    assert widths == sorted(widths) and widths[-1] > 1.5 * widths[0]


def test_rate__no_jump_at_the_capacity() -> None:
    """A rate a hundredth below what the expected server carries, and one a hundredth above it, take about as long a token."""
    most = least_capacity()
    below, above = at_rates(0.99 * most, 1.01 * most)
    assert tpot(above) == pytest.approx(tpot(below), rel=0.05)


# -- decode steps of no stated batch --------------------------------------------------------------------------------------------------


def test_decode__without_a_batch_there_is_no_answer(tmp_path: Path) -> None:
    line = Rig("deepseek-v3", "H200-SXM", 8, "sglang", 1, "fp8", (("dp", "8"), ("ep", "8"))).line("r", "decode_step", 2000, 100, 8, "x")
    path = tmp_path / "rows.csv"
    path.write_text(csv_text([line | {"batch_or_concurrency": ""}, line]), encoding="utf-8")
    silent, stated = tasks(read_rows(path)[0])
    assert isinstance(silent, Unpredictable) and silent.why.startswith("batch_or_concurrency: missing")
    assert isinstance(stated, Task) and stated.batch == 8


# -- runs of a benchmark's file --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("finished", "is_unsteady"), [(1.0, False), (0.98, False), (0.8, True)])
def test_unsteady__a_rate_that_was_finished_was_carried(finished: float, is_unsteady: bool) -> None:
    """12 requests/s of 400 tokens each, of which the server finished a share, where the law carries 10."""
    line = Rig("llama-3.1-8b", "H100-SXM-80GB", 1, "vllm", 1).line("r", "serving_concurrency", PROMPT, OUTPUT, 64, "x")
    measured = {"rate_req_s": "12", "requests": "3000", "output_tok_s_total": f"{finished * 12 * OUTPUT:g}"}
    (task,) = tasks_of(csv_text([line | measured]))
    assert unsteady(task, 10.0) == is_unsteady and not unsteady(task, 13.0)


@pytest.mark.parametrize(("text", "words"), [("-1", "whole number"), ("0", "whole number"), ("2.5", "whole number"), ("nan", "finite")])
def test_score__a_batch_limit_that_cannot_be_is_refused(cli: Cli, text: str, words: str) -> None:
    file = Path(__file__).parents[1] / "data" / "readers" / "vllm_serve.json"
    status, _, err = cli("score", "--vllm", str(file), "--on", "8xh100-sxm", "--tp", "8", f"--max-num-seqs={text}")
    assert status == 2 and err.startswith(f"headway: --max-num-seqs: got '{text}'; wants") and words in err and err.count("\n") == 1
