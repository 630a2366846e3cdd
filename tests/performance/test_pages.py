"""Caches as engines lay them out: cells, whole contexts, pages of one pool, shares of pools; and what start-up logs print of a sequence."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.core.formula import anonymous
from headway.core.quantity import user_input
from headway.core.trace import record
from headway.hardware.system import system
from headway.laws.step.pages import paged_sequence_bytes
from headway.models import totals
from headway.models.config import model
from headway.models.precision import Precision, formats
from headway.models.work import work_of
from headway.performance.assumptions import Assumptions
from headway.performance.compile import StepModel, compile_layout
from headway.performance.formats import resolve
from headway.performance.layout import Layout
from headway.performance.pages import cache_in_pages

GIB = 2**30
V4 = ("deepseek-v4-flash", "8xb200-sxm", "fp8")
FP8, BF16 = formats()["fp8"].bytes, formats()["bf16"].bytes


def compiled(name: str, on: str = "8xh100-sxm", kv: str = "", **layout: Any) -> StepModel:
    """A layout of a model, tensor parallel over all chips unless it says otherwise."""
    work, machine = work_of(model(name)), system(on)
    layout = layout or {"tp": int(machine.chips)}
    return compile_layout(work, machine, Layout(**layout), Assumptions(), resolve(work, machine.chip, Precision(kv=kv)))


def occupied_bytes(found: StepModel, engine: str, context: Any, in_flight: Any) -> Any:
    """Bytes that a sequence occupies under an engine, before cp and stages."""
    return paged_sequence_bytes(cache_in_pages(found, engine, in_flight).pages, context)


def cells(name: str, kv: str = "fp8") -> dict[str, float]:
    """Bytes of a cell by kind of cache, entries of several tokens whole."""
    found = {}
    for block in model(name).blocks:
        ratio = float(getattr(block.attention, "ratio", None) or 1)
        for store in block.attention.stores():
            times = ratio if store.what in ("compressed", "index") else 1
            found[store.what] = float(store.elements_per_token * store.element_bytes(formats()[kv].bytes)) * times
    return found


# vLLM 0.33.0, models/deepseek_v4/attention.py; vllm-project/vllm#56893; mlx-vlm#1284 (layout of vLLM and SGLang)
@pytest.mark.parametrize(("name", "kv", "sizes"), [
    ("deepseek-v3.2", "fp8", {"kv": 656, "index": 132}),
    ("deepseek-v4-flash", "fp8", {"window": 584, "compressed": 584, "index": 132}),
    ("deepseek-v4-pro", "bf16", {"window": 1024, "compressed": 1024, "index": 132}),
])  # fmt: skip
def test_cells__are_those_of_engines(name: str, kv: str, sizes: dict[str, float]) -> None:
    assert cells(name, kv) == sizes


def test_a_cache_of_4_bit_floats__carries_a_scale_per_16() -> None:
    """vLLM 0.33.0 and SGLang 0.5.23 keep half a byte an element and one byte per 16 (nvfp4): 9/16 of fp8."""
    narrow, wide = compiled("llama-3.1-8b", "1xb200-sxm", "fp4"), compiled("llama-3.1-8b", "1xb200-sxm", "fp8")
    assert float(occupied_bytes(narrow, "none", 1000, 1)) == 9 / 16 * float(occupied_bytes(wide, "none", 1000, 1))


# KV of whole contexts as unslothai/unsloth#4757 prints them (GiB, 16 bits), state apart
@pytest.mark.parametrize(("name", "context", "size"), [
    ("gemma-3-27b", 131072, 10.41), ("qwen3.5-27b", 262144, 16.00), ("deepseek-v3", 163840, 10.72),
    ("kimi-k2.5", 262144, 17.16), ("qwen3-0.6b", 40960, 4.38), ("qwen3-30b-a3b", 262144, 24.0),
])  # fmt: skip
def test_whole_context__is_as_logged(name: str, context: int, size: float) -> None:
    assert float(totals.kv_stored_bytes(model(name), context, BF16)) / GIB == pytest.approx(size, rel=0.002)


def test_whole_context__of_glm_5_counts_no_layer_for_drafts() -> None:
    """The logged 17.18 GiB are of 79 layers: a file's block count includes the one for drafts; index keys are left out."""
    found = model("glm-5")
    latents = float(totals.kv_bytes_per_token(found, BF16)) * 202752
    assert latents * 79 / 78 / GIB == pytest.approx(17.18, rel=0.001)


