"""The fitted step model: above the floor, monotone, worked out by hand from the numbers of data/efficiency.toml, and said to be fitted."""

from __future__ import annotations

import dataclasses
import math
import tomllib
from typing import Any

import numpy as np
import pytest

from headway.core.catalog import PACKAGED
from headway.core.errors import MissingFact
from headway.core.formula import leaves
from headway.hardware.edit import edit
from headway.hardware.system import system
from headway.performance.achieved import FITTED, KEYS, UNMEASURED, Efficiencies, efficiencies, family, platform, weight_class
from headway.performance.assumptions import ENGINES
from headway.performance.layout import Layout
from support.cases import FLAT, STEP_MODELS, Point, beyond_laws, drawn, fitted_numbers
from support.each import for_each

POINTS = [drawn(seed) for seed in range(80)]
REQUESTS = [drawn(seed, requests=True) for seed in range(1000, 1030)]
LLAMA = Point("llama-3.1-70b", "8xh100-sxm", Layout(tp=8)).but(batch=64, context=8192)
RACK = Point("deepseek-v3", "gb200-nvl72", Layout(ep=72, dp=72)).but(batch=72 * 64, context=8192)
NO_LINKS = ("overlap", "eff_compute", "eff_memory", "t0", "spread")
LINKS = {key: value for key, value in FLAT.items() if key not in NO_LINKS}
NUMBERS = fitted_numbers()


def name(point: Any) -> str:
    return point.id if isinstance(point, Point) else str(point)


# -- limits ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("point", POINTS[::2] + REQUESTS[::3], ids=name)
def test_engine__no_estimate_below_the_floor(point: Point, engine: str) -> None:
    row = point.assuming(engine=engine).row()
    for stem in (stem for stem in ("step", "ttft", "tpot") if row[f"{stem}_s"] is not None):
        floor, low, expected, high = (row[f"{stem}{end}_s"] for end in ("_floor", "_lo", "", "_hi"))
        assert 0 < floor <= low <= expected <= high, stem


@pytest.mark.parametrize("overlap", STEP_MODELS)
@pytest.mark.parametrize("point", REQUESTS, ids=name)
def test_users__more_of_them_wait_longer_and_cost_less_until_saturation(point: Point, overlap: str) -> None:
    """What the search rests on, and why it tries fewer users too: with many decodes, prompts get smaller shares of a step."""
    ranks = point.layout.dp * point.layout.pp
    each = np.array([*range(1, 40), 64, 100, 255, 256, 257, 1000, 4096, 10**5])
    priced = dataclasses.replace(point, system=edit(system(point.system), "chip.price", "$3/h"))
    table = priced.assuming(overlap=overlap).but(batch=(each * ranks).tolist()).table()
    keys = ("e2e_s", "usd_per_mtok_in", "usd_per_mtok_out", "tok_per_s_chip", "ttft_unloaded_s")
    e2e, usd_in, usd_out, rate, alone = (np.broadcast_to(table[key], (1, len(each), 1, 1))[0, :, 0, 0] for key in keys)
    cost = usd_in * dict(point.load)["prompt"] + usd_out * dict(point.load)["output"]
    assert (np.diff(e2e) >= -0.003 * e2e[1:]).all() and (np.diff(alone) == 0).all()
    assert rate * cost == pytest.approx(rate[0] * cost[0], rel=1e-9)  # whoever finishes more pays less
    peak = int(rate.argmax())
    assert (np.diff(rate[: peak + 1]) >= -0.001 * rate[1 : peak + 1]).all()
    assert rate[-1] >= 0.9 * rate[peak]


