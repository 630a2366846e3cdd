"""A plan at a load: by the card where clouds rent cards singly, else in whole nodes; the fewest that hold, by trying each number alone."""

from __future__ import annotations

from typing import Any

from support.command import Cli, unhelped

LOAD = "plan llama-3.1-8b --prompt 4k --output 150 --tpot 40ms --ttft-p95 2s"


def planned(cli: Cli, machine: str, rate: float) -> dict[str, Any]:
    with unhelped():
        return cli.json(f"{LOAD} --on {machine} --rate {rate:g}")


def test_plan__machine_that_is_too_small_says_how_many_cards_do(cli: Cli) -> None:
    free, fewer = planned(cli, "h100-sxm", 150), planned(cli, "16xh100-sxm", 150)
    cards = int(free["rows"][0]["chips"])
    assert 16 < cards < 24 and free["rows"][0]["confidence"] >= 0.8
    assert f"; {cards} h100-sxm do for $" in fewer["answer"]
    assert (fewer["rows"][0].get("confidence") or 0.0) < 0.8


def test_plan__machine_that_is_too_unsure_says_the_confidence_it_lacks(cli: Cli) -> None:
    """Simulated as estimated the limit holds, and not with steps as long as they may be."""
    answer = planned(cli, "8xh100-sxm", 60)
    assert answer["answer"].startswith("No layout on 8xh100-sxm keeps every limit at 60 requests/s with 80% confidence; 9 h100-sxm")
    assert answer["rows"][0]["mean_tpot_s"] < 0.04 and 0.5 < answer["rows"][0]["confidence"] < 0.8
