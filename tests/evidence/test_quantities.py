"""What each kind of row measures: against the step law worked by hand, and in the limits where two kinds are one."""

from __future__ import annotations

import functools
import math
import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from headway.evidence.rows.tasks import Setup, Task
from headway.evidence.serving.machines import KINDS, MeasuredLoad, Quantities, engines_of, machines, quantities, rows
from headway.evidence.serving.predict import load_of, placed
from headway.laws.serving.request import prompt_ranks
from headway.laws.step.step import step_floor_s, step_s
from headway.performance.achieved import Efficiencies, efficiencies
from headway.performance.request import Server
from support.synthetic import Rig, csv_text, tasks_of, true_table

RIGS = {
    "one chip": Rig("llama-3.1-8b", "H100-SXM-80GB", 1, "vllm", 1),
    "eight chips": Rig("llama-3.1-70b", "H100-SXM-80GB", 8, "vllm", 8, "fp8"),
    "stages": Rig("llama-3.1-70b", "H100-SXM-80GB", 8, "vllm", 2, more=(("pp", "4"),)),
    "copies": Rig("llama-3.1-8b", "A100-SXM-80GB", 4, "trt-llm", 1),
    "experts": Rig("qwen3-30b-a3b", "H200-SXM", 2, "sglang", 2),
    "attention dp": Rig("deepseek-v3", "B200", 8, "trt-llm", 1, "fp8", (("dp", "8"), ("ep", "8"))),
    "latent": Rig("deepseek-v3", "H200-SXM", 8, "sglang", 8, "fp8"),
    "windows": Rig("gpt-oss-120b", "MI300X", 1, "vllm", 1, "mxfp4"),
    "card": Rig("llama-3.1-8b", "rtx4090", 1, "llama.cpp", 1, "q4_k_m"),
}
DENSE = ("one chip", "eight chips", "stages", "card")  # no experts, one copy: a step is linear in the context
MODE = {"serving": "serving_concurrency", "offline": "offline_throughput", "disagg": "disagg"}
LOAD = {"prompt": 1000.0, "output": 200.0, "context": 1100.0, "batch": 16.0, "users": 16.0, "spread": 0.0}


@functools.cache
def setup(rig: Rig, mode: str = "serving_concurrency") -> Setup:
    pooled = replace(rig, chips=2 * rig.chips) if mode == "disagg" else rig  # as many chips for prefill
    return tasks_of(csv_text([pooled.line("a", mode, 1000, 200, 16, "one")]))[0].setup


def load(**changes: Any) -> MeasuredLoad:
    asked = {key: np.atleast_1d(np.asarray(value, dtype=float)) for key, value in (LOAD | changes).items()}
    long = max(len(value) for value in asked.values())
    return MeasuredLoad(**{key: np.broadcast_to(value, long).copy() for key, value in asked.items()})


def of(rig: Rig | str, kind: str, table: Efficiencies | None = None, floor: bool = False, **changes: Any) -> Quantities:
    """Quantities of one rig under loads."""
    one = RIGS[rig] if isinstance(rig, str) else rig
    asked = load(**changes)
    found = rows(machines([setup(one, MODE.get(kind, "serving_concurrency"))], table), np.zeros(len(asked.prompt), dtype=int))
    return quantities(kind, found, asked, floor)


def machine(rig: str) -> Server:
    return machines([setup(RIGS[rig])])


def step(rig: str, *at: float, ranks: float = 1.0, prompts: float = 1.0, streamed: bool = False) -> float:
    """One step of a rig: decoding, their KV tokens, prompt tokens, prompt pairs."""
    found = machine(rig).online() if streamed else machine(rig)
    return float(step_s(replace(found.step, prefill_ranks=np.array([ranks]), rank_prompts=prompts / ranks), *at)[0])


def scheduling(rig: str, key: str) -> float:
    return float(getattr(engines_of([setup(RIGS[rig])], efficiencies()).scheduling, key)[0])


