"""The limits of a step, and numbers worked out by hand: what must hold whatever the model, the machine and the layout."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

from headway.hardware.chip import chip, reported_memory
from headway.hardware.edit import edit
from headway.hardware.system import system
from headway.performance.assumptions import LATENCIES
from headway.performance.compile import compile_layout
from headway.performance.layout import Layout
from headway.serving.serve import checked_load, deployment
from support.cases import FLAT, IDEAL, PARTS, STEP_MODELS, Point, drawn

POINTS = [drawn(seed) for seed in range(80)]
REQUESTS = [drawn(seed, requests=True) for seed in range(1000, 1040)]
LLAMA = Point("llama-3.1-70b", "8xh100-sxm", Layout(tp=8))


def name(point: Any) -> str:
    return point.id if isinstance(point, Point) else str(point)


def same(value: float, tolerance: float = 1e-12) -> Any:
    return pytest.approx(value, rel=tolerance)


def stems(row: dict[str, Any]) -> list[str]:
    return [stem for stem in ("step", "ttft", "tpot") if row[f"{stem}_s"] is not None]


# -- overlap --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("point", POINTS, ids=name)
def test_step_floor_s__equals_ideal_fully_overlapped_step(point: Point) -> None:
    """The floor of TTFT is that of a request alone, the floor of TPOT that of the load, which all of it has a seat for where it fits."""
    row = point.assuming(**IDEAL).row()
    assert row["step_s"] == row["step_floor_s"] == row["step_lo_s"]
    expands = any(span.expand for span in coefficients(point).spans)  # latents again for each chunk, which a floor need not
    assert row["ttft_unloaded_s"] >= row["ttft_floor_s"] if expands else row["ttft_unloaded_s"] == row["ttft_floor_s"]
    if expands:
        return
    if row["tpot_s"] is not None and row["fits"]:
        assert row["tpot_s"] == row["tpot_floor_s"] == row["tpot_lo_s"]
    if dict(point.load)["batch"] == 1 or row["prompt"] is None:
        assert row["ttft_s"] == row["ttft_floor_s"] == row["ttft_lo_s"]


def coefficients(point: Point) -> Any:
    from headway.core.schema import defaults
    from headway.models.precision import Precision
    from headway.performance.assumptions import Assumptions

    load: dict[str, Any] = {"context": None, "prompt": None, "output": None} | dict(point.load)
    taken, formats = defaults(Assumptions, dict(point.assumed)), Precision(**dict(point.formats))
    asked = deployment(point.model, point.system, point.layout, checked_load(**load), formats, taken)
    return compile_layout(asked.work, asked.system, asked.layout, asked.assumptions, asked.formats).step


@pytest.mark.parametrize("point", [point for point in POINTS if "context" in dict(point.load)], ids=name)
def test_overlap_operators__sum_of_each_operators_maximum(point: Point) -> None:
    """Worked out here from the coefficients, without the project's own sums."""
    load, c = dict(point.load), coefficients(point)
    ranks = point.layout.dp * point.layout.pp
    sequences = load["batch"] if ranks == 1 else math.ceil(load["batch"] / ranks)
    group, context = sequences * point.layout.dp, load["context"]
    attended = [min(context, s.cap, math.sqrt(context) * math.sqrt(min(s.root, 1e200))) for s in c.spans]
    touched = [1 - (1 - e.active / e.experts) ** group for e in c.experts]
    dense = max((c.dense_compute + c.head_compute) * sequences, c.dense_weights)
    expert = max(sum(e.compute * group for e in c.experts), sum(e.weights * share for e, share in zip(c.experts, touched, strict=True)))
    score = sequences * sum(s.decode_compute * seen for s, seen in zip(c.spans, attended, strict=True)) / c.attention_gain
    cache = sequences * (c.state + c.kv_write + sum(s.read * seen for s, seen in zip(c.spans, attended, strict=True)))
    row = point.assuming(**{**IDEAL, "overlap": "operators"}).row()
    network = sum(term.count * term.floor for term in c.collectives) * sequences
    assert row["step_s"] == same(dense + expert + max(score, cache) + network)


@pytest.mark.parametrize("point", POINTS, ids=name)
def test_overlap_serial__sum_of_the_parts(point: Point) -> None:
    row = point.assuming(overlap="serial").row()
    assert row["step_s"] == same(sum(row[part] for part in PARTS))


