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
from headway.simulation.results import measured
from support.benchmark_file import FaultyRun, simulated, write
from support.paths import TESTS

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


LOG = (TESTS / "data/readers/requests.csv").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize(
    ("cells", "says"),
    [
        ({"start_s": "nan"}, "start_s: got 'nan'; wants a finite number"), ({"start_s": "-Infinity"}, "start_s"),
        ({"start_s": "-5"}, "start_s"),
        ({"start_s": "1.7e15"}, "microseconds?"), ({"start_s": "5230.0"}, "another unit or clock?"), ({"ttft_ms": "-100"}, "ttft_ms"),
        ({"ttft_ms": "0"}, "ttft_ms: got '0'"), ({"ttft_ms": "78900"}, "ttft: got 78.9 s; wants at most"),
        ({"ttft_ms": "0.0789"}, "seconds?"), ({"ttft_ms": "412000"}, "ttft"), ({"e2e_s": "0"}, "e2e_s: got '0'"),
        ({"e2e_s": "2308.1"}, "milliseconds?"), ({"prompt_tokens": "1e12"}, "prompt_tokens"), ({"prompt_tokens": "0"}, "prompt_tokens"),
        ({"output_tokens": "True"}, "output_tokens"), ({"output_tokens": '"[1]"'}, "output_tokens"),
        ({"output_tokens": "1,2"}, "6 cells under 5"),
        ({"output_tokens": '"9'}, "opens a quote"),
    ],
)  # fmt: skip
def test_requests__a_bad_line_is_told_and_the_row_is_that_of_the_file_without_it(cells: dict[str, str], says: str, tmp_path: Path) -> None:
    columns, line = LOG[0].split(","), 40
    values = dict(zip(columns, LOG[line].split(","), strict=True)) | cells
    path = tmp_path / "log.csv"
    path.write_text("\n".join([*LOG[:line], ",".join(values.values()), *LOG[line + 1 :]]), encoding="utf-8")
    rows, bad = requests.read(path, H100)
    assert [row.line for row in bad] == [line + 1] and says in bad[0].why, bad
    path.write_text("\n".join([*LOG[:line], *LOG[line + 1 :]]), encoding="utf-8")
    assert requests.read(path, H100) == (rows, [])


def test_requests__twin_columns_and_a_log_all_in_another_unit_are_one_error(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("\n".join([LOG[0] + ",ttft_ms", *(f"{line},1" for line in LOG[1:])]), encoding="utf-8")
    with pytest.raises(BadFile, match="more than one column ttft_ms"):
        requests.read(path, H100)
    path.write_text("\n".join([LOG[0].replace("ttft_ms", "ttft_s"), *LOG[1:]]), encoding="utf-8")
    with pytest.raises(BadFile, match="milliseconds"):
        requests.read(path, H100)


def test_requests__a_log_that_never_states_ttft_has_none(tmp_path: Path) -> None:
    """A client that does not stream writes 0 on each line: not measured, and no fault of the line."""
    path = tmp_path / "log.csv"
    cells = [row.split(",") for row in LOG[1:]]
    path.write_text("\n".join([LOG[0], *(",".join([start, "0", *rest]) for start, _, *rest in cells)]), encoding="utf-8")
    rows, bad = requests.read(path, H100)
    assert rows[0].ttft_s is None and bad == []