# -- kinds by hand ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rig", RIGS)
def test_tpot__decode_row_is_one_step(rig: str) -> None:
    found, one = of(rig, "decode"), machine(rig)
    assert float(found.tpot[0]) == pytest.approx(step(rig, 16, 16 * 1100, 0, 0), rel=1e-12)
    assert float(found.rate[0]) == pytest.approx(16 / found.tpot[0] * setup(RIGS[rig]).replicas, rel=1e-12)
    assert float(found.per_chip[0]) == pytest.approx(found.rate[0] / RIGS[rig].chips, rel=1e-12)
    assert float(one.chips[0]) == RIGS[rig].chips and np.isnan(found.ttft[0])
    least = float(of(rig, "decode", floor=True).tpot[0])
    assert least == pytest.approx(float(step_floor_s(one.step, 16, 16 * 1100, 0, 0)[0]), rel=1e-12)


def test_ttft__prefill_in_stages_and_chunks_is_pipelined() -> None:
    """20,000 tokens at 8,192 a step are three chunks; stages take turns of a quarter, and three of them wait for the longest chunk."""
    budget, overlap = scheduling("stages", "step_budget_tokens"), scheduling("stages", "pipeline_overlap_share")
    assert budget == 8192
    chunk = step("stages", 0, 0, 20_000 / 3, 20_000**2 / 2 / 3)
    longest = step("stages", 0, 0, 8192, 20_000**2 / 2 * 8192 / 20_000)
    wanted = overlap * (3 * chunk + (4 - 1) * longest) / 4 + (1 - overlap) * 3 * chunk
    found = of("stages", "prefill", prompt=20_000, batch=1)
    assert float(found.ttft[0]) == pytest.approx(wanted, rel=1e-12)
    assert float(found.rate[0]) == pytest.approx(20_000 / wanted, rel=1e-12)
    assert float(found.per_chip[0]) == pytest.approx(20_000 / wanted / 8, rel=1e-12)
    assert wanted < 3 * chunk


def test_ttft__short_prefill_is_one_step() -> None:
    for rig in DENSE:
        found = of(rig, "prefill", prompt=400, batch=1)
        assert float(found.ttft[0]) == pytest.approx(step(rig, 0, 0, 400, 400**2 / 2), rel=1e-12), rig


@pytest.mark.parametrize("count", [8, 16])
def test_ttft__batch_of_prompts_is_dealt_to_the_ranks(count: int) -> None:
    """Prompts of 500 tokens without other requests, on eight ranks that are dealt them evenly: one or two each."""
    wanted = step("attention dp", 0, 0, 500 * count, count * 500**2 / 2, ranks=8, prompts=count)
    found = of("attention dp", "prefill", prompt=500, batch=count)
    assert float(found.ttft[0]) == pytest.approx(wanted, rel=1e-9)
    assert float(found.rate[0]) == pytest.approx(count * 500 / wanted, rel=1e-9)


@pytest.mark.parametrize("kind", ["static", "decode_e2e"])
@pytest.mark.parametrize("rig", RIGS)
def test_static_batch__prefill_plus_decode_steps(rig: str, kind: str) -> None:
    """Its time is that of the prompts and of 199 steps at a context between the first and the last; Simpson's rule of three."""
    first, middle, last = (step(rig, 16, 16 * context, 0, 0) for context in (1000, 1100, 1200))
    prefill = float(of(rig, "prefill").ttft[0])
    found = of(rig, kind)
    assert float(found.ttft[0]) == pytest.approx(prefill, rel=1e-12)
    assert float(found.tpot[0]) == pytest.approx((first + 4 * middle + last) / 6, rel=1e-12)
    run = prefill + 199 * float(found.tpot[0])
    assert float(found.rate[0]) == pytest.approx(16 * 200 * setup(RIGS[rig]).replicas / run, rel=1e-12)