@pytest.mark.parametrize("point", POINTS, ids=name)
def test_overlap__less_is_never_faster(point: Point) -> None:
    """Of a load, the whole request: a faster prefill leaves more users to decode at once, so TTFT and TPOT may trade places."""
    full, operators, serial = (point.assuming(overlap=name).row() for name in ("full", "operators", "serial"))
    for key in ("step_s", "ttft_unloaded_s", *(["e2e_s"] if full["prompt"] is not None else [])):
        assert full[key] <= operators[key] * (1 + 1e-12) and operators[key] <= serial[key] * (1 + 1e-12), key


@pytest.mark.parametrize("point", POINTS, ids=name)
@pytest.mark.parametrize("spread", [None, 1, 1.6, 100])
def test_interval__floor_low_expected_high_in_order(point: Point, spread: float) -> None:
    row = point.assuming(spread=spread).row()
    for stem in stems(row):
        floor, low, expected, high = (row[f"{stem}{end}_s"] for end in ("_floor", "_lo", "", "_hi"))
        assert 0 < floor <= low <= expected <= high
    for key in ("tok_per_s", "decode_tok_per_s", "tok_per_s_chip", "usd_per_mtok_in", "usd_per_mtok_cached", "usd_per_mtok_out"):
        if row[key] is not None:
            assert 0 < row[f"{key}_lo"] <= row[key] <= row[f"{key}_hi"], key


# -- limits ---------------------------------------------------------------------------------------------------------------------

LLAMA_LAYER = 8192 * 128 * (64 + 64 + 8 + 8) + 3 * 8192 * 28672  # q, o, k, v; gate, up, down
LLAMA_TABLE = 128256 * 8192
LLAMA_MATRICES = 80 * LLAMA_LAYER + LLAMA_TABLE  # the head multiplies, the embedding look-up does not
H100_PEAK, H100_BW, H100_LINK = 989.4e12, 3.35e12, 450e9
H100_CARD = 79.1 * 2**30  # as its driver reports it


def test_step_floor_s__large_batch_is_compute_bound() -> None:
    row = LLAMA.assuming(**IDEAL).but(batch=10**9, context=1).row()
    attention = 80 * 4 * 64 * 128  # multiply and add, score and value, each head, one token looked at
    assert row["step_floor_s"] == same(10**9 * (2 * LLAMA_MATRICES + attention) / 8 / H100_PEAK, 1e-9)
    assert row["compute_s"] == max(row[part] for part in PARTS)


def test_step_floor_s__large_moe_batch_is_bound_by_active_params() -> None:
    attention, expert, router = 4096 * 128 * (32 + 32 + 8 + 8), 3 * 4096 * 14336, 4096 * 8
    active = 32 * (attention + router + 2 * expert) + 32000 * 4096
    row = Point("mixtral-8x7b-v0.1", "h200").assuming(**IDEAL).but(batch=10**9, context=1).row()
    assert row["step_floor_s"] == same(10**9 * (2 * active + 32 * 4 * 32 * 128) / H100_PEAK, 1e-6)
    assert row["compute_s"] == max(row[part] for part in PARTS)


def test_step_floor_s__one_sequence_takes_weights_over_bandwidth() -> None:
    row = LLAMA.assuming(**IDEAL).but(batch=1, context=1).row()
    norms = 80 * 2 * 8192 * 2  # every chip keeps them whole
    cache = 2 * 80 * 2 * 8 * 128 * 2 / 8  # the one token, written and read
    assert row["step_floor_s"] == same((LLAMA_MATRICES * 2 / 8 + norms + cache) / H100_BW, 1e-12)
    assert row["bound"] == "weights"


def test_step_floor_s__one_sequence_reads_only_active_experts() -> None:
    attention, expert, router = 4096 * 128 * (32 + 32 + 8 + 8), 3 * 4096 * 14336, 4096 * 8
    read = 32 * (attention + router + 2 * 4096 + 2 * expert) + 32000 * 4096
    cache = 2 * 32 * 2 * 8 * 128 * 2
    row = Point("mixtral-8x7b-v0.1", "h200").assuming(**IDEAL).but(batch=1, context=1).row()
    assert row["step_floor_s"] == same((read * 2 + cache) / 4.8e12, 1e-9)


