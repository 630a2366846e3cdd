"""A step of n prompts is n times one in every part that grows with work; latents are expanded again; index keys keep their own format."""

from __future__ import annotations

import dataclasses
import random
from typing import Any

import numpy as np
import pytest

from headway.core.schema import defaults
from headway.laws.queueing.closed_loop import with_prompts
from headway.laws.step import parts
from headway.laws.step.step import step_floor_s, step_s
from headway.models import config
from headway.models.precision import Precision
from headway.models.totals import index_bytes_per_token, kv_bytes_per_token
from headway.models.work import works
from headway.performance.assumptions import Assumptions
from headway.performance.compile import compile_layout
from headway.performance.layout import Layout, illegal, shape
from headway.serving.serve import checked_load, deployment, serve
from headway.simulation.step_time import pace_of, plain

SEED = 20261128
MODELS = ("llama-3.1-8b", "deepseek-v3", "deepseek-v3.2", "gpt-oss-120b", "qwen3-next-80b-a3b", "gemma-3-27b", "minimax-m1-80k")
DRAWS = 500


def compiled(name: str, layout: Layout, **assumed: Any) -> Any:
    taken = defaults(Assumptions, assumed)
    asked = deployment(config.model(name), "16xh200", layout, checked_load(batch=1.0, context=1000.0), assumptions=taken)
    return compile_layout(asked.work, asked.system, asked.layout, asked.assumptions, asked.formats)


def chunk(cached: float, new: float) -> float:
    """(query, key) pairs of new tokens behind cached ones."""
    return new * (cached + new / 2)


def extensive(step: Any, tokens: float, pairs: float, prompts: int) -> dict[str, float]:
    """The parts of a step that work with prompts, at peak."""
    at = with_prompts(step, prompts, 0.0)
    work = parts.place(at, 0.0, 0.0, tokens, pairs)
    return {
        "dense": float(parts.dense_compute_s(at.dense_compute, work.tokens, at.head_compute, work.sampled)),
        "experts": float(parts.expert_compute_s(at.experts, work.group_tokens)),
        "attention": float(parts.prefill_score_s(at.spans, work)),
        "expansion": float(parts.latent_expansion_s(at.spans, work)),
        "kv": float(parts.kv_traffic_s(at.spans, 0.0, at.kv_write, work)),
        "collectives": float(work.tokens),
    }


def usual(name: str) -> Layout:
    """Eight chips, with experts over all of them."""
    return Layout(tp=8, ep=8 if any(block.experts for block in works(config.model(name))) else 1)


def test_a_step_of_n_prompts__is_n_times_a_step_of_one() -> None:
    """On one rank: arithmetic, reads and writes of the cache, tokens through the head."""
    dice = random.Random(SEED)
    layouts = {name: compiled(name, usual(name)).step for name in MODELS if not illegal(usual(name), shape(works(config.model(name))))}
    assert len(layouts) > 4
    for _ in range(DRAWS):
        step = layouts[dice.choice(sorted(layouts))]
        count, new, cached = dice.randint(1, 64), int(10 ** dice.uniform(0, 4)), int(10 ** dice.uniform(0, 5)) * dice.randint(0, 1)
        one = extensive(step, float(new), chunk(cached, new), 1)
        many = extensive(step, float(new * count), chunk(cached, new) * count, count)
        for part, seconds in one.items():
            assert many[part] == pytest.approx(count * seconds, rel=1e-6, abs=1e-15), (SEED, part, count, new, cached)


def test_kv_of_many_prompts__takes_at_least_the_time_that_hbm_needs() -> None:
    """32 prompts of 16 new tokens behind 32k each: their KV is 32 times that of one (Llama-3.1-8B on an H200)."""
    step = compiled("llama-3.1-8b", Layout()).step
    seconds = extensive(step, 32 * 16.0, 32 * chunk(32768, 16), 32)["kv"]
    assert seconds >= 32 * 32768 * 131072 / 4.8e12


def test_simulated_step__counts_its_prompts_as_the_law_does() -> None:
    step = compiled("deepseek-v3", Layout(tp=8, ep=8)).step
    pace = pace_of(step, 4, 1000.0)
    flat = plain(pace.source)
    for prompts in (1, 2, 32):
        asked = (0.0, 0.0, 16.0 * prompts, prompts * chunk(32768, 16))
        assert flat(*asked, float(prompts)) == pytest.approx(float(step_s(with_prompts(step, prompts, 0.0), *asked)), rel=1e-12)


def test_cached_latents__are_expanded_again() -> None:
    """DeepSeek-V3 at 128k and a hit rate of 0.95: 2 x 512 x 128 x 256 FLOP a token and layer before the 6.5k new tokens."""
    step = compiled("deepseek-v3", Layout(tp=8, ep=8)).step
    new, cached = 6554.0, 124518.0
    found = extensive(step, new, chunk(cached, new), 1)["expansion"]
    by_hand = 61 * 2 * 512 * 128 * 256 * cached / 8 / 989.4e12
    assert found == pytest.approx(by_hand, rel=2e-3)
    whole = extensive(step, new, chunk(0, new), 1)["expansion"]
    assert whole == 0.0
    assert sum(float(span.expand) for span in compiled("deepseek-v3.2", Layout(tp=8, ep=8)).step.spans) == 0.0  # absorbed: nothing shared


def test_expansion__lengthens_the_prompt_and_not_its_floor() -> None:
    rows = []
    for factor in (1.0, 0.0):
        asked = deployment(config.model("deepseek-v3"), "8xh200", Layout(tp=8, ep=8), checked_load(batch=1.0, prompt=131072, output=100),
                      assumptions=defaults(Assumptions, {"hit_rate": 0.95}))  # fmt: skip
        step = compile_layout(asked.work, asked.system, asked.layout, asked.assumptions, asked.formats).step
        spans = tuple(dataclasses.replace(span, expand=span.expand * factor) for span in step.spans)
        rows.append(dataclasses.replace(step, spans=spans))
    asked = (0.0, 0.0, 6554.0, chunk(124518, 6554))
    ratio = float(step_s(rows[0], *asked)) / float(step_s(rows[1], *asked))
    assert 1.02 < ratio < 1.6 and float(step_floor_s(rows[0], *asked)) == float(step_floor_s(rows[1], *asked))


@pytest.mark.parametrize("kv", ["bf16", "fp8"])
def test_index_keys__have_a_format_of_their_own(kv: str) -> None:
    """vLLM keeps 128 numbers in fp8 and a 32-bit scale, whatever the format of the cache: 132 bytes a layer."""
    found = config.model("deepseek-v3.2")
    assert float(index_bytes_per_token(found)) == 61 * 132
    assert float(kv_bytes_per_token(found)) + 61 * 132 == 78_324
    row = serve(found, "8xh200", Layout(tp=8, ep=8), batch=1, context=np.array([1000.0, 2000.0]), precision=Precision(kv=kv)).rows()
    added = (row[1]["kv_bytes_chip"] - row[0]["kv_bytes_chip"]) / 1000
    assert added == pytest.approx(61 * ((1152 if kv == "bf16" else 656) + 132))