def test_unloaded__prefill_overhead_and_streamed_steps() -> None:
    for rig in DENSE[:3]:
        found = of(rig, "serving_unloaded", prompt=400)
        assert float(found.ttft[0]) == pytest.approx(
            step(rig, 0, 0, 400, 400**2 / 2, streamed=True) + scheduling(rig, "request_overhead_s"), rel=1e-12
        )
        middle = step(rig, 1, 500, 0, 0, streamed=True)
        assert float(found.tpot[0]) == pytest.approx(middle, rel=1e-6)
        assert middle - step(rig, 1, 500, 0, 0) == pytest.approx(scheduling(rig, "streaming_overhead_s"), rel=1e-6)


# -- limits -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("prompt", "output"), [(1000, 200), (20_000, 200), (100_000, 100)])
@pytest.mark.parametrize("rig", DENSE)
def test_serving__one_user_equals_unloaded(rig: str, prompt: int, output: int) -> None:
    served, free = (of(rig, kind, users=1, prompt=prompt, output=output) for kind in ("serving", "serving_unloaded"))
    assert float(served.tpot[0]) == pytest.approx(float(free.tpot[0]), rel=1e-3)
    assert float(served.ttft[0]) == pytest.approx(float(free.ttft[0]), rel=1e-3)


@pytest.mark.parametrize("prompt", [200, 1000, 20_000])
@pytest.mark.parametrize("kind", ["serving", "disagg"])
@pytest.mark.parametrize("rig", RIGS)
def test_serving__rate_per_user_never_rises(rig: str, kind: str, prompt: int) -> None:
    one = RIGS[rig]
    if kind == "disagg" and one.chips == 1:
        one = replace(one, chips=2)
    users = np.unique(np.geomspace(1, 4000, 40).round())
    found = of(one, kind, users=users, prompt=prompt)
    each = found.rate / users
    assert (np.diff(each) <= 1e-6 * each[1:]).all()


@pytest.mark.parametrize("rig", RIGS)
def test_serving__total_rate_hardly_falls_with_users(rig: str) -> None:
    """They wait for a seat instead; prompts that interrupt decode may cost a little."""
    users = np.unique(np.geomspace(1, 10_000, 40).round())
    rate = of(rig, "serving", users=users).rate
    assert (rate >= 0.9 * np.maximum.accumulate(rate)).all()


@pytest.mark.parametrize("rig", RIGS)
def test_offline_throughput__below_decode_alone(rig: str) -> None:
    one = machine(rig)
    seats = float(one.seats(np.array([1000.0]), np.array([200.0]))[0])
    found, decode = float(of(rig, "offline", users=np.nan).rate[0]), of(rig, "decode", batch=seats)
    assert found < float(decode.rate[0])
    apart = seats * float(of(rig, "prefill", prompt=1000, batch=1).ttft[0]) + 200 * float(decode.tpot[0])
    assert found > float(one.replicas[0]) * seats * 200 / apart  # prompts one after the other, then their decodes
    few = of(rig, "offline", users=8 * float(one.replicas[0]))
    assert float(few.rate[0]) < float(of(rig, "decode", batch=8).rate[0])
    assert float(few.rate[0]) <= found * (1 + 1e-9)


def drawn(seed: int) -> dict[str, float]:
    rng = random.Random(seed)
    prompt, output = round(10 ** rng.uniform(1.5, 4.5)), round(10 ** rng.uniform(0.5, 3.5))
    return {"prompt": prompt, "output": max(output, 2), "batch": rng.randint(1, 300), "users": rng.randint(1, 3000), "context": prompt}


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "disagg"])
@pytest.mark.parametrize("rig", RIGS)
def test_floor__never_above_expected_times(rig: str, kind: str) -> None:
    points = [drawn(seed) for seed in range(40)]
    asked = {key: np.array([point[key] for point in points], dtype=float) for key in points[0]}
    expected, least = of(rig, kind, **asked), of(rig, kind, floor=True, **asked)
    for name in ("ttft", "tpot"):
        both = np.isfinite(getattr(expected, name))
        assert (getattr(expected, name) >= getattr(least, name))[both].all(), name
    for name in ("rate", "per_chip"):
        both = np.isfinite(getattr(expected, name))
        assert (getattr(expected, name) <= getattr(least, name))[both].all(), name


