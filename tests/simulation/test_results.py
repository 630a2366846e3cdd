"""What a row of a simulation says: percentiles, bands of the step time, Little's law, split pools, and words for a person."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from headway.cli.main import main
from headway.simulation import results
from headway.simulation.traffic.requests import Traffic
from support.command import Cli, changed
from support.simulated import play

ASKED = "sim llama-3.1-70b --on 8xh100-sxm --tp 8 --prompt 2k --output 100 --requests 400 --loop plain"
SPLIT = "sim llama-3.1-70b --on 2x8xh100-sxm --tp 8 --prompt 2k --output 100 --requests 400 --loop plain --policy disaggregated"


def test_latencies__in_slices_equal_whole_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    run = play(Traffic.of(np.cumsum(rng.exponential(0.1, 500)), 10, rng.integers(1, 9, 500)), "0.01 + 0.001 * batch")
    monkeypatch.setattr(results, "SLICE", 7)
    found = results.latencies(run, results.measured(run, 0.1))
    ttft = (run.first - run.arrival)[50:]
    more = run.traffic.output[50:] > 1
    tpot = ((run.finish - run.first)[50:] / np.maximum(run.traffic.output[50:] - 1, 1))[more]
    for key, values in (("ttft", ttft), ("tpot", tpot)):
        assert found[f"p99_{key}_s"] == np.percentile(values, 99)
        assert found[f"p50_{key}_s"] == np.percentile(values, 50)
        assert found[f"mean_{key}_s"] == pytest.approx(values.mean(), rel=1e-12)


def test_traffic__constant_columns_take_no_memory() -> None:
    """Ten million requests have no conversation and no blocks: that takes no memory."""
    traffic = Traffic.of(np.arange(1000.0), 10, 10)
    assert traffic.conversation.strides == traffic.block_start.strides == (0,)
    assert traffic.part(10, 20).block_start.tolist() == [0] * 11


def test_sensitivity__band_equals_runs_with_scaled_steps(cli: Cli) -> None:
    [row] = cli.rows(f"{ASKED} --rate 6")
    [longer] = cli.rows(f"{ASKED} --rate 6 --step-factor 1.1")
    [shorter] = cli.rows(f"{ASKED} --rate 6 --step-factor 0.8 --sensitivity 0")
    [wide] = cli.rows(f"{ASKED} --rate 6 --sensitivity 20%")
    for key in ("mean_ttft", "p99_ttft", "mean_tpot", "p99_tpot"):
        assert row[f"{key}_lo_s"] < row[f"{key}_s"] < row[f"{key}_hi_s"]
        assert row[f"{key}_hi_s"] == pytest.approx(longer[f"{key}_s"], rel=1e-9)
        assert wide[f"{key}_lo_s"] == pytest.approx(shorter[f"{key}_s"], rel=1e-9)
    assert "p99_ttft_lo_s" not in shorter


def test_sensitivity__no_upper_end_where_longer_steps_overload(cli: Cli, capsys: pytest.CaptureFixture[str]) -> None:
    command = f"{ASKED.replace('400', '2000')} --rate 9.8 --sensitivity 30%"
    [row] = cli.rows(command)
    assert row["stable"]
    assert row["p99_ttft_lo_s"] is not None
    assert row["p99_ttft_hi_s"] is None
    assert main(command.split()) == 0
    assert ".. overload" in capsys.readouterr().out


@pytest.mark.parametrize("command", [f"{ASKED} --rate 6", f"{ASKED} --users 20 --think 1s", f"{ASKED} --rate 6 --fast 0.3",
                                     f"{SPLIT} --rate 4", f"{ASKED} --rate 4 --departures 20ms",
                                     f"{ASKED} --rate 1 --engine vllm --turns 3,20s --prefix-cache hbm:60GB,ddr:1TB"])  # fmt: skip
def test_littles_law__holds_in_every_row(cli: Cli, command: str) -> None:
    assert cli.rows(command)[0]["little"] == pytest.approx(1.0, abs=2e-3)


def test_sim_row__disaggregated_has_columns_of_both_pools(cli: Cli) -> None:
    [row] = cli.rows(f"{SPLIT} --rate 1 --turns 3,20s --prefix-cache hbm:60GB,ddr:1TB")
    assert 0 < row["prefill_busy_share"] < 1
    assert row["prefill_running_mean"] < row["running_mean"]
    assert 0 < row["hit_rate"] < 1
    assert set(row["hit_rate_by_tier"]) == {"hbm", "ddr"}
    assert row["joule_per_token"] > 0
    assert row["usd_per_request"] > 0


def test_plot__latencies_and_curves_of_a_run(tmp_path: Path) -> None:
    """Queue, batch, KV cache and time to first token over the time of the run."""
    pytest.importorskip("vl_convert")
    path = tmp_path / "run.svg"
    assert main(f"{ASKED} --rate 6 --plot {path}".split()) == 0
    drawn = path.read_text(encoding="utf-8")
    for title in ("Requests waiting", "Requests in service", "KV cache that requests hold", "Time to first token"):
        assert title in drawn
    assert "NaN" not in drawn


def test_sim_row__has_its_number_of_users(cli: Cli) -> None:
    assert [row["users"] for row in cli.rows(f"{ASKED} --users 1,4")] == [1, 4]


def test_plot__users_on_one_axis(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "users.html"
    assert main([*f"{ASKED} --users 1,4 --plot".split(), str(path)]) == 0
    assert "Users who wait for an answer" in path.read_text(encoding="utf-8")
    capsys.readouterr()


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ("--find rate --so-that p99_ttft_s=1ms", ["keeps the limits at no rate", "above 1 ms"]),
        ("--rate 1 --kv-tokens 5", ["completed no request"]), ("--rate 1 --prompt uniform:1,2M --requests 100", ["requests are rejected"]),
        ("--rate 1,100", ["2 simulations, 1 of them stable, the highest at 1/s"]), ("--rate 1e9", ["times its capacity"]),
        ("--rate 1 --fast 0.5", ["tp=8: p99 TTFT"]), ("--rate 1.2 --output 3k --requests 100", ["a short run"]),
    ],
)  # fmt: skip
def test_sim_text__names_the_outcome(cli: Cli, more: str, says: list[str]) -> None:
    text = cli(*changed(ASKED.split(), *more.split())).text
    assert [words for words in says if words not in text] == []


@pytest.mark.parametrize("more", ["--rate 1 --requests 0", "--users 4 --fast 0.5", "--rate 1,2 --find rate --so-that p99_ttft_s=1s",
                                  "--rate 1 --timeline nowhere/out.json", "--rate 1 --sensitivity 2", "--rate nan", "--rate -1",
                                  "--rate 1 --departures 0", "--users 4 --turns 3,1s --fast 1", "--rate 1 --think 2s", "--rate 1 --ttl 5s",
                                  "--find rate --so-that p99_ttft_s=1s --plot x.png", "--rate 1 --tp 4 --replicas 9 --plot x.png",
                                  "--find rate --so-that p99_ttft_s=1s --timeline x.json"])  # fmt: skip
def test_sim_flags__bad_input_is_a_one_line_error(capsys: pytest.CaptureFixture[str], more: str) -> None:
    assert main(f"{ASKED} {more}".split()) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
