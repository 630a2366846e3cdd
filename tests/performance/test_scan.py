"""Scans of prompts by the gated delta rule: measured kernels, and what tensor parallelism and prompts of other lengths change."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headway.hardware.system import system
from headway.laws.step.parts import place, scan_kernels_s, scan_s
from headway.laws.step.step import step_s
from headway.models.config import model
from headway.models.precision import Precision
from headway.performance.achieved import efficiencies
from headway.performance.assumptions import Assumptions
from headway.performance.compile import compile_layout
from headway.performance.layout import Layout
from headway.serving.serve import checked_load, deployment
from support.cases import beyond_laws

BUDGET = 8192.0


def compiled(name: str, layout: Layout, engine: str = "vllm"):
    request = deployment(
        model(name), system("8xh100-sxm"), layout, checked_load(batch=1.0, context=1024.0), Precision(), Assumptions(engine=engine)
    )
    return compile_layout(request.work, request.system, layout, request.assumptions, request.formats).step


def scan(step, prompt: float) -> float:
    """Seconds of the scans of a step that is full of prompts of one length."""
    return float(scan_kernels_s(step, place(step, 0, 0.0, BUDGET, BUDGET * prompt / 2)))


# Public kernel tables (NVIDIA aiconfigurator 095f58a): vLLM's FlashInfer kernel on H100, 8,192 tokens in all, (sequences, heads): us.
MEASURED = {(1, 8): 407, (1, 64): 393, (2, 64): 209, (4, 48): 216, (8, 64): 237, (16, 24): 110}


@pytest.mark.parametrize(("sequences", "heads"), MEASURED)
def test_scan_s__measured_kernels(sequences: int, heads: int) -> None:
    t0, chunk, at_once = (float(efficiencies().kernel("scan", "hopper", "bf16.vllm", key)) for key in ("t0_s", "chunk_s", "heads"))
    seconds = t0 + scan_s(BUDGET / sequences, BUDGET, heads, chunk, at_once)
    assert seconds * 1e6 == pytest.approx(MEASURED[sequences, heads], rel=0.2)


def test_scan__one_prompt_gains_nothing_from_tensor_parallelism() -> None:
    """Qwen3.5-397B: 45 of 60 layers scan 64 value heads, of which each of 8 chips has 8."""
    whole, split = compiled("qwen3.5-397b-a17b", Layout()), compiled("qwen3.5-397b-a17b", Layout(tp=8))
    assert [(float(term.layers), float(term.heads)) for step in (whole, split) for term in step.scans] == [(45, 64), (45, 8)]
    assert scan(split, BUDGET) == scan(whole, BUDGET) == pytest.approx(45 * 128 * float(split.achieved.scan_chunk))


def test_scan__prompts_side_by_side_until_heads_wait_their_turn() -> None:
    split, whole = compiled("qwen3.5-397b-a17b", Layout(tp=8)), compiled("qwen3.5-397b-a17b", Layout())
    assert scan(split, 1024.0) == pytest.approx(scan(split, BUDGET) / 8)
    at_once = float(whole.achieved.scan_heads)
    assert scan(whole, 1024.0) == pytest.approx(scan(whole, BUDGET) * 64 / at_once)


def test_scan__a_chunk_of_a_long_prompt_is_one_sequence() -> None:
    step = compiled("qwen3.5-397b-a17b", Layout(tp=8))
    late = place(step, 0, 0.0, BUDGET, BUDGET * 100e3)
    assert float(scan_kernels_s(step, late)) == pytest.approx(scan(step, BUDGET))


def test_scan__in_the_step_of_hybrids_alone() -> None:
    step = compiled("qwen3.5-35b-a3b", Layout())
    quick = replace(step, achieved=replace(step.achieved, host_launch=0.0, host_routed=0.0))  # no host that launches meanwhile
    both = [float(step_s(part, 8, 8e3, BUDGET, BUDGET**2 / 2)) for part in (quick, replace(quick, scans=()))]
    assert both[0] - both[1] == pytest.approx(scan(step, BUDGET) * beyond_laws("prompt", "bf16", "8xh100-sxm", "vllm"))
    assert float(scan_kernels_s(step, place(step, 8, 8e3, 0.0, 0.0))) == 0
    assert compiled("llama-3.1-8b", Layout()).scans == ()
    assert compiled("nemotron-3-nano-30b-a3b", Layout()).scans == ()  # Mamba-2's states pass in parallel; its scan was not measured