@pytest.mark.parametrize("point", POINTS[:30], ids=name)
def test_fixed__factor_scales_only_fixed_costs(point: Point) -> None:
    none, one, two = (point.assuming(fixed=factor, **LINKS).row() for factor in (0, 1, 2))
    assert two["step_s"] - one["step_s"] == pytest.approx(one["step_s"] - none["step_s"], rel=1e-6)
    assert two["overhead_s"] - one["overhead_s"] == pytest.approx(one["overhead_s"] - none["overhead_s"], rel=1e-9)
    assert [two[key] == one[key] for key in ("compute_s", "weights_s", "kv_s", "network_s")] == [True] * 4
    assert one["step_s"] - none["step_s"] == pytest.approx(one["overhead_s"] - none["overhead_s"], rel=1e-6)


def test_eff_compute_and_t0__user_values_replace_fitted_ones() -> None:
    half = {"eff_compute": 0.5, "eff_memory": 0.25, "t0": 1e-6}
    row, peak = (LLAMA.assuming(**given, engine="none").row() for given in (half, {"eff_compute": 1, "eff_memory": 1, "t0": 0}))
    activation, small = shares("gemm", "8xh100-sxm", "bf16", "activation")[0], shares("elementwise", "8xh100-sxm", "bf16", "memory")[0]
    moved = 64 * 2 / BW * (80 * (4 * 8192 + LAYER / 8 / 8192) / activation + 160 * 4 * 8192 / small)  # whatever the shares given
    assert row["compute_s"] - moved == pytest.approx(2 * (peak["compute_s"] - moved), rel=1e-9)
    assert row["weights_s"] == pytest.approx(4 * peak["weights_s"], rel=1e-12)
    block, stream = shares("decode", "8xh100-sxm", "bf16", "block_bytes", "stream_bandwidth")
    blocks = 64 * 80 * block / BW + 80 * 8192 * 2 * 128 * 2 / stream
    assert row["kv_s"] - blocks == pytest.approx(4 * (peak["kv_s"] - blocks), rel=1e-9)
    assert row["overhead_s"] - peak["overhead_s"] == pytest.approx((80 * 4 + 1 + 80 + 320) * 1e-6, rel=1e-12)  # matmuls, attention, small


# -- by hand --------------------------------------------------------------------------------------------------------------------


def met(a: float, b: float, norm: float) -> float:
    return (a**norm + b**norm) ** (1 / norm)


def shares(kind: str, chip: str, form: str, *keys: str) -> list[float]:
    table, found = efficiencies(), system(chip).chip
    return [float(table.kernel(kind, family(found), form, key)) for key in keys]


def engine(chip: str, *keys: str) -> list[float]:
    kind = platform(system(chip).chip)
    return [float(efficiencies().engine("other", kind, key)) for key in keys]


def factors(chip: str) -> tuple[float, float, float, float]:
    compute, memory, attention, expert = engine(chip, "compute_factor", "memory_factor", "attention_factor", "expert_factor")
    table, kind = efficiencies(), platform(system(chip).chip)
    return compute * float(table.platform(kind, "compute_factor")), memory * float(table.platform(kind, "memory_factor")), attention, expert


LAYER = 8192 * 128 * (64 + 64 + 8 + 8) + 3 * 8192 * 28672
TABLE = 128256 * 8192
PEAK, BW, LINK = 989.4e12, 3.35e12, 450e9