@pytest.mark.parametrize("rig", [name for name, rig in RIGS.items() if rig.chips > 1])
def test_floor__never_below_disaggregated_rates(rig: str) -> None:
    expected, least = (of(rig, "disagg", users=np.array([1.0, 30.0, 1000.0]), floor=floor) for floor in (False, True))
    assert (expected.rate <= least.rate).all()


def test_disagg__one_user_decodes_undisturbed() -> None:
    rig = Rig("llama-3.1-70b", "H100-SXM-80GB", 16, "vllm", 8, "fp8")
    found = of(rig, "disagg", users=1)
    c = machines([setup(rig, "disagg")]).online().step
    assert float(found.tpot[0]) == pytest.approx(float(step_s(c, 1, 1100, 0, 0)[0]), rel=1e-9)
    long = of(rig, "disagg", users=1, prompt=100_000, output=50)
    assert float(long.tpot[0]) == pytest.approx(float(step_s(c, 1, 100_025, 0, 0)[0]), rel=1e-9)
    assert float(found.ttft[0]) > float(of(rig, "prefill", batch=1).ttft[0])
    assert float(of(rig, "disagg", users=64).tpot[0]) > float(found.tpot[0])


# -- engines ----------------------------------------------------------------------------------------------------------------------


def test_engine_version__eager_launches_are_slower() -> None:
    old, new = (replace(RIGS["one chip"], more=(("engine_version", version),)) for version in ("0.2.1", "0.6.3"))
    assert "eager" in setup(old).older and "eager" not in setup(new).older
    by_choice = replace(RIGS["one chip"], more=(("engine_version", "0.6.3"), ("eager", 1)))
    each, more = (float(efficiencies().find("prompt_launch_s", f"engine.{name}")) for name in ("other", "early"))
    kernels = float(machines([setup(old)]).step.launches[0])
    graphs, today, early = (float(of(rig, "decode").tpot[0]) for rig in (new, by_choice, old))
    assert today == pytest.approx((graphs**2 + (kernels * each) ** 2) ** 0.5, rel=1e-9)
    assert early == pytest.approx((graphs**2 + (kernels * (each + more)) ** 2) ** 0.5, rel=1e-9) and early > today > graphs
    assert (of(old, "serving").rate < of(new, "serving").rate).all()


def test_engine_version__synchronous_steps_add_host_time() -> None:
    old, dated, new = (
        replace(RIGS["one chip"], more=more)
        for more in ((("engine_version", "0.12.0"),), (("source_date", "2025-10-29"),), (("engine_version", "0.19.0"),))
    )
    waited = float(efficiencies().find("step_overhead_s", "engine.waiting"))
    assert setup(old).older == setup(dated).older == ("waiting",) and not setup(new).older and waited > 0
    assert float((of(old, "decode").tpot - of(new, "decode").tpot)[0]) == pytest.approx(waited, rel=1e-9)
    assert (of(dated, "decode").tpot > of(old, "decode").tpot).all()  # its age is known too


def test_engine_age__fixed_costs_grow_back_in_time() -> None:
    """Launches and the engine's own work, by the same factor each year; what kernels take is as it was."""
    rigs = [replace(RIGS["one chip"], more=(("engine_version", "0.19.0"), ("date", date))) for date in ("2026-04", "2025-04", "2024-04")]
    new, old, older = (float(of(rig, "decode").tpot[0]) for rig in rigs)
    growth = float(efficiencies().find("yearly_growth", "engine.other"))
    assert (older - old) / (old - new) == pytest.approx(math.exp(growth), rel=1e-9)
    assert setup(rigs[1]).years == 1


