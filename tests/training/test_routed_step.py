"""Terms of a step that routed experts, small micro-batches and other clocks add, against values by hand and limits."""

from __future__ import annotations

from typing import Any

import pytest

import headway as hw
from headway.core.errors import BadValue, HeadwayError
from headway.core.schema import defaults
from headway.hardware.chip import chip
from headway.training.achieved import from_table, training_efficiencies
from headway.training.recipe import Recipe, binary_text

QWEN: dict[str, Any] = {"seq": 4096, "global_batch": 512 * 4096, "tp": 1, "cp": 1, "pp": 1, "ep": 8, "dp": 8, "zero": 1}


def row(name: str, machine: str, **more: Any) -> Any:
    return next(iter(hw.train(name, machine, **{**QWEN, "recompute": "none", **more})))


def step(name: str = "qwen3-30b-a3b", machine: str = "8xb200-sxm", **more: Any) -> float:
    return float(row(name, machine, **more)["step_s"])


def test_routed_layers__host_waits_once_a_layer_and_micro_batch() -> None:
    """48 routed layers, 64 micro-batches of one sequence or 16 of four: 48 x 64 and 48 x 16 waits of 5 ms."""
    for micro, count in ((1, 64), (4, 16)):
        launched, captured = step(micro_batch=micro, sync=5e-3, captured=0), step(micro_batch=micro, captured=1)
        assert launched - captured == pytest.approx(48 * count * 5e-3, rel=1e-6)


# Kernels that Megatron-LM runs one by one where experts have biases and clamps, as (bytes read, bytes written) per element.
BIAS = ((0, 4), (2 + 4, 4), (4, 4), (4, 2))  # share x bias in 32 bits, its sum with the output, experts joined, back to 16 bits
BIAS_BACK = ((2, 4), (4, 2), (4, 4), (4, 0), (4, 4), (4, 0), (2, 2))  # 32 bits; 16 bits; gradients of bias and share, each summed; joined
CLAMP, CLAMP_BACK = ((4, 4), (4, 4)), ((4 + 4, 4), (4, 4))  # of both halves of the gated FFN: clamped, joined


def test_biased_experts__kernels_that_are_not_fused() -> None:
    """gpt-oss-120b: 36 layers, 4 experts of 2,880 x 2,880 a token; in one graph they are fused."""
    run = {"name": "gpt-oss-120b", "machine": "8xb300-sxm", "micro_batch": 4, "sync": 0, "eff_memory": 1, "hidden_ep": 1}
    moved = sum(map(sum, (*BIAS, *BIAS_BACK, *CLAMP, *CLAMP_BACK)))
    tokens = 512 * 4096 / 8
    added = step(**run, captured=0) - step(**{key: value for key, value in run.items() if key != "sync"}, captured=1)
    assert added == pytest.approx(tokens * 36 * 4 * 2880 * moved / float(chip("b300_sxm").need("hbm_bw")), rel=1e-6)
    assert step(micro_batch=4, sync=0, captured=0) == pytest.approx(step(micro_batch=4, captured=1), rel=1e-9)  # Qwen3 has neither


def test_logits__through_memory_once_written_once_read() -> None:
    """PyTorch's loss keeps 14 bytes of a logit, Megatron's 6, one kernel 4; 128,256 logits a token."""
    run = {"name": "llama-3.1-8b", "machine": "8xh200-sxm", "ep": 1, "micro_batch": 1, "zero": 3, "eff_memory": 1}
    for kernels, kept in (("eager", 14), ("fused", 6)):
        added = row(**run, kernels=kernels)["head_s"] - row(**run, kernels=kernels, fused_loss=1)["head_s"]
        assert added == pytest.approx(512 * 4096 / 8 * 128_256 * 2 * (kept - 4) / 4.8e12, rel=1e-6)


def test_selective_recomputation__repeats_the_matmuls_whose_outputs_it_does_not_keep() -> None:
    """PyTorch's keeps every second matmul: a half of a forward pass on top of three. Megatron's repeats no matmul."""
    run = {"name": "llama-3.1-8b", "machine": "8xh200-sxm", "ep": 1, "micro_batch": 1, "zero": 3}
    for kernels, ratio in (("eager", 3.5 / 3), ("fused", 1.0)):
        none, some = (row(**run, kernels=kernels, recompute=mode)["compute_s"] for mode in ("none", "selective"))
        assert some / none == pytest.approx(ratio, rel=1e-9)


def test_dense_layers__never_wait_for_the_host() -> None:
    dense = {"name": "llama-3.1-8b", "machine": "8xh100-sxm", "ep": 1, "micro_batch": 1}
    assert step(**dense, captured=0) == step(**dense, captured=1)
    with pytest.raises(BadValue, match="changes no number"):
        step(**dense, captured=0, sync=5e-3)


