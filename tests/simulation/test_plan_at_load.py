"""A plan at a load: by the card where clouds rent cards singly, else in whole nodes; the fewest that hold, by trying each number alone."""

from __future__ import annotations

from typing import Any

import pytest

from support.command import Cli, unhelped

LOAD = "plan llama-3.1-8b --prompt 4k --output 150 --tpot 40ms --ttft-p95 2s"


def planned(cli: Cli, machine: str, rate: float) -> dict[str, Any]:
    with unhelped():
        return cli.json(f"{LOAD} --on {machine} --rate {rate:g}")


def test_plan__machine_that_is_too_small_says_how_many_cards_do(cli: Cli) -> None:
    free, fewer = planned(cli, "h100-sxm", 150), planned(cli, "16xh100-sxm", 150)
    cards = int(free["rows"][0]["chips"])
    assert 16 < cards < 24 and free["rows"][0]["confidence"] >= 0.8 and "confidence (80% asked)" in free["answer"]
    assert f"; {cards} h100-sxm do for $" in fewer["answer"] and fewer["answer"].endswith("rented by the card (--on h100-sxm).")
    assert (fewer["rows"][0].get("confidence") or 0.0) < 0.8


def test_plan__part_of_a_node_is_told_as_such(cli: Cli) -> None:
    plan = cli.json("plan llama-3.1-8b --on 9xh100-sxm --rate 20 --prompt 4k --output 150 --tpot 40ms --no-check")
    assert plan["answer"].startswith("9 of 16 h100-sxm carry")


def test_plan__machine_that_is_too_unsure_says_the_confidence_it_lacks(cli: Cli) -> None:
    """Simulated as estimated the limit holds, and not with steps as long as they may be."""
    answer = planned(cli, "8xh100-sxm", 60)
    assert answer["answer"].startswith("No layout on 8xh100-sxm keeps every limit at 60 requests/s with 80% confidence; 9 h100-sxm")
    assert answer["rows"][0]["mean_tpot_s"] < 0.04 and 0.5 < answer["rows"][0]["confidence"] < 0.8


USERS = "llama-3.1-8b --on 8xh100-sxm --engine vllm --kv fp8 --tp 4 --replicas 2 --prompt 1k"


def test_simulated_percentiles__are_not_below_the_mean_of_the_same_sample(cli: Cli) -> None:
    loads = ("--users 64 --output 256", "--users 64 --output uniform:230,282", "--rate 20 --output 256", "--rate 60 --output uniform:1,900")
    with unhelped():
        for load in loads:
            (row,) = cli.json(f"sim {USERS} {load} --requests 4000")["rows"]
            for latency in ("ttft", "tpot", "e2e"):
                assert row[f"p95_{latency}_s"] >= row[f"mean_{latency}_s"] > 0, (load, latency)


def test_plan__percentile_below_the_mean_of_the_laws_names_the_mean_of_its_own_sample(cli: Cli) -> None:
    """Users whose answers have one length march in step, which the laws' mean does not assume: with lengths that scatter the two agree."""
    with unhelped():
        answer = cli.json(f"plan {USERS} --output 256 --users 64 --tpot-p95 50ms")
        (one_length,), (scattered,) = (
            cli.json(f"sim {USERS} --users 64 --requests 8000 --output {output}")["rows"] for output in ("256", "uniform:230,282")
        )
        quiet = cli.json(f"plan {USERS} --output 256 --rate 20 --tpot-p95 50ms")
    row = answer["rows"][0]
    (note,) = [note for note in answer["notes"] if "another measure" in note]
    assert one_length["mean_tpot_s"] <= row["p95_tpot_s"] < row["tpot_s"]
    assert f"whose mean is {one_length['mean_tpot_s'] * 1e3:.3g} ms; TPOT is the laws' mean" in note
    assert row["tpot_s"] / scattered["mean_tpot_s"] == pytest.approx(1, abs=0.05) and row["tpot_s"] > 1.15 * one_length["mean_tpot_s"]
    assert quiet["rows"][0]["p95_tpot_s"] >= quiet["rows"][0]["tpot_s"] and not any("another measure" in note for note in quiet["notes"])
