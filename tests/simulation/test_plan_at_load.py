"""A plan at a load in whole nodes: the fewest that hold, by trying each number of nodes alone."""

from __future__ import annotations

from typing import Any

from support.command import Cli

LOAD = "plan llama-3.1-8b --prompt 4k --output 150 --tpot 40ms --ttft-p95 2s"


def planned(cli: Cli, machine: str, rate: float) -> dict[str, Any]:
    return cli.json(f"{LOAD} --on {machine} --rate {rate:g}")


def test_plan__fewest_nodes_that_hold(cli: Cli) -> None:
    """The search knows means, and is cautious: what it gives first is four nodes."""
    free, fewer = planned(cli, "h100-sxm", 150), planned(cli, "16xh100-sxm", 150)
    assert free["rows"][0]["nodes"] == 3 and free["rows"][0]["confidence"] >= 0.8
    assert "; 3 nodes of 8 h100-sxm do for $" in fewer["answer"]
    assert (fewer["rows"][0].get("confidence") or 0.0) < 0.8


def test_plan__machine_that_is_too_unsure_says_the_confidence_it_lacks(cli: Cli) -> None:
    """Simulated as estimated the limit holds, and not with steps as long as they may be."""
    answer = planned(cli, "8xh100-sxm", 60)
    assert answer["answer"].startswith("No layout on 8xh100-sxm keeps every limit at 60 requests/s with 80% confidence; 2 nodes")
    assert answer["rows"][0]["mean_tpot_s"] < 0.04 and 0.5 < answer["rows"][0]["confidence"] < 0.8