def test_weights_s__experts_touched_grow_with_batch() -> None:
    rows = [Point("deepseek-v3", "gb200-nvl72").assuming(**IDEAL).but(batch=batch).row() for batch in (1, 2, 32, 10**5)]
    expert, head, fp8_bw = 58 * 3 * 7168 * 2048, 2 * 129280 * 7168, 8e12
    shares = [1 - (1 - 8 / 256) ** batch for batch in (1, 2, 32, 10**5)]
    dense = rows[0]["weights_s"] - 256 * shares[0] * expert / fp8_bw
    assert dense > head / fp8_bw
    for row, share in zip(rows, shares, strict=True):
        assert row["weights_s"] == same(dense + 256 * share * expert / fp8_bw, 1e-9)


def test_pp__splits_weights_and_not_kv() -> None:
    """At b sequences per stage, each stage holds pp micro-batches of its share of the layers."""
    rows = {pp: Point("llama-3.1-70b", "8xh100-sxm", Layout(pp=pp)).but(batch=16 * pp, context=8000).row() for pp in (1, 2, 4, 5, 8)}
    layers = 80 * (LLAMA_LAYER + 2 * 8192) * 2
    for pp, row in rows.items():
        ends = 2 * LLAMA_TABLE * 2 if pp == 1 else LLAMA_TABLE * 2  # embedding and head lie on different stages
        final_norm = 8192 * 2  # counted on the fullest chip, wherever the head lies
        assert row["weights_bytes_chip"] == same(layers / pp + ends + final_norm)
        assert row["kv_bytes_chip"] == same(16 * 8000 * 80 * 2 * 8 * 128 * 2)


def test_window__caps_kv_read_and_stored() -> None:
    point = Point("mistral-7b-v0.1", "h100").but(batch=4, context=4096)
    row, longer = point.row(), point.but(context=400_000).row()
    assert longer["kv_s"] == row["kv_s"]
    assert longer["kv_bytes_chip"] == row["kv_bytes_chip"] == 4 * 4096 * 32 * 2 * 8 * 128 * 2


def test_window__in_half_of_the_layers_halves_kv_slope() -> None:
    """gpt-oss-120b: 36 layers, every other one with a window of 128 tokens."""
    point = Point("gpt-oss-120b", "h200").assuming(**IDEAL).but(batch=8)
    short, long = (point.but(context=context).row()["kv_s"] for context in (10_000, 110_000))
    assert long - short == same(8 * 100_000 * 18 * 2 * 8 * 64 * 2 / 4.8e12, 1e-9)


def test_step_s__constant_in_context_for_a_recurrent_model() -> None:
    point = Point("mamba2-2.7b", "h100").but(batch=8)
    assert point.but(context=10).row()["step_s"] == point.but(context=10**6).row()["step_s"]


# -- monotone -------------------------------------------------------------------------------------------------------------------


ONE_STEP = ("step", "ttft_unloaded", "ttft_floor", "compute_s", "weights_s", "kv_s", "network_s", "overhead_s")
LOOP = 0.0125  # the fixed point of a loop is a mean over what happens; so far it may fall behind itself (1.05 % at most here)


def request_usd(row: dict[str, Any], end: str) -> float:
    """Cost of one request; how it is shared between prompt and answer is bookkeeping."""
    return row["prompt"] * row[f"usd_per_mtok_in{end}"] + row["output"] * row[f"usd_per_mtok_out{end}"]


@pytest.mark.slow
@pytest.mark.parametrize("point", POINTS[:40] + REQUESTS[:10], ids=name)
@pytest.mark.parametrize("overlap", ["fitted", "operators"])
def test_system__better_machine_is_never_slower(point: Point, overlap: str) -> None:
    """A step and a request alone: exactly. A load: the whole request and the rate, for TTFT and TPOT may trade places in a loop."""
    point = point.assuming(overlap=overlap)
    machine, before = system(point.system), point.row()
    lower = {key for key in before if isinstance(before[key], float) and key.startswith(ONE_STEP) and key.endswith("_s")}
    facts = ("hbm_bw", "peak_bf16", "peak_fp8", "peak_fp4", "scale_up_bw", "scale_out_bw", "hbm")
    for fact in (fact for fact in facts if getattr(machine.chip, fact) is not None):
        better = edit(machine, f"chip.{fact}", float(getattr(machine.chip, fact)) * 3)
        after = dataclasses.replace(point, system=better).row()
        assert {key for key in lower if after[key] > before[key]} == set(), fact
        assert after["fits"] >= before["fits"]
        if before["prompt"] is None:
            faster = [key for key in before if key.startswith(("tok_per_s", "decode_tok")) and isinstance(before[key], float)]
            assert faster and {key for key in faster if after[key] < before[key]} == set(), fact
            continue
        assert after["e2e_s"] <= before["e2e_s"] * (1 + LOOP), fact
        for key in ("capacity_req_per_s", "tok_per_s", "tok_per_s_lo", "tok_per_s_hi", "tok_per_s_chip"):
            assert after[key] >= before[key] * (1 - LOOP), (fact, key)
        for end in ("", "_lo", "_hi") if before["usd_per_mtok_out"] is not None else ():
            assert request_usd(after, end) <= request_usd(before, end) * (1 + LOOP), (fact, end)