def test_recurrent_state__is_apart_from_the_cache() -> None:
    """llama.cpp prints 16.15 GiB with the states of a sequence in fp32 (unslothai/unsloth#9525), 16.00 without them (#4757)."""
    found = model("qwen3.5-27b")
    assert float(totals.sequence_bytes(found, 262144, BF16, formats()["fp32"].bytes)) / GIB == pytest.approx(16.15, abs=0.005)


def test_vllm__pages_of_deepseek_v4_are_those_of_a_running_engine() -> None:
    """Groups as vLLM 0.28.1 printed them (vllm-project/vllm#54703): 1,002,240 bytes a block; 64, 64, 4 and 8 tokens in those of windows."""
    cache = cache_in_pages(compiled(*V4), "vllm", 8192)
    assert cache is not None
    (full, *windows) = [tuple(float(number) for number in page) for page in cache.pages]
    assert full == (1002240, 256, 0, math.inf, 0)
    assert sorted((size / 1002240, tokens) for size, tokens, *_ in windows) == [(1, 4), (1, 8), (2, 64)]


# Needs and pools that logs print, of versions 0.22 to 0.26, which pad blocks up to 5 % more: bytes of one sequence, tokens of a step.
@pytest.mark.parametrize(("context", "in_flight", "size", "within"), [
    (30000, 16384, 6.66, 0.055),  # vllm-project/vllm#44376, two GH200, offline: 16,384 tokens a step
    (13528, 16384, 5.44, 0.055),  # the longest that fits its 5.44 GiB
    (912128, 8192, 7.01 / 1.1069, 0.03),  # vllm-project/vllm#51041: 1,009,661 tokens in 7.01 GiB
])  # fmt: skip
def test_vllm__a_sequence_of_deepseek_v4_takes_what_logs_say(context: int, in_flight: int, size: float, within: float) -> None:
    found = compiled("deepseek-v4-flash", "2xh20-sxm", "fp8")
    assert float(occupied_bytes(found, "vllm", context, in_flight)) / GIB == pytest.approx(size, rel=within)


def test_vllm__a_latent_is_on_every_tensor_parallel_chip() -> None:
    wide, alone = compiled(*V4), compiled("deepseek-v4-flash", "8xb200-sxm", "fp8", dp=8, ep=8)
    assert float(occupied_bytes(wide, "vllm", 2**20, 8192)) == float(occupied_bytes(alone, "vllm", 2**20, 8192))


def test_vllm__layers_that_fill_no_group_take_a_block_all_the_same() -> None:
    """Gemma-3-27B: 10 full layers and 52 of windows in groups of 10, so that windows are held as by 60."""
    found, tokens = compiled("gemma-3-27b", "1xh100-sxm"), 131072
    cell = 2 * 16 * 128 * 2
    window = math.ceil((1023 + 8192) / 16) + 1
    assert float(occupied_bytes(found, "vllm", tokens, 8192)) == 10 * cell * tokens + 60 * cell * 16 * window


def test_vllm__a_state_takes_a_page_of_attention() -> None:
    """Qwen3.5-27B: 16 full layers and 48 states in groups of 16; a block has 784 or 800 tokens, so that its page holds a state."""
    cache = cache_in_pages(compiled("qwen3.5-27b", "1xh100-sxm"), "vllm", 8192)
    assert cache is not None
    (states, attention) = sorted(cache.pages, key=lambda page: float(page[1]))
    assert float(states[0]) == 3 * float(attention[0])
    assert float(attention[0]) == 16 * 4096 * float(attention[1]) and float(attention[1]) % 16 == 0


