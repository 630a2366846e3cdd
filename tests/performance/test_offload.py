"""Routed experts in the host's memory: bytes that are conserved, a link that is used for what tokens touch, a floor below both."""

from __future__ import annotations

import random
from typing import Any

import pytest

from headway.core.schema import defaults
from headway.hardware.system import host_link_reached, system
from headway.laws.step.step import step_s
from headway.performance.assumptions import Assumptions
from headway.performance.layout import Layout
from headway.serving.serve import checked_load, deployment
from headway.simulation.step_time import pace_of
from support.cases import FLAT, Point, beyond_laws, layouts
from support.each import for_each

REACHED = float(host_link_reached())
ROUTED = ("mixtral-8x7b-v0.1", "qwen3-30b-a3b", "gpt-oss-120b", "deepseek-v3", "llama-4-scout-17b-16e", "qwen3-next-80b-a3b")
MACHINES = ("8xh100-sxm", "2xrtx4090", "8xa100-sxm-80", "gb200-nvl72")
QWEN = Point("qwen3-30b-a3b", "rtx4090").but(batch=1, context=2000).assuming(offload="experts")
EXPERTS = 48 * 128 * 3 * 2048 * 768 * 2  # bytes: layers, experts, three matrices in bf16
LINK = 31.5e9  # PCIe 4.0 x16


def drawn(seed: int) -> Point:
    dice = random.Random(seed)
    name, machine = dice.choice(ROUTED), dice.choice(MACHINES)
    return Point(name, machine, layouts(name, machine, dice)).but(batch=dice.choice((1, 7, 64, 900)), context=dice.choice((500, 9000)))


POINTS = [drawn(seed) for seed in range(40)]


@for_each(POINTS)
def test_bytes__a_chip_and_its_host_hold_what_the_chip_held(point: Point) -> None:
    row, there = point.row(), point.assuming(offload="experts").row()
    assert row["host_bytes_chip"] is None and row["transfer_s"] is None
    assert there["weights_bytes_chip"] + there["host_bytes_chip"] == pytest.approx(row["weights_bytes_chip"], rel=1e-12)
    assert there["kv_bytes_chip"] == row["kv_bytes_chip"]


@for_each(POINTS)
def test_step__is_never_faster_than_the_link_nor_than_the_chip(point: Point) -> None:
    hosted = point.assuming(offload="experts", **FLAT)
    row, exact = hosted.row(), hosted.assuming(overlap="full").row()
    parts = [row[key] or 0.0 for key in ("compute_s", "weights_s", "kv_s", "network_s", "overhead_s")]
    assert row["step_floor_s"] >= row["transfer_s"] * REACHED * (1 - 1e-12) and row["step_s"] >= row["transfer_s"] + max(parts)
    assert exact["step_s"] >= exact["transfer_s"] and row["step_s"] > exact["step_s"] * (1 - 1e-9)
    link = float(system(str(point.system)).chip.host_link_bw)
    assert row["transfer_s"] * REACHED * link <= row["host_bytes_chip"] * point.layout.pp * (1 + 1e-9)


@pytest.mark.parametrize("batch", [1, 10, 1e6])
def test_transfer__of_the_experts_that_tokens_choose(batch: float) -> None:
    """Independent experts: each of 128 is chosen by a token with 8 / 128; fitted routing is skewed and touches fewer."""
    row = QWEN.but(batch=batch).assuming(overlap="serial").row()
    touched = 1 - (1 - 8 / 128) ** batch
    assert row["host_bytes_chip"] == EXPERTS
    assert row["transfer_s"] == pytest.approx(EXPERTS * touched / LINK / REACHED, rel=1e-9)
    assert QWEN.but(batch=batch).row()["transfer_s"] <= row["transfer_s"] * (1 + 1e-12)
    half = QWEN.but(batch=batch).assuming(overlap="serial", eff_host=REACHED / 2).row()
    assert half["transfer_s"] == pytest.approx(2 * row["transfer_s"], rel=1e-12)


def test_prompt__moves_every_expert_once_in_each_chunk() -> None:
    """What measured runs take beyond the laws is a factor on whole steps, on what they move from the host too."""
    moved_s = EXPERTS / LINK / REACHED * beyond_laws("prompt", "bf16", "rtx4090")
    for tokens, chunks in ((4000, 1), (8000, 1), (16_000, 2), (24_000, 3)):  # a step takes 8,192 tokens
        asked = Point("qwen3-30b-a3b", "rtx4090", load=(("batch", 1), ("prompt", tokens), ("output", 10)))
        chip, host = (asked.assuming(offload=place).row()["ttft_unloaded_s"] for place in ("none", "experts"))
        assert (host - chip) / moved_s == pytest.approx(chunks, rel=0.05)