@pytest.mark.parametrize("point", [point for point in POINTS if "context" in dict(point.load)][:25], ids=name)
@pytest.mark.parametrize("overlap", STEP_MODELS)
def test_step_s__grows_with_batch_and_context(point: Point, overlap: str) -> None:
    batches, contexts = [1, 2, 3, 7, 8, 9, 64, 100, 1000, 4096, 10**6], [1, 100, 127, 128, 129, 4096, 5000, 10**5, 10**7]
    table = point.assuming(overlap=overlap).but(batch=batches, context=contexts).table()
    for key in ("step_s", "step_floor_s", "kv_s", "compute_s", "weights_s", "network_s", "kv_bytes_chip"):
        values = np.asarray(table[key])[0]
        assert (np.diff(values, axis=0) >= 0).all(), f"{key} falls with the batch"
        assert (np.diff(values, axis=1) >= -1e-15 * values[:, 1:]).all(), f"{key} falls with the context"


@pytest.mark.parametrize("point", REQUESTS[:15], ids=name)
@pytest.mark.parametrize("overlap", ["fitted", "operators"])
def test_ttft_and_e2e__grow_with_prompt_and_output(point: Point, overlap: str) -> None:
    """TTFT of a request alone; at a load it falls with longer answers, as prompts come less often, and TPOT falls with longer prompts."""
    table = point.assuming(overlap=overlap).but(prompt=[1, 10, 1000, 10**5], output=[2, 10, 1000, 10**4]).table()
    for key in ("ttft_unloaded_s", "e2e_s", "kv_bytes_chip"):
        values = np.broadcast_to(table[key], (1, 1, 4, 4))  # layout, batch, prompt, output
        slack = LOOP * values if key == "e2e_s" else 1e-12 * values.max() + 0 * values
        assert (np.diff(values, axis=2) >= -slack[:, :, 1:]).all(), f"{key} falls with the prompt"
        assert (np.diff(values, axis=3) >= -slack[..., 1:]).all(), f"{key} falls with the answer"


# -- network --------------------------------------------------------------------------------------------------------------------


def talks(point: Point) -> bool:
    """Whether the chips of a replica share anything: data-parallel copies of a dense model do not."""
    ways = point.layout
    return ways.tp > 1 or ways.cp > 1 or ways.pp > 1 or (ways.dp > 1 and point.model not in DENSE)


DENSE = ("llama-3.1-70b", "qwen2.5-0.5b", "palm-62b", "mistral-7b-v0.1", "phi-4", "mamba2-2.7b")


@pytest.mark.parametrize("point", POINTS + REQUESTS, ids=name)
def test_network_s__positive_where_chips_communicate(point: Point) -> None:
    for costs in ({}, dict.fromkeys(LATENCIES, 0)):
        network = point.assuming(**costs).row()["network_s"]
        assert network > 0 if talks(point) else network == 0
    if talks(point):
        slow = point.assuming(**dict.fromkeys(LATENCIES[1:], 1e-3)).row()
        assert slow["network_s"] >= 1e-3
        assert slow["step_s"] >= slow["network_s"]


def test_network_s__scale_out_links_pace_tp_beyond_the_domain() -> None:
    inside, beyond = (Point("llama-3.1-70b", "16xh100-sxm", Layout(tp=tp)).assuming(**IDEAL).row()["network_s"] for tp in (8, 16))
    assert inside == same(160 * 8192 * 2 / 450e9)  # the switch adds: a chip sends a vector once, and receives the sum
    assert beyond == same(160 * 2 / 16 * 8192 * 2 / 50e9)  # each rail carries an eighth of it, both ways