def test_small_micro_batches__weights_and_gradients_bind() -> None:
    """With matmuls at their peak and no activations moved, a step is at least 12 bytes a parameter and micro-batch through HBM."""
    free = {"traffic": 0, "launch": 0, "eff_compute": 1, "eff_head": 1, "eff_attention": 1, "eff_memory": 1, "matmul_norm": 100}
    run = {"seq": 64, "global_batch": 64 * 64, "dp": 1, "ep": 1, "micro_batch": 1}
    found = step("llama-3.1-8b", "h200-sxm", **run, **free)
    layers = 32 * (2 * 4096 * (4096 + 1024) + 3 * 4096 * 14336)
    assert found >= 64 * 12 * layers / 4.8e12
    assert found == pytest.approx(64 * 12 * layers / 4.8e12, rel=0.1)


def test_achieved_rates__follow_the_power_of_a_chip_up_and_down() -> None:
    """GB300 has 0.56 W per TFLOP/s where B200 has 0.44; the H100 of 500 W five sevenths of the usual one."""
    table = training_efficiencies()
    exponent = float(table.kernel("training", "other", "bf16", "power"))
    for name, usual, ratio in (("gb300", "b200_sxm", 1400 / 2500 * 2250 / 1000), ("h100_sxm_96_hbm2e", "h100_sxm", 500 / 700)):
        one, other = (float(from_table(table, chip(which), defaults(Recipe, {"dtype": "fp8"})).eff_compute) for which in (name, usual))
        assert one / other == pytest.approx(ratio**exponent, rel=2e-3)


def test_shares__no_share_leaves_what_kernels_allow() -> None:
    """Experts reach less than dense matmuls, and no format more than the best measured kernels (0.9 in 16 bits, 0.75 in 8, 0.6 in 4)."""
    most = {"bf16": 0.92, "fp8": 0.76, "mxfp8": 0.76, "nvfp4": 0.6}
    for name in ("a100_sxm_80", "h100_sxm", "b200_sxm", "tpu_v5p"):
        for dtype, limit in most.items():
            found = from_table(training_efficiencies(), chip(name), defaults(Recipe, {"dtype": dtype}))
            assert 0.1 < float(found.eff_expert) < float(found.eff_compute) < limit, (name, dtype)
            assert float(found.eff_recurrence) < 0.1 < float(found.eff_attention)


def test_recurrences__slower_than_attention_at_equal_flop() -> None:
    """Scans reach a few hundredths of the peak: a hybrid at the share of attention would be far too fast."""
    run = {"name": "nemotron-nano-9b-v2", "machine": "8xh100-sxm", "ep": 1, "dp": 8, "micro_batch": 1, "zero": 3}
    assert step(**run) > 1.1 * step(**run, eff_recurrence=0.3)


def test_sequence_length__k_is_binary_in_training() -> None:
    assert binary_text("4k,8k") == "4Ki,8Ki" and binary_text("16Mi") == "16Mi" and binary_text("8192") == "8192"
    row = next(iter(hw.train("llama-3.1-8b", "8xh100-sxm", seq="8k", global_batch="1M")))
    assert (row["seq"], row["global_batch"]) == (8192, 1_048_576)


def test_search__short_sequences_are_not_split() -> None:
    rows = list(hw.train("llama-3.1-405b", "16384xh100-sxm", seq="8k", global_batch="16M"))
    assert all(row["cp"] == 1 and row["recompute"] != "full" for row in rows)
    assert any(row["cp"] > 1 for row in hw.train("llama-3.1-405b", "1024xh100-sxm", seq="128k", global_batch="16M"))


def test_matmul_rate__replaces_the_fitted_share() -> None:
    run = {"name": "llama-3.1-8b", "machine": "8xh100-sxm", "ep": 1, "micro_batch": 1, "dp": 8, "zero": 3}
    assert step(**run, matmul_rate="600TF") == pytest.approx(step(**run, eff_compute=600e12 / 989.4e12), rel=1e-9)
    with pytest.raises(HeadwayError, match="at most the bf16 peak"):
        step(**run, matmul_rate="2PF")


def test_block_formats__need_a_chip_that_multiplies_in_them() -> None:
    with pytest.raises(HeadwayError, match="nvfp4"):
        hw.train("llama-3.1-8b", "8xh100-sxm", seq=4096, dtype="nvfp4")
    assert step("llama-3.1-8b", ep=1, micro_batch=1, dtype="nvfp4") < step("llama-3.1-8b", ep=1, micro_batch=1, dtype="mxfp8")