def test_sglang__prices_windows_by_their_share_and_slots_apart() -> None:
    """Its own formula for DeepSeek-V4-Flash: entries and keys by token, a tenth of windows and rings, a ring of 128 rows a request."""
    cache = cache_in_pages(compiled(*V4), "sglang", 8192)
    assert cache is not None
    ((block, tokens, *_),) = cache.pages
    entries = 21 * (37440 / 256 + 132 / 4) + 20 * 1728 / 256
    windows = 43 * math.ceil(256 * 584 / 576) * 576 / 256 + 21 * 8 / 256 * (4 * 512 + 4 * 128) * 4
    assert float(block / tokens) == pytest.approx(entries + 0.1 * windows, rel=1e-12)
    assert float(cache.slots) == 2049 * 128 * 2 * 512 * 4 * 20


def test_sglang__a_short_sequence_takes_the_room_of_its_window_or_state() -> None:
    windows, states = compiled("gpt-oss-120b", "1xh100-sxm"), compiled("qwen3.5-27b", "1xh100-sxm")
    assert occupied_bytes(windows, "sglang", 1, 1) == occupied_bytes(windows, "sglang", 100, 1)
    state = 48 * 3268608
    assert float(occupied_bytes(states, "sglang", 1, 1)) == pytest.approx(state * 1.9 / 0.9, rel=0.001)
    assert float(occupied_bytes(states, "sglang", 2**17, 1)) == pytest.approx(1.9 * 65536 * 2**17)


NAMES = ("llama-3.1-8b", "gpt-oss-120b", "gemma-3-27b", "qwen3.5-27b", "deepseek-v3.2", "deepseek-v4-flash", "kimi-linear-48b-a3b-instruct")
LAYOUTS = {name: compiled(name, "1xh200-sxm", tp=1) for name in NAMES}


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(NAMES), st.sampled_from(("vllm", "sglang", "trtllm", "other")), st.integers(1, 2**20), st.integers(0, 2**14))
def test_occupied_bytes__are_no_less_than_the_cache_and_grow_with_it(name: str, engine: str, context: int, in_flight: int) -> None:
    found = LAYOUTS[name]
    held = float(occupied_bytes(found, engine, context, in_flight))
    exact = float(occupied_bytes(found, "none", context, in_flight))
    if engine != "sglang":  # which holds windows by their share of all tokens
        assert held >= exact * (1 - 1e-12)
    assert float(occupied_bytes(found, engine, context + 1, in_flight)) >= held
    assert float(occupied_bytes(found, engine, context, in_flight + 1)) >= held
    if engine == "other":
        assert held == exact


def test_occupied_bytes__of_many_layouts_and_lengths_are_those_of_each() -> None:
    work, machine = work_of(model("gpt-oss-120b")), system("8xh100-sxm")
    widths, lengths = np.array([1, 2, 4, 8]), np.array([[100.0], [5000.0]])
    layout = Layout(tp=widths)
    found = compile_layout(work, machine, layout, Assumptions(), resolve(work, machine.chip, Precision()))
    together = occupied_bytes(found, "vllm", lengths, 8192)
    for row, length in enumerate(lengths[:, 0]):
        for column, tp in enumerate(widths):
            alone = occupied_bytes(compiled("gpt-oss-120b", tp=int(tp)), "vllm", length, 8192)
            assert float(together[row, column]) == pytest.approx(float(alone), rel=1e-12)


@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm"])
@pytest.mark.parametrize("name", NAMES)
def test_occupied_bytes__rest_on_sourced_numbers(name: str, engine: str) -> None:
    with record():
        value = occupied_bytes(compiled(name, "1xh200-sxm", tp=1), engine, user_input(5000, "context"), user_input(8192, "step"))
        assert not anonymous(value)


@pytest.mark.parametrize("name", ["gpt-oss-120b", "gemma-3-27b", "deepseek-v4-flash", "llama-3.1-8b"])
def test_a_sequence_that_decodes__holds_no_more_than_a_start_counts(name: str) -> None:
    """Windows keep the tokens of a whole step only while it runs: a start counts them for every sequence, users do not wait for them."""
    found = LAYOUTS[name]
    counted, held = (float(occupied_bytes(found, "vllm", 8192, tokens)) for tokens in (8192, 1))
    assert held <= counted
    assert held == pytest.approx(float(occupied_bytes(found, "none", 8192, 1)), rel=0.6)