@pytest.mark.parametrize(("weights", "slower"), [("bf16", False), ("fp8", False), ("awq_int4", True)])
def test_weight_only_factor__only_formats_without_native_matmul(weights: str, slower: bool) -> None:
    one = Rig("llama-3.1-8b", "H100-SXM-80GB", 1, "vllm", 1, weights)
    half, whole = (of(one, "decode", true_table({"engine.other.weight_only_factor": share})).tpot for share in (0.5, 1.0))
    assert (half > 1.3 * whole).all() if slower else (half == whole).all()


def test_memory_factor__of_a_platform_holds_for_every_engine() -> None:
    for engine in ("vllm", "sglang", "trt-llm", "llama.cpp"):
        card, other = (Rig("llama-3.1-8b", chip, 1, engine, 1) for chip in ("rtx4090", "A100-SXM-80GB"))
        for rig, faster in ((card, True), (other, False)):
            fast, plain = (of(rig, "decode", true_table({"platform.card.memory_factor": share})).tpot for share in (1.1, 1.0))
            assert (fast < plain).all() if faster else (fast == plain).all()


@pytest.mark.parametrize(("tp", "joined"), [(1, 0.0), (2, 2.0)])
def test_split_overhead__llama_cpp_only_within_layers(tp: int, joined: float) -> None:
    one = Rig("llama-3.1-8b", "rtx4090", tp, "llama.cpp", tp, "q4_k_m")
    cheap, dear = (of(one, "decode", true_table({"engine.llamacpp.split_overhead_s": cost})).tpot for cost in (10e-6, 60e-6))
    assert float((dear - cheap)[0]) == pytest.approx(32 * joined * 50e-6, abs=1e-12)


def test_split_overhead__none_for_pipeline_stages() -> None:
    stages = Rig("llama-3.1-8b", "rtx4090", 2, "llama.cpp", 1, "q4_k_m", (("pp", "2"),))
    cheap, dear = (of(stages, "decode", true_table({"engine.llamacpp.split_overhead_s": cost})).tpot for cost in (10e-6, 60e-6))
    assert float(cheap[0]) == float(dear[0])


def test_engine_numbers__unknown_engine_takes_the_general_ones() -> None:
    other, trt = (engines_of([setup(replace(RIGS["one chip"], engine=name))], efficiencies()) for name in ("unheard of", "trt-llm"))
    assert float(other.scheduling.reserved_output_share[0]) == float(efficiencies().find("reserved_output_share", "engine.other"))
    assert float(trt.scheduling.reserved_output_share[0]) == float(efficiencies().find("reserved_output_share", "engine.trtllm"))


# -- ranks and seats --------------------------------------------------------------------------------------------------------------


MANY = 1e12  # requests in service: no share of them bounds the prompts of a rank


@pytest.mark.parametrize("dp", [2, 8, 72])
def test_prompt_ranks__no_rank_has_more_prompts_than_its_share_of_the_requests(dp: int) -> None:
    """As many requests as ranks: one each, whatever share of them is prefilled; twice as many: two at most."""
    for prompts in range(1, dp + 1):
        assert float(prompt_ranks(prompts, dp, dp)) == pytest.approx(prompts)
        assert float(prompts / prompt_ranks(prompts, dp, 2 * dp)) <= 2 + 1e-12


def test_prompt_ranks__limits() -> None:
    assert float(prompt_ranks(1, 8, MANY)) == pytest.approx(1.0)
    assert float(prompt_ranks(0.0, 8, MANY)) == pytest.approx(1.0)
    assert (prompt_ranks(np.geomspace(1, 1e6, 30), 1, MANY) == 1).all()
    assert float(prompt_ranks(1e9, 8, MANY)) == pytest.approx(8, rel=1e-3)
    for dp in (2.0, 8.0, 72.0):
        ranks = prompt_ranks(np.geomspace(1, 1e6, 200), dp, MANY)
        assert (np.diff(ranks) >= -1e-12).all()
        assert (ranks <= dp).all() and (ranks >= 1).all()
    assert (prompt_ranks(1, np.arange(1.0, 100.0), MANY) == 1).all()  # a prompt is on one rank, however many there are