def llama(tokens: int, sampled: int, score: float, kv: float, blocks: int, pairs: float) -> float:
    """A step of Llama-3.1-70B over eight H100, links as in FLAT: FLOP of new tokens' scores, bytes of KV and queries' pairs a chip."""
    chip = "8xh100-sxm"
    of_compute, of_memory, of_attention, _ = factors(chip)
    compute, memory, activation, norm, t0 = shares("gemm", chip, "bf16", "compute", "memory", "activation", "norm", "t0_s")
    matmul = met(
        2 * (80 * LAYER * tokens + TABLE * sampled) / 8 / PEAK / min(compute * of_compute, 1),
        ((80 * LAYER + TABLE) / 8 + 80 * 2 * 8192) * 2 / BW / min(memory * of_memory, 1), norm,
    )  # fmt: skip
    vectors = 80 * (4 * 8192 + LAYER / 8 / 8192) * 2 * tokens / BW / activation  # q,k,v in and out in two; up with gate, down
    share, stream, block, attention_t0 = shares("decode", chip, "bf16", "compute", "memory", "block_bytes", "t0_s")
    share, stream = min(share * of_compute * of_attention, 1), min(stream * of_memory * of_attention, 1)
    decode = max(score / PEAK / share, kv / BW / stream) + blocks * block / BW
    decode += 80 * 8192 * 2 * 128 * 2 / shares("decode", chip, "bf16", "stream_bandwidth")[0] if blocks else 0  # one head of one sequence
    prompt_share, pad = shares("prefill", chip, "bf16", "compute", "pad_tokens")
    prefill = (pairs + pad * (tokens - sampled + (pairs > 0))) * 80 * 4 * 8 * 128 / PEAK / min(prompt_share * of_compute * of_attention, 1)
    small_t0, small = shares("elementwise", chip, "bf16", "t0_s", "memory")
    norms = 160 * 4 * 8192 * 2 * tokens / BW / small
    step, layer, split, launch = engine(chip, "step_overhead_s", "layer_overhead_s", "split_overhead_s", "launch_factor")
    fixed = launch * ((80 * 4 + 1) * t0 + 80 * attention_t0 + 320 * small_t0)  # norms, rotations, activations
    per_sequence, prompt_t0 = sum(engine(chip, "sequence_overhead_s", "streaming_overhead_s")), shares("prefill", chip, "bf16", "t0_s")[0]
    fixed += step + 80 * (layer + 8 * split) + (launch * 80 * prompt_t0 if pairs else per_sequence * tokens)
    chip_s = matmul + vectors + decode + (prefill if pairs else 0) + norms + fixed + 160 * (tokens * 8192 * 2 / LINK / 0.5 + 2 * 3e-6)
    host_s = (80 * 4 + 1 + 80 + 320) * engine(chip, "prompt_launch_s")[0]  # no graph replays a step with prompts
    return met(chip_s, host_s, 2) * beyond_laws("prompt", "bf16", chip) if pairs else chip_s * beyond_laws("decode", "bf16", chip)


def test_step_s__decode_of_llama_70b_on_eight_h100_by_hand() -> None:
    row = LLAMA.assuming(**LINKS).row()
    kv = 64 * 8193 * 80 * 2 * 128 * 2  # one KV head of eight a chip; each token attended is read, the new one written
    assert row["step_s"] == pytest.approx(llama(64, 64, 64 * 8192 * 80 * 4 * 8 * 128, kv, 64 * 80, 0), rel=1e-12)


def test_ttft__prefill_of_llama_70b_on_eight_h100_by_hand() -> None:
    """A prompt of one chunk, and what the engine does before and after it."""
    row, bare = (LLAMA.assuming(**LINKS, **taken).row() for taken in ({}, {"engine": "none"}))
    written = 8192 * 80 * 2 * 128 * 2
    assert row["ttft_s"] == pytest.approx(
        llama(8192, 1, 0, written, 0, 8192**2 / 2) + engine("8xh100-sxm", "request_overhead_s")[0], rel=1e-12
    )
    request_s = engine("8xh100-sxm", "request_overhead_s")[0]
    assert bare["ttft_s"] < (row["ttft_s"] - request_s) / beyond_laws("prompt", "bf16", "8xh100-sxm")