# -- requests and money ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("point", REQUESTS, ids=name)
def test_rates__consistent_with_tpot_and_batch(point: Point) -> None:
    row = point.row()
    batch, replicas, chips = row["batch"], row["replicas"], row["chips"]
    assert row["concurrency"] == same(batch * replicas)
    assert row["tok_per_s_user"] == same(1 / row["tpot_s"])
    assert row["decode_tok_per_s"] == same(batch * replicas / row["tpot_decode_s"])
    assert row["tok_per_s"] == same(batch * replicas / row["e2e_s"] * row["output"], 1e-9)  # Little's law
    assert row["tok_per_s_chip"] == same(row["tok_per_s"] / chips)
    assert row["tok_per_s"] < row["decode_tok_per_s"]
    used = row["tp"] * row["cp"] * row["dp"] * row["pp"] * replicas
    assert row["chips_idle"] == chips - used


@pytest.mark.parametrize("point", REQUESTS, ids=name)
def test_usd_per_mtok__requests_pay_for_the_whole_machine(point: Point) -> None:
    """In an hour: prompt tokens at their price and output tokens at theirs pay for all chips, idle ones included."""
    row = dataclasses.replace(point, system=edit(system(point.system), "chip.price", "$3.60/h")).row()
    load = dict(point.load)
    request = (row["usd_per_mtok_in"] * load["prompt"] + row["usd_per_mtok_out"] * load["output"]) / 1e6
    assert request * row["tok_per_s"] / load["output"] == same(row["chips"] * 1e-3, 1e-9)


def test_usd_per_mtok__includes_idle_chips() -> None:
    whole = Point("llama-3.1-8b", "8xh100-sxm", Layout(replicas=8)).but(batch=16, context=None, prompt=1000, output=1000)
    half = dataclasses.replace(whole, layout=Layout(replicas=4))
    full, idle = whole.row(), half.row()
    assert idle["chips_idle"] == 4
    assert idle["usd_per_mtok_out"] == same(2 * full["usd_per_mtok_out"])
    assert idle["tok_per_s_chip"] == same(full["tok_per_s_chip"] / 2)
    assert idle["tpot_s"] == full["tpot_s"]


def test_tok_per_s__sustained_rate_includes_prefill() -> None:
    point = LLAMA.but(batch=64, context=None, prompt=1000, output=1000)
    row = point.row()
    decode, prompt = 1000 * row["tpot_decode_s"] / 64, row["ttft_unloaded_s"]
    assert 1000 / (decode + prompt) < row["tok_per_s"] < 1000 / decode  # a prompt takes its time alone at most: it shares steps
    assert row["tok_per_s"] == same(64 * 1000 / (row["ttft_s"] + 999 * row["tpot_s"]), 1e-9)


def test_fits__largest_batch_by_hand() -> None:
    """90 % of 79.1 GiB, less a step of 8,192 tokens that draws for 1,024 sequences, buffers, graphs and 17.64 GB of weights; 40,960
    bytes of KV per token and chip."""
    weights = (80 * LLAMA_LAYER + 2 * LLAMA_TABLE) * 2 / 8 + 80 * 2 * 8192 * 2
    activations = 1024 * 128_256 * 14 + 8192 * 8192 * 2
    usable = 0.9 * H100_CARD - activations - 2.252e9 - 0.3e6 * 80 * 2 * 51
    most = math.floor((usable - weights) / (8192 * 80 * 2 * 128 * 2))
    assert most == 155
    assert LLAMA.but(batch=most, context=8192).row()["fits"]
    over = LLAMA.but(batch=most + 1, context=8192).row()
    assert not over["fits"]
    assert over["bound"] == "capacity"
    assert "at most 155 sequences" in over["why"]


# -- by hand --------------------------------------------------------------------------------------------------------------------