@pytest.mark.parametrize(("prompts", "dp"), [(8, 8), (80, 8), (32, 16), (500, 72), (3000, 8)])
def test_prompt_ranks__near_random_draws(prompts: int, dp: int) -> None:
    rng = np.random.default_rng(5)
    fullest = np.mean([np.bincount(rng.integers(0, dp, prompts)).max() for _ in range(2000)])
    assert float(prompts / prompt_ranks(prompts, dp, MANY)) == pytest.approx(fullest, rel=0.25)


@pytest.mark.parametrize("rig", RIGS)
def test_seats__within_memory(rig: str) -> None:
    one, s = machine(rig), machine(rig).scheduling
    prompt, output = np.geomspace(10, 100_000, 20), np.full(20, 500.0)
    seats = rows(one, np.zeros(20, dtype=int)).seats(prompt, output)
    each = float(one.step.dp[0])
    held = one.cache_bytes(prompt + s.reserved_output_share * output) * (seats / each)
    room = float(one.room.usable[0]) - float(one.room.weights[0])
    assert ((held <= room * (1 + 1e-9)) | (seats == 1)).all()
    assert (seats <= float(s.max_sequences[0]) * each).all() and (seats >= 1).all()
    assert (np.diff(seats) <= 0).all()


def test_replicas__idle_copies_add_nothing() -> None:
    copies, single = RIGS["copies"], replace(RIGS["copies"], chips=1)
    for kind in ("decode", "decode_e2e", "prefill", "serving", "offline", "static"):
        found, alone = of(copies, kind, users=2, batch=1), of(single, kind, users=1, batch=1)
        assert found.rate[0] == pytest.approx(2 * alone.rate[0], rel=1e-9), kind
        assert found.per_chip[0] == pytest.approx(alone.per_chip[0] / 2, rel=1e-9), kind


def test_seats__by_hand() -> None:
    """Llama-3.1-8B in bf16: 16.06 GB of weights, 131,072 bytes of cache a token; half of the answer is set aside when it starts."""
    found = float(machine("one chip").seats(np.array([20_000.0]), np.array([2000.0]))[0])
    logits, hidden = 1024 * 128_256 * 14, 8192 * 4096 * 2  # a step of 8,192 tokens draws for 1,024 sequences
    room = 0.9 * 79.1 * 2**30 - logits - hidden - 0.3e6 * 32 * 51 * 2 - 8.03e9 * 2
    assert scheduling("one chip", "reserved_output_share") == 0.5
    assert found == pytest.approx(room / (131_072 * 21_000), rel=0.01)


def test_serving__users_beyond_seats_wait() -> None:
    """Twice the users of a full machine finish no more, and wait as long again as a request lasts."""
    prompt, output = 60_000.0, 1000.0
    seats = float(machine("one chip").seats(np.array([prompt]), np.array([output]))[0])
    full, twice = (of("one chip", "serving", users=users, prompt=prompt, output=output) for users in (seats, 2 * seats))
    assert float(twice.rate[0]) == pytest.approx(float(full.rate[0]), rel=1e-6)
    assert float(twice.tpot[0]) == pytest.approx(float(full.tpot[0]), rel=1e-6)
    lasts = float(full.ttft[0]) + (output - 1) * float(full.tpot[0])
    assert float(twice.ttft[0] - full.ttft[0]) == pytest.approx(lasts, rel=1e-3)


# -- rows -------------------------------------------------------------------------------------------------------------------------


def test_load_of__values_of_the_row() -> None:
    some: list[Task] = tasks_of(csv_text([RIGS["copies"].line("a", "decode_step", 1000, 200, 64, "one")]))
    asked, place = load_of(some), placed(some)
    assert (asked.batch[0], asked.users[0], asked.prompt[0], asked.output[0]) == (16, 64, 1000, 200)
    assert place[1] == [some[0].setup] and list(place[0]) == [0]