def test_simulator__takes_the_same_step_and_the_same_tpot(cli: Any) -> None:
    taken = defaults(Assumptions, {"offload": "experts"})
    case = deployment("qwen3-30b-a3b", "rtx4090", Layout(), checked_load(batch=1, context=2000), assumptions=taken)
    step = case.at(case.layout, case.load).compiled().step
    pace = pace_of(step, 8, 4096.0)
    for at in ((1.0, 900.0, 0.0, 0.0, 1.0), (7.0, 9000.0, 0.0, 0.0, 1.0), (3.0, 900.0, 200.0, 20_000.0, 1.0)):
        assert pace.step(*at) == pytest.approx(float(step_s(step, *at[:4])), rel=1e-12)
    asked = ("qwen3-30b-a3b", "--on", "rtx4090", "--prompt", "500", "--output", "100", "--offload", "experts")
    (served,), (played,) = cli.rows("serve", *asked, "--batch", "1"), cli.rows("sim", *asked, "--users", "1", "--requests", "10")
    assert served["bound"] == "transfer" and played["mean_tpot_s"] == pytest.approx(served["tpot_s"], rel=0.01)


@pytest.mark.parametrize(
    ("subject", "wants"),
    [
        (("llama-3.1-8b", "--on", "h100-sxm"), "--offload: got 'experts'; wants a model with routed experts, which llama-3.1-8b has not"),
        (("qwen3-30b-a3b", "--on", "dgx-spark-gb10"), "wants a chip with memory of its own: that of dgx_spark_gb10 is its host's"),
        (("qwen3-30b-a3b", "--on", "apple-m4-max"), "wants a chip with memory of its own"),
        (("deepseek-v3", "--on", "8xtpu-v7", "--tp", "8"), "host_link_bw is not known (no public figure in the catalogue); give it with "
         "--set chip.host_link_bw=64GB/s"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("verb", ["serve", "plan", "sim", "capacity"])
def test_offload__refused_in_one_line_where_nothing_moves(cli: Any, verb: str, subject: tuple[str, ...], wants: str) -> None:
    words = [word for word in subject if verb != "capacity" or word not in ("--tp", "8")]
    load = {"sim": ("--users", "2"), "plan": ("--tpot", "1s", "--ttft", "60s")}.get(verb, ())
    answer = cli(verb, *words, *load, "--offload", "experts")
    assert answer.status == 2 and answer.err.count("\n") == 1 and wants in answer.err


def test_host__memory_that_is_known_must_hold_the_experts(cli: Any) -> None:
    """DeepSeek-V3: 58 layers of 256 experts of three matrices, 7168 by 2048, in 8 bits; a Grace has 240 GB for each of two chips."""
    asked = ("serve", "deepseek-v3", "--on", "gb200-nvl72", "--context", "4k", "--offload", "experts")
    one, four = (cli.rows(*asked, "--tp", tp)[0] for tp in ("1", "4"))
    assert one["host_bytes_chip"] == 58 * 256 * 3 * 7168 * 2048 == 4 * four["host_bytes_chip"]
    assert four["fits"] and not one["fits"] and one["why"] == "the experts of a chip need 653.9 GB of its host's memory, 240 GB are there"
    assert cli.rows(*asked, "--tp", "1", "--set", "chip.host_dram=700GB")[0]["fits"]
    capacity = cli.rows("capacity", "deepseek-v3", "--on", "2xgb200", "--offload", "experts")[0]
    assert capacity["host_bytes"] == one["host_bytes_chip"] and not capacity["fits"]


def test_plan__writes_the_flags_of_vllm_and_says_why_others_have_none(cli: Any) -> None:
    asked = ("plan", "qwen3-30b-a3b", "--on", "2xrtx4090", "--tp", "2", "--offload", "experts", "--tpot", "1s", "--ttft", "60s")
    (line,) = cli.json(*asked, "--launch", "vllm")["launch"]
    assert "--offload-backend uva --cpu-offload-gb 27 --cpu-offload-params experts" in line  # 29.0 GB of each card, in GiB
    for engine in ("sglang", "trtllm"):
        answer = cli.json(*asked, "--launch", engine)
        assert not answer["launch"] and any("keeps no routed experts alone in the host's memory" in note for note in answer["notes"])


def test_helps__offer_the_chip_back(cli: Any) -> None:
    answer = cli.json("serve", "qwen3-30b-a3b", "--on", "h100-sxm", "--context", "4k", "--offload", "experts")
    assert answer["helps"][0]["change"] == "--offload none" and answer["binds"].startswith("transfer; a step is transfer ")


@pytest.mark.parametrize("axis", ["batch", "context"])
def test_picture__draws_the_transfer_where_there_is_one(cli: Any, tmp_path: Any, axis: str) -> None:
    for place, flags in (("experts", ("--offload", "experts")), ("none", ())):
        path = tmp_path / f"{place}.html"
        values = ("--batch", "1,2,4", "--context", "2k") if axis == "batch" else ("--batch", "1", "--context", "1k,2k,4k")
        assert cli("serve", "qwen3-30b-a3b", "--on", "h100-sxm", *values, *flags, "--plot", str(path)).status == 0
        assert ("moved experts" in path.read_text(encoding="utf-8")) == (place == "experts")