def test_step_s__llama_70b_on_eight_h100_by_hand() -> None:
    row = LLAMA.assuming(**FLAT).but(batch=64, context=8192).row()
    weights = LLAMA_MATRICES * 2 / 8 + 80 * 2 * 8192 * 2
    kv = 64 * 8193 * 80 * 2 * 128 * 2  # one KV head of eight per chip; each token attended is read, the new one written
    flop = 64 * (2 * LLAMA_MATRICES + 80 * 4 * 64 * 128 * 8192) / 8
    sent = 160 * 64 * 8192 * 2  # two all-reduces a layer; the switch adds, so that a chip sends each vector once
    assert row["weights_s"] == same(weights / H100_BW / 0.8)
    assert row["kv_s"] == same(kv / H100_BW / 0.8)
    assert row["compute_s"] == same(flop / H100_PEAK / 0.7)
    assert row["network_s"] == same(sent / H100_LINK / 0.5 + 160 * 2 * 3e-6)
    assert row["step_floor_s"] == same((weights + kv) / H100_BW)
    assert row["step_floor_s"] == pytest.approx(11.6e-3, rel=1e-3)
    head = 2 * LLAMA_TABLE  # sampled from once, after the last token
    prompt = (2 * (LLAMA_MATRICES - LLAMA_TABLE) * 8192 + head + 80 * 4 * 64 * 128 * 8192**2 / 2) / 8
    assert row["ttft_floor_s"] == same(prompt / H100_PEAK)
    assert row["weights_bytes_chip"] == 80 * LLAMA_LAYER * 2 / 8 + 2 * LLAMA_TABLE * 2 / 8 + (80 * 2 + 1) * 8192 * 2
    assert row["kv_bytes_chip"] == 64 * 8192 * 80 * 2 * 128 * 2
    assert row["hbm_bytes_chip"] == same(0.9 * H100_CARD)


def test_step_s__deepseek_v3_on_a_rack_by_hand() -> None:
    """One rank per chip, experts spread over 72 chips of which the fullest hold 4; fp8 weights, bf16 cache, table and head."""
    point = Point("deepseek-v3", "gb200-nvl72", Layout(ep=72, dp=72)).but(batch=72 * 64, context=8192).assuming(**FLAT)
    row = point.row()
    mixer = 1536 * (7168 + 128 * 192) + 7168 * 576 + 512 * 128 * 256 + 128 * 128 * 7168
    expert, shared, dense, head = 3 * 7168 * 2048, 7168 * 256 + 3 * 7168 * 2048, 3 * 7168 * 18432, 129280 * 7168
    norms = 2 * (61 * (2 * 7168 + 1536 + 512) + 58 * 256)  # two norms, two latent norms, the router's bias
    touched = 4 * 58 * expert * (1 - (1 - 8 / 256) ** (72 * 64))
    read = 61 * mixer + 58 * shared + 3 * dense + norms + 2 * head
    bw, fp8, bf16, link = 8e12, 5e15, 2.5e15, 0.9e12
    assert row["weights_bytes_chip"] == same(read + 2 * head + 4 * 58 * expert, 1e-6)
    assert row["weights_s"] == same((read + touched) / bw / 0.8, 1e-6)
    assert row["kv_s"] == same(64 * 8193 * 61 * 576 * 2 / bw / 0.8)
    assert row["kv_bytes_chip"] == 64 * 8192 * 70272
    flop = 64 * 2 * (61 * mixer + 58 * shared + 3 * dense) + 72 * 64 * 8 * 4 / 256 * 58 * 2 * expert
    attention = 64 * 61 * 128 * 2 * (512 + 64 + 512) * 8192
    assert row["compute_s"] == same((flop / fp8 + (64 * 2 * head + attention) / bf16) / 0.7, 1e-9)
    copies = 8 * 71 / 72  # one per expert, those on the token's own chip apart
    sent = 58 * copies * 64 * 7168 * (1 + 4 / 128 + 2)  # fp8 with a scale per 128 out, bf16 back
    assert row["network_s"] == same(sent / link / 0.8 + 2 * 58 * 11e-6, 1e-9)
    assert row["hbm_bytes_chip"] == same(0.9 * float(reported_memory(chip("gb200"))))
    assert row["chips_idle"] == 0


def test_step_floor_s__palm_on_tpu_v4_below_the_measured_time() -> None:
    """Pope et al. 2022 measured 29 ms per token on 64 chips at a small batch; the weights alone take 7 ms there, 9 ms on 48."""
    row = Point("palm-540b", "tpu-v4-4x4x4", Layout(tp=48), formats=(("weights", "int8"),)).but(batch=1, context=64).row()
    shared = 118 * 18432 * 2 * 256  # the one key and value head, which every chip projects whole
    assert row["step_floor_s"] == pytest.approx((540e9 / 48 + shared) / 1.2288e12, rel=0.02)
    assert row["step_floor_s"] < 29e-3
    assert row["chips_idle"] == 16
