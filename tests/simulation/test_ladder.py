"""Counts and chances around a plan, and what would help it: against drawn worlds, the arithmetic of cards, and the printed commands."""

from __future__ import annotations

import math
import re
from itertools import pairwise
from random import Random
from statistics import NormalDist
from typing import Any

from headway.hardware.system import rented_counts, system
from headway.performance.layout import Layout
from headway.performance.workload import Load
from headway.serving.plan.plan import plan
from headway.simulation.check.check import check
from headway.simulation.check.limits import LatencyLimits
from headway.simulation.check.offered import OfferedTraffic
from headway.simulation.check.plays import candidate, playable
from headway.simulation.traffic.distributions import parse_lengths
from support.command import Cli

BUSY = "plan llama-3.1-8b --on l4 --rate 6 --prompt 1000 --output 100 --tpot 60ms --ttft-p95 2s --disaggregate never"


def check_helps(cli: Cli, answer: dict[str, Any]) -> None:
    """Each figure of a Help is what its command prints first."""
    helps = [change for change in answer["helps"] if "try: " in change["effect"]]
    assert helps and all(change["gain"] > 0 for change in helps)
    for change in helps:
        after, command = re.findall(r"-> (\$?[\d,.]+).*; try: headway (.*)", change["effect"])[0]
        assert after in cli(*command.split()).text.splitlines()[0]


def test_ladder__chances_rise_with_the_count_and_the_plan_is_the_first_that_holds(cli: Cli) -> None:
    ladder = cli.json(BUSY)
    check_helps(cli, ladder)
    rungs = sorted((row for row in ladder["rows"] if row["kind"] in ("best", "ladder")), key=lambda row: row["chips"])
    best = ladder["rows"][0]
    assert len(rungs) >= 3 and all(first["confidence"] <= second["confidence"] for first, second in pairwise(rungs))
    assert all(row["confidence"] < 0.8 for row in rungs if row["chips"] < best["chips"]) and best["confidence"] >= 0.8
    assert all((row["tp"], row["kv"]) == (best["tp"], best["kv"]) and row["chips"] == row["nodes"] * row["node_chips"] for row in rungs)
    note = next(note for note in ladder["notes"] if note.startswith("chance that every limit holds"))
    assert f"{best['chips']:.0f} {best['confidence']:.0%}" in note.replace(" cards", "") or f"{best['chips']:.0f} over 99%" in note
    assert all(row["confidence"] is not None for row in ladder["rows"] if row["kind"] not in ("elasticity",))


def test_chance__is_the_share_of_drawn_worlds_in_which_every_limit_holds() -> None:
    """Worlds: one lognormal factor on every step, whose middle 90 % are the interval of the steps. Each is played by itself."""
    lengths = [parse_lengths(text, flag, answers=flag == "--output") for text, flag in (("1000", "--prompt"), ("100", "--output"))]
    offered = OfferedTraffic(rate=2.0, prompt=lengths[0], output=lengths[1])
    limits = tuple(LatencyLimits(tpot=0.075, ttft_p95=2.0))
    case = candidate("llama-3.1-8b", "2xl4", Layout(tp=1, replicas=2), prompt=1000, output=100)
    sure = check(case, offered, limits, requests=500, how="plain").confidence
    scene, random, count = playable(case, offered, 500, (0,), "plain"), Random(7), 40
    sigma = math.log(case.step_spread("tpot")) / NormalDist().inv_cdf(0.95)
    worlds = [math.exp(random.gauss(0, sigma)) for _ in range(count)]
    holds = sum(max(scene.play(factor).excess(limit) for limit in limits) <= 0 for factor in worlds) / count
    assert sure is not None and 0.2 < sure.probability < 0.98
    assert abs(holds - sure.probability) < 3 * math.sqrt(sure.probability * (1 - sure.probability) / count) + 0.04


def test_cards__as_many_as_are_rented_together() -> None:
    """A10G come by 1, 4 or 8: a replica of two cards takes four, which hold two."""
    assert [int(count) for count in rented_counts(system("a10g").chip)] == [1, 4, 8]
    row = plan("llama-3.1-8b", "a10g", Load(prompt=1000, output=100, rate=1.0), ways={"tp": 2}, disaggregate="never").table.row(0)
    assert row["chips"] % 4 == 0 and row["replicas"] == row["chips"] / 2


def test_helps__of_a_plan_without_a_load(cli: Cli) -> None:
    check_helps(cli, cli.json("plan qwen3-32b --on 2xh100-sxm --prompt 2k --output 300 --tpot 30ms --disaggregate never"))


def test_helps__of_a_plan_that_keeps_its_limits(cli: Cli) -> None:
    """Faster where nothing is cheaper; cheaper where the simulation, not the search, asked for the cards that a change saves."""
    load = "--rate 4 --prompt 2k --output 300 --ttft-p95 3s --tpot-p95 60ms --disaggregate never"
    fixed, free = cli.json(f"plan llama-3.1-8b --on 1xh100-sxm {load}"), cli.json(f"plan llama-3.1-70b --on h100-sxm {load}")
    assert all(answer["rows"][0]["kind"] == "best" and answer["rows"][0]["confidence"] >= 0.8 for answer in (fixed, free))
    assert "TPOT" in fixed["helps"][0]["effect"] and "/month" in free["helps"][0]["effect"]
    for answer in (fixed, free):
        check_helps(cli, answer)