def test_step_s__decode_of_deepseek_v3_on_a_rack_by_hand() -> None:
    """One rank a chip, 64 sequences each; the fullest chips hold 4 of 256 experts; fp8 weights, bf16 cache and head."""
    row, chip = RACK.assuming(**LINKS).row(), "gb200-nvl72"
    bw, fp8, bf16, link = 8e12, 5e15, 2.5e15, 0.9e12
    mixer = 1536 * (7168 + 128 * 192) + 7168 * 576 + 512 * 128 * 256 + 128 * 128 * 7168
    expert, shared, dense, head = 3 * 7168 * 2048, 7168 * 256 + 3 * 7168 * 2048, 3 * 7168 * 18432, 129280 * 7168
    of_compute, of_memory, of_attention, of_experts = factors(chip)

    def met_of(kind: str, compute_s: float, weights_s: float, vectors_s: float, of: float = 1.0) -> float:
        compute, memory, activation, norm = shares(kind, chip, "fp8", "compute", "memory", "activation", "norm")
        both = met(compute_s / min(compute * of_compute * of, 1), weights_s / min(memory * of_memory * of, 1), norm)
        return both + vectors_s / (activation if kind == "gemm" else min(activation * of_memory * of, 1))

    params = 61 * mixer + 58 * shared + 3 * dense
    norms = 2 * (61 * (2 * 7168 + 1536 + 512) + 58 * 256)
    vectors = (61 * 5 + 58 * 3 + 3 * 2) * 7168 + params / 7168
    matmul = met_of("gemm", 64 * 2 * (params / fp8 + head / bf16), (params + norms + 2 * head) / bw, 64 * 2 * vectors / bw)
    group, skew = 72 * 64, shares("routing", chip, "bf16", "skew")[0]
    busiest = (2 * 72) ** skew * group
    routed = met_of(
        "moe", busiest * 8 * 4 / 256 * 58 * 2 * expert / fp8, 4 * 58 * expert * (1 - (1 - 8 / 256) ** group ** (1 - skew)) / bw,
        busiest * 8 * 4 / 256 * 58 * (2 * 2 * 7168 + expert / 7168) * 2 / bw, of_experts,  # gathered, in; out, scattered
    )  # fmt: skip
    share, stream, block, latent_t0 = shares("mla_decode", chip, "bf16", "compute", "memory", "block_bytes", "t0_s")
    attention = max(
        64 * 61 * 128 * 2 * (512 + 64 + 512) * 8192 / bf16 / min(share * of_compute * of_attention, 1),
        64 * 8193 * 61 * 576 * 2 / bw / min(stream * of_memory * of_attention, 1),
    ) + 64 * 61 * block / bw + 61 * 8192 * 576 * 2 / shares("mla_decode", chip, "bf16", "stream_bandwidth")[0]  # fmt: skip
    small_t0, small = shares("elementwise", chip, "bf16", "t0_s", "memory")
    step, layer, launch, per_sequence = (
        *engine(chip, "step_overhead_s", "layer_overhead_s", "launch_factor"),
        sum(engine(chip, "sequence_overhead_s", "streaming_overhead_s")),
    )
    t0, expert_t0 = shares("gemm", chip, "fp8", "t0_s")[0], shares("moe", chip, "fp8", "t0_s")[0]
    wide_t0 = shares("gemm", chip, "bf16", "t0_s")[0]  # of absorbed products, routers and the head; shared experts start beside the routed
    launched = (61 * 3 + 3 * 2) * t0 + (61 * 2 + 58 + 1) * wide_t0 + 61 * latent_t0
    launched += (122 + 61 * 4) * small_t0  # two norms inside, rotation, activation
    fixed = launch * launched + 58 * expert_t0 + step + 61 * layer + 64 * per_sequence
    sent = 58 * 8 * 71 / 72 * 64 * 7168 * (1 + 4 / 128 + 2)
    network = sent / link / 0.8 + 2 * 58 * 11e-6
    small_s = 122 * 4 * 7168 * 2 * 64 / bw / small
    step_s = (matmul + routed + attention + small_s + fixed + network) * beyond_laws("decode", "fp8", chip)
    assert row["step_s"] == pytest.approx(step_s, rel=1e-12)


# -- the numbers ----------------------------------------------------------------------------------------------------------------


@for_each(NUMBERS)
def test_fitted_numbers__have_meaning_error_and_range(place: str) -> None:
    one = NUMBERS[place]
    assert one["meaning"].strip()
    assert one["error"] >= 0 and one["rows"] >= 0
    assert isinstance(one["range"], str)


