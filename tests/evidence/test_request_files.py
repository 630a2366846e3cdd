"""Files of single requests: those of simulated runs, whose load is known, against the benchmark client's summary of the same run."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from headway.core.errors import BadFile
from headway.evidence.readers import requests, vllm_bench
from headway.evidence.readers.files import RunFields
from headway.sim.results import measured
from support.benchmark_file import FaultyRun, simulated, write

H100 = RunFields(hardware="h100-sxm", chips=8, tp=8, model="llama-3.1-70b")
CLOSED, OPEN = FaultyRun(cause="", users=32), FaultyRun(cause="", rate=6.0)


def lines(case: FaultyRun) -> list[dict[str, float]]:
    run, traffic = simulated(case)
    ttft = measured(run, 0.0).values("ttft_s", known=True)
    columns = zip(run.arrival, run.finish, ttft, traffic.prompt, traffic.output, strict=True)
    return [
        {
            "start": float(start),
            "ttft_ms": 1000 * float(first),
            "e2e_s": float(end - start),
            "prompt_tokens": int(prompt),
            "output_tokens": int(out),
        }
        for start, end, first, prompt, out in columns
    ]


def write_csv(path: Path, records: list[dict[str, float]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, records[0])
        writer.writeheader()
        writer.writerows(records)
    return path


@pytest.mark.parametrize("case", [CLOSED, OPEN, FaultyRun(cause="", users=1, requests=40)], ids=["32-users", "6-per-s", "alone"])
def test_requests__the_summary_of_the_same_run(case: FaultyRun, tmp_path: Path) -> None:
    (row,), bad = requests.read(write_csv(tmp_path / "run.csv", lines(case)), H100)
    (summary,), _ = vllm_bench.read(write(case, tmp_path / "run.json"), H100)
    assert not bad and row.tpot_s and row.concurrency
    for name in ("prompt", "output", "ttft_s", "tpot_s", "output_tok_per_s", "requests"):
        assert getattr(row, name) == pytest.approx(getattr(summary, name), rel=2e-2 if name == "tpot_s" else 1e-3), name
    assert (row.request_rate is None) == (case.rate == 0)
    if case.rate:
        assert row.request_rate == pytest.approx(case.rate, rel=0.15)  # of 400 drawn arrivals
        assert row.concurrency == pytest.approx(summary.concurrency, rel=1e-2)
    else:
        assert row.concurrency == case.users


def test_requests__json_lines_with_units_and_clock(tmp_path: Path) -> None:
    """AIPerf's form: metadata with nanoseconds since 1970, metrics with their units."""
    plain = lines(CLOSED)
    records = [
        {
            "metadata": {"request_start_ns": round(1.76e18 + 1e9 * line["start"]), "was_cancelled": False},
            "metrics": {
                "time_to_first_token": {"value": line["ttft_ms"], "unit": "ms"},
                "request_latency": {"value": 1000 * line["e2e_s"], "unit": "ms"},
                "input_sequence_length": {"value": line["prompt_tokens"], "unit": "tokens"},
                "output_sequence_length": {"value": line["output_tokens"], "unit": "tokens"},
            },
        }
        for line in plain
    ]  # fmt: skip
    path = tmp_path / "profile_export.jsonl"
    path.write_text("\n".join(json.dumps(record) for record in records), encoding="utf-8")
    (row,), bad = requests.read(path, H100)
    (same,), _ = requests.read(write_csv(tmp_path / "run.csv", plain), H100)
    assert not bad
    for name in ("prompt", "output", "concurrency", "ttft_s", "tpot_s", "output_tok_per_s"):
        assert getattr(row, name) == pytest.approx(getattr(same, name), rel=1e-6), name


def test_users_of__closed_or_open() -> None:
    """Fifty draws of each: users that ask again within 5 ms of a request's end, and Poisson arrivals with as many inside on average."""
    rng = np.random.default_rng(1)
    for users in (2, 8, 40, 200):
        for _ in range(50 if users < 100 else 5):
            ready, starts, ends = np.zeros(users), [], []
            for _ in range(10 * users):
                user = int(np.argmin(ready))
                starts.append(float(ready[user]))
                ends.append(starts[-1] + 5.0 * float(rng.uniform(0.8, 1.2)))
                ready[user] = ends[-1] + float(rng.uniform(0, 0.005))
            order = np.argsort(starts)
            assert requests.users_of(np.array(starts)[order], np.array(ends)[order]) == pytest.approx(users, rel=0.05)
            arrivals = np.cumsum(rng.exponential(5.0 / users, 10 * users))
            assert requests.users_of(arrivals, arrivals + 5.0 * rng.uniform(0.8, 1.2, 10 * users)) is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a,b\n1,2\n", "start"),
        ("start,ttft,prompt_tokens,output_tokens\n" + "0,1,10,10\n" * 12, "e2e"),
        ("start,ttft,e2e,prompt_tokens,output_tokens\n" + "0,3,2,10,10\n" * 12, "ttft"),
        ("start,ttft,e2e,prompt_tokens,output_tokens\n" + "x,1,2,10,10\n" * 12, "start: got 'x'"),
        ("start,ttft,e2e,prompt_tokens,output_tokens\n" + "0,1,nan,10,10\n" * 12, "e2e"),
        ("start,ttft,e2e,prompt_tokens,output_tokens\n0,1,2,10,10\n", "at least 10"),
        ("start,ttft,e2e,prompt_tokens,output_tokens,error\n" + "0,1,2,10,10,timeout\n" * 12, "no request that succeeded"),
    ],
)
def test_requests__bad_files(text: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadFile, match=says):
        requests.read(path, H100)