@for_each([place for place in NUMBERS if not place.startswith("collective")])
def test_fitted_numbers__unit_in_the_name(place: str) -> None:
    """Those of links are named as the assumptions that replace them."""
    ending = {"": "", "s": "_s", "byte": "_bytes", "byte/s": "_bandwidth", "flop": "_flop", "token": "_tokens"}[NUMBERS[place]["unit"]]
    assert place.endswith(ending)
    assert ending or not place.endswith(("_s", "_bytes", "_tokens"))


def test_fitted_numbers__each_kernel_class_has_its_keys() -> None:
    shipped: dict[str, set[str]] = {}
    for section, numbers_of in efficiencies().sections.items():
        shipped.setdefault(section.partition(".")[0], set()).update(numbers_of)
    assert shipped.pop("remainder", set()) <= set(KEYS["remainder"])  # a factor stands only where clusters of runs agree on one
    shipped["gemm"].add("packing")  # of processors, in the file of a chip alone (docs/measure.md)
    assert shipped == {kind: set(keys) for kind, keys in KEYS.items() if kind != "remainder"}


@for_each([place for place in NUMBERS if not place.startswith(("engine", "interval", "platform"))])
def test_fitted_numbers__kernel_share_at_most_one(place: str) -> None:
    value, key = NUMBERS[place]["value"], place.rpartition(".")[2]
    if key in ("compute", "memory", "eff_network", "eff_in_switch"):
        assert 0 < value <= 1
    elif key == "norm":
        assert value >= 1  # a sum at most
    else:
        assert value >= 0 and math.isfinite(value)


@pytest.mark.parametrize(
    ("model", "machine", "formats", "wanted"),
    [
        ("llama-3.1-8b", "h100-sxm", {}, {"gemm": "bf16", "decode": "bf16"}),
        ("llama-3.1-8b", "h100-sxm", {"weights": "fp8", "kv": "fp8"}, {"gemm": "fp8", "decode": "fp8"}),
        ("llama-3.1-8b", "h100-sxm", {"weights": "int4"}, {"gemm": "weight_only"}),
        ("llama-3.1-8b", "a100-sxm-80", {"weights": "fp8"}, {"gemm": "weight_only"}),
        ("llama-3.1-8b", "1xb200", {"weights": "fp4"}, {"gemm": "nvfp4"}),
        ("deepseek-v3", "8xb200", {}, {"gemm": "fp8", "moe": "fp8", "mla_decode": "bf16"}),
        ("gpt-oss-120b", "h100-sxm", {}, {"gemm": "bf16", "moe": "mxfp4", "decode": "bf16"}),
        ("deepseek-v4-flash", "8xb200", {}, {"gemm": "fp8", "moe": "mxfp4_a8"}),
        ("mamba2-2.7b", "h100-sxm", {}, {"gemm": "bf16"}),
    ],
)  # fmt: skip
def test_efficiency__numbers_of_the_chip_class_and_format(
    model: str, machine: str, formats: dict[str, str], wanted: dict[str, str]
) -> None:
    """A number may be that of bf16 where the format has none of its own; never that of another format or class."""
    tree = Point(model, machine, formats=tuple(formats.items())).table().explain("step_s")
    places = {leaf.name for _, leaf in leaves(tree) if leaf.kind == "fitted"}
    left = {place.split(".")[2] for place in places if place.startswith("remainder.weights.")}
    assert left <= {weight_class(form) for form in (*formats.values(), *wanted.values())}
    found: dict[str, set[str]] = {}
    for place in places:
        kind, *_, form, _ = place.split(".")
        found.setdefault(kind, set()).add(form)
    for kind, form in wanted.items():
        assert form in found[kind] <= {form, "bf16"}, kind
    others = {"engine", "platform", "remainder", "collective", "elementwise", "routing", "prefill", "mla_prefill", "decode"}
    assert found.keys() - others <= wanted.keys()


@pytest.mark.parametrize(("model", "machine", "form"), [
    ("deepseek-v4-flash", "8xh200-sxm", "weight_only"),  # "Using 'MARLIN' Mxfp4 MoE backend", vllm-project/vllm#53709 of Hopper
    ("deepseek-v4-flash", "8xb200", "mxfp4_a8"),  # its first choice there: activations in MXFP8
    ("gpt-oss-120b", "8xh200-sxm", "mxfp4"),  # Triton's kernels
])  # fmt: skip
def test_efficiency__kernels_of_mxfp4_experts_that_vllm_selects(model: str, machine: str, form: str) -> None:
    tree = Point(model, machine).assuming(engine="vllm").table().explain("step_s")
    places = {leaf.name for _, leaf in leaves(tree) if leaf.kind == "fitted" and leaf.name.startswith("moe.")}
    assert {place.split(".")[2] for place in places} - {"bf16"} == {form}


def test_efficiency__lookup_by_family_then_format_then_bf16() -> None:
    wide = {"gemm.hopper.bf16": {"b": 3, "c": 3}, "gemm.other.bf16": {"d": 4}}
    found = Efficiencies({"gemm.hopper.fp8": {"a": 1}, "gemm.other.fp8": {"a": 2, "b": 2}, **wide})
    assert [found.kernel("gemm", "hopper", "fp8", key) for key in "abcd"] == [1, 2, 3, 4]
    assert found.kernel("gemm", "ampere", "fp8", "a") == 2
    with pytest.raises(MissingFact, match="headway fit"):
        found.kernel("gemm", "hopper", "fp8", "e")


def test_families__every_chip_is_in_the_catalogue() -> None:
    from headway.hardware.chip import chip

    document = tomllib.loads((PACKAGED / "families.toml").read_text(encoding="utf-8"))
    for lists in document.values():
        named = [one for chips in lists.values() for one in chips]
        assert len(named) == len(set(named))
        assert all(chip(one).name == one for one in named)


# -- what is said ---------------------------------------------------------------------------------------------------------------


def notes(machine: str, **taken: Any) -> tuple[str, ...]:
    return Point("llama-3.1-8b", machine).assuming(**taken).table().notes


def test_notes__fitted_step_model_says_its_evidence() -> None:
    assert notes("h100-sxm").count(FITTED) == 1
    assert not any("unfitted" in note or UNMEASURED in note for note in notes("h100-sxm"))


@pytest.mark.parametrize("overlap", ["full", "operators", "serial"])
def test_notes__flat_step_models_say_unfitted(overlap: str) -> None:
    found = notes("h100-sxm", overlap=overlap)
    assert FITTED not in found and sum(note.startswith("unfitted: ") and repr(overlap) in note for note in found) == 1


def test_notes__chip_without_measured_kernels() -> None:
    assert f"mi300x: {UNMEASURED}" in notes("1xmi300x")


@pytest.mark.parametrize("machine", ["8xb200", "8xh200", "8xmi300x"])
@pytest.mark.parametrize("model", ["qwen3-235b-a22b", "llama-3.1-70b", "gpt-oss-120b"])
def test_fp8_kv__floor_never_slower_and_expected_never_slower_where_the_cache_is_large(model: str, machine: str) -> None:
    """A small cache may cost a little more in fp8, as it does in measured kernels: another launch, and conversion."""
    for batch, context, large in ((1, 8000, False), (64, 1000, False), (16, 32_000, True), (64, 32_000, True)):
        point = Point(model, machine, Layout(tp=2)).but(batch=batch, context=context)
        wide, narrow = (dataclasses.replace(point, formats=(("kv", kv),)).row() for kv in ("bf16", "fp8"))
        assert narrow["step_floor_s"] <= wide["step_floor_s"] and narrow["kv_bytes_chip"] < wide["kv_bytes_chip"]
        assert narrow["step_s"] <= wide["step_s"] * (1.0 if large else 1.02), (batch, context)
