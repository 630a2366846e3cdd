"""Memory, idle time and FLOPs of training against the tables that were published for them."""

from __future__ import annotations

from typing import Any

import pytest

from headway.core.schema import defaults
from headway.laws.training.step import wall_time_share
from headway.models.config import model
from headway.training.pipeline import copies, idle, in_flight, stage
from headway.training.recipe import Recipe, TrainingLayout, optimizer
from headway.training.work import hardware_flop, model_flop, training_work
from support.training_cases import GIB, decoder, held, number

GPT3 = {"layers": 96, "hidden": 12288, "heads": 96}


def states(found: Any) -> float:
    return float(found.weights + found.gradients + found.optimizer)


# -- states ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 2, 8, 64, 1024])
@pytest.mark.parametrize(
    ("states_of", "zero", "fixed", "shared"),
    [  # bytes per parameter: fixed + shared / d (ZeRO, arXiv:1910.02054, figure 1; Megatron-LM theoretical_memory_usage.py)
        ("adam-bf16-grad", 0, 16, 0),
        ("adam-bf16-grad", 1, 4, 12),
        ("adam-bf16-grad", 2, 2, 14),
        ("adam-bf16-grad", 3, 0, 16),
        ("adam", 0, 18, 0),  # gradients in 32 bits
        ("adam", 1, 6, 12),
        ("adam-no-master", 3, 0, 10),  # How to Scale Your Model
    ],
)
def test_training_states__bytes_per_parameter_by_zero_stage(states_of: str, zero: int, fixed: float, shared: float, d: int) -> None:
    shape = decoder(4, 1024, 8)
    params = 4 * 12 * 1024**2 + 1024
    found = states(held(shape, {}, states=states_of, zero=zero, dp=d))
    assert found == pytest.approx((fixed + shared / d) * params, rel=1e-12)


def test_expert_data_degree__deepseek_v3_by_megatron() -> None:
    """n / (etp e p): of DeepSeek-V3 on 16 stages of 128 chips and 64 expert-parallel ways, 2 (Megatron-LM)."""
    layout = defaults(TrainingLayout, {"pp": 16, "ep": 64, "dp": 128})
    part = stage(training_work(model("deepseek-v3"), defaults(Recipe), number(4096, "seq")), layout, "1f1b")
    assert (float(part.data_degree), float(part.expert_data_degree), float(part.layers_per_stage)) == (128, 2, 4)


def test_training_states__gpt3_published() -> None:
    """Korthikanti et al. 2022, figure 1: 45.56 GiB at t = 8, p = 8 for the layers; the first stage has the embedding table on top."""
    found = held(model("gpt3-175b"), {}, tp=8, pp=8)
    table = 50257 * 12288 / 8 * 18 / GIB
    assert states(found) / GIB - table == pytest.approx(45.56, abs=0.03)  # biases and norms count
    layers_alone = held(decoder(**GPT3), {}, tp=8, pp=8)
    assert states(layers_alone) / GIB == pytest.approx(45.5625, abs=5e-5)


@pytest.mark.parametrize(
    ("shape", "ways", "batch", "expected"),
    [  # Korthikanti et al. 2022 (arXiv:2205.05198), table 3 and figure 1: states, activations of TP alone, and of all that they propose
        ((48, 6144, 64), {"tp": 8}, 4, (45.5625, 59.25, 9.5625)),
        ((96, 12288, 96), {"tp": 8, "pp": 8, "vpp": 3}, 1, (45.5625, 66.84, 12.35)),
        ((105, 20480, 128), {"tp": 8, "pp": 35, "vpp": 3}, 1, (31.64, 114.02, 23.08)),
        ((128, 25600, 160), {"tp": 8, "pp": 64}, 1, (32.96, 131.25, 26.56)),
    ],
)
def test_activations__four_models_of_korthikanti(
    shape: tuple[int, int, int], ways: dict[str, Any], batch: int, expected: tuple[float, ...]
) -> None:
    gpt, schedule = decoder(*shape), "interleaved" if "vpp" in ways else "1f1b"
    alone = held(gpt, {"sequence_parallel": 0, "schedule": schedule}, micro_batch=batch, **ways)
    both = held(gpt, {"sequence_parallel": 1, "recompute": "selective", "schedule": schedule}, micro_batch=batch, **ways)
    assert (states(alone) / GIB, float(alone.activations) / GIB, float(both.activations) / GIB) == pytest.approx(expected, rel=5e-4)


# -- activations ----------------------------------------------------------------------------------------------------------------


S, H, A, T = 2048, 12288, 96, 8


@pytest.mark.parametrize(
    ("recipe", "tp", "per_layer"),
    [  # Korthikanti et al. 2022, table 2, bytes of a layer
        ({"sequence_parallel": 0}, 1, S * H * (34 + 5 * A * S / H)),
        ({"sequence_parallel": 0}, T, S * H * (10 + 24 / T + 5 * A * S / (H * T))),
        ({"sequence_parallel": 1}, T, S * H * (34 / T + 5 * A * S / (H * T))),
        ({"sequence_parallel": 0, "recompute": "selective"}, T, S * H * (10 + 24 / T)),
        ({"sequence_parallel": 1, "recompute": "selective"}, T, S * H * 34 / T),
    ],
)
def test_activations__table_per_layer_of_korthikanti(recipe: dict[str, Any], tp: int, per_layer: float) -> None:
    found = held(decoder(**GPT3), recipe, tp=tp, pp=1)
    assert float(found.activations) == pytest.approx(96 * per_layer, rel=1e-12)


def test_activations__full_recompute_keeps_inputs_and_one_layer() -> None:
    whole = S * H * (34 + 5 * A * S / H)
    found = held(decoder(**GPT3), {"sequence_parallel": 0, "recompute": "full"}, tp=1)
    assert float(found.activations) == pytest.approx(96 * 2 * S * H + whole, rel=1e-12)
    shared = held(decoder(**GPT3), {"sequence_parallel": 1, "recompute": "full"}, tp=T)
    assert float(shared.activations) == pytest.approx(96 * 2 * S * H / T + whole / T, rel=1e-12)


@pytest.mark.parametrize(
    ("recipe", "tokens", "micro_batch", "chips", "gib"),
    [  # Llama-3.1-8B, compiled: torchtitan's benchmarks/llama3_h100_202412_torchtitan.md, llama3-8b_h200_202506_trainy-whitefiber.md
        ({"recompute": "selective"}, 8192, 2, 8, 77.0),
        ({"recompute": "selective"}, 8192, 2, 128, 62.0),
        ({"recompute": "full"}, 32768, 1, 8, 83.9),
        ({"recompute": "selective", "fused_loss": 1}, 8192, 2, 32, 47.96),
    ],
)
def test_memory__of_pytorch(recipe: dict[str, Any], tokens: int, micro_batch: int, chips: int, gib: float) -> None:
    asked = {"dropout": 0, "fused_attention": 1, "kernels": "eager", **recipe}
    found = held(model("llama-3.1-8b"), asked, tokens=tokens, micro_batch=micro_batch, dp=chips, zero=3)
    assert float(found.total) / GIB == pytest.approx(gib, rel=0.04)


def test_activations__divided_by_context_parallelism() -> None:
    whole = held(decoder(**GPT3), {"fused_attention": 1}, tokens=8192)
    part = held(decoder(**GPT3), {"fused_attention": 1}, tokens=2048)
    assert float(whole.activations) == pytest.approx(4 * float(part.activations))


def test_activations__swiglu_by_hand() -> None:
    """Llama-3.1-8B, no dropout, fused: 4h of norms, 2h + 2h of inputs, q, k, v, outputs, and 6f; one float per head and token."""
    h, f, kv = 4096, 14336, 2 * 8 * 128
    each = 4 * h + 4 * h + 2 * (h + kv + h) + 6 * f + 4 * 32
    found = held(model("llama-3.1-8b"), {"dropout": 0, "fused_attention": 1}, tokens=8192, pp=1)
    assert float(found.activations) == pytest.approx(32 * 8192 * each, rel=1e-3)


@pytest.mark.parametrize(
    ("schedule", "vpp", "expected"),
    [
        ("gpipe", 1, 64), ("1f1b", 1, 8), ("interleaved", 4, 8 * (1 + 7 / 32)), ("zb-h1", 1, 8), ("zb-h2", 1, 15), ("zb-v", 1, 8),
        ("dualpipe", 1, 9),
    ],
)  # fmt: skip
def test_micro_batches_in_flight__by_schedule(schedule: str, vpp: int, expected: float) -> None:
    layout = defaults(TrainingLayout, {"pp": 8, "vpp": vpp})
    assert _on_first_chip(schedule, layout, 64) == pytest.approx(expected)
    assert _on_first_chip(schedule, layout, 4) <= 4  # never more than there are
    assert int(copies(schedule, 8)) == (2 if schedule == "dualpipe" else 1)


def _on_first_chip(schedule: str, layout: TrainingLayout, count: int) -> float:
    """Micro-batches in flight on the first chip, which has the last stage of the other direction under DualPipe."""
    stages = (0, 7) if schedule == "dualpipe" else (0,)
    return sum(float(in_flight(schedule, layout, count, stage)) for stage in stages)


def test_activations__first_stage_of_1f1b_is_not_smaller() -> None:
    """1F1B: stage 0 keeps p micro-batches of L / p layers."""
    one = held(decoder(**GPT3), {}, pp=1)
    eight = held(decoder(**GPT3), {}, pp=8)
    assert float(one.activations) == pytest.approx(float(eight.activations))


@pytest.mark.parametrize(
    ("layers", "hidden", "heads", "pp", "micro_batch", "schedule", "behind", "published"),
    [  # micro-batches that the second stage keeps; GiB of Qi et al. 2023 (arXiv:2401.10241), table of peak memory
        (30, 4096, 32, 8, 3, "1f1b", 7, 39), (46, 5120, 40, 16, 1, "1f1b", 15, 32), (62, 6144, 48, 32, 1, "1f1b", 31, 43),
        (30, 4096, 32, 8, 3, "zb-h1", 8, 42), (46, 5120, 40, 16, 1, "zb-h1", 16, 33), (62, 6144, 48, 32, 1, "zb-h1", 32, 44),
    ],
)  # fmt: skip
def test_memory__second_stage_is_the_fullest_where_the_ends_have_a_layer_fewer(
    layers: int, hidden: int, heads: int, pp: int, micro_batch: int, schedule: str, behind: int, published: float
) -> None:
    """Two layers too few for full stages: the first and the last stage spare one each, and the table's embedding is small beside it."""
    full = (layers + 2) // pp
    found = held(decoder(layers, hidden, heads), {"schedule": schedule}, tokens=1024, count=128, pp=pp, micro_batch=micro_batch)
    by_hand = full * (18 * 12 * hidden**2 + behind * micro_batch * 1024 * hidden * (34 + 5 * heads * 1024 / hidden))
    assert float(found.total) == pytest.approx(by_hand, rel=1e-3)
    assert float(found.total) / GIB == pytest.approx(published, rel=0.05)


# -- idle time ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schedule", "vpp", "expected"),
    [  # p = 8, m = 24; forward, input gradients and weight gradients of 1, 1.1 and 0.9: over 24 x 3
        ("gpipe", 1, 7 / 24),
        ("1f1b", 1, 7 / 24),
        ("interleaved", 3, 7 / 72),
        ("zb-h1", 1, 7 * (1 + 1.1 - 0.9) / 72),
        ("zb-h2", 1, 7 * (1 + 1.1 - 1.8) / 72),
        ("zb-v", 1, 7 * (1 + 1.1 - 1.8) / 72),
        ("dualpipe", 1, 3 * (3 + 1.1 - 1.8) / 72),
    ],
)
def test_pipeline_bubble__by_schedule(schedule: str, vpp: int, expected: float) -> None:
    layout = defaults(TrainingLayout, {"pp": 8, "vpp": vpp})
    assert float(idle(schedule, layout, 24, 1.0, 1.1, 0.9)) == pytest.approx(expected)


def test_pipeline_bubble__1f1b_beside_the_published_share() -> None:
    """Qi et al. 2023, table 4: 0.243 at p = 8, m = 24, exposed hops and the last stage's head included; by the law 0.226."""
    layout = defaults(TrainingLayout, {"pp": 8})
    assert wall_time_share(float(idle("1f1b", layout, 24, 1.0, 1.0, 1.0))) == pytest.approx(7 / 31) == pytest.approx(0.226, abs=5e-4)


def test_pipeline_bubble__zero_bubble_schedules_with_equal_times() -> None:
    layout = defaults(TrainingLayout, {"pp": 8})
    third = float(idle("zb-h1", layout, 24, 1.0, 1.0, 1.0)) / float(idle("1f1b", layout, 24, 1.0, 1.0, 1.0))
    assert third == pytest.approx(1 / 3)
    assert float(idle("zb-h2", layout, 24, 1.0, 1.0, 1.0)) == float(idle("zb-v", layout, 24, 1.0, 1.0, 1.0)) == 0


# -- FLOPs ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("layers", "hidden", "heads", "vocab"), [(48, 6144, 64, 51200), (96, 12288, 96, 51200)])
def test_model_flop__korthikanti_and_narayanan(layers: int, hidden: int, heads: int, vocab: int) -> None:
    """72 B L s h^2 (1 + s/6h + V/12hL) a step, and 96 B s L h^2 (1 + s/6h + V/16Lh) where layers are computed twice."""
    recipe = defaults(Recipe, {"recompute": "full"})
    work = training_work(decoder(layers, hidden, heads, vocab), recipe, number(S, "seq"))
    published = 72 * layers * hidden**2 * (1 + S / (6 * hidden) + vocab / (12 * hidden * layers))
    assert float(model_flop(work, recipe, causal=False)) == pytest.approx(published, rel=1e-12)
    again = 96 * layers * hidden**2 * (1 + S / (6 * hidden) + vocab / (16 * layers * hidden))
    assert float(hardware_flop(work, recipe)) == pytest.approx(again, rel=1e-12)


@pytest.mark.parametrize(
    ("layers", "hidden", "heads", "mfu", "hfu"),
    [(48, 6144, 64, 41.5, 43.7), (96, 12288, 96, 51.4, 52.8), (105, 20480, 128, 56.0, 57.0), (128, 25600, 160, 56.3, 57.0)],
)
def test_hfu__published_with_selective_recomputation(layers: int, hidden: int, heads: int, mfu: float, hfu: float) -> None:
    """Korthikanti et al. 2022 (arXiv:2205.05198), table 5: both of their utilisations, in per cent."""
    recipe = defaults(Recipe, {"recompute": "selective", "fused_attention": 0})
    work = training_work(decoder(layers, hidden, heads, 51200), recipe, number(S, "seq"))
    assert float(hardware_flop(work, recipe) / model_flop(work, recipe, causal=False)) * mfu == pytest.approx(hfu, abs=0.1)


def test_model_flop__causal_attention_counts_half() -> None:
    recipe = defaults(Recipe)
    work = training_work(decoder(48, 6144, 64), recipe, number(S, "seq"))
    attention = 12 * 48 * 6144 * S
    matmuls = 6 * (48 * 12 * 6144**2 + 6144)
    assert float(model_flop(work, recipe, causal=False)) == pytest.approx(matmuls + attention, rel=1e-12)
    assert float(model_flop(work, recipe, causal=True)) == pytest.approx(matmuls + attention / 2, rel=1e-3)


def test_model_flop__six_per_active_parameter_of_deepseek_v3() -> None:
    """37 B active: 6 x 36.6 B (embedding look-up excluded), and 61 layers of latent attention over 2 k tokens on average."""
    recipe = defaults(Recipe)
    found = float(model_flop(training_work(model("deepseek-v3"), recipe, number(4096, "seq")), recipe, causal=True))
    attention = 3 * 61 * 2 * 2048 * 128 * (192 + 128)
    assert found == pytest.approx(6 * 36.6e9 + attention, rel=0.01)


def test_model_flop__low_rank_training_skips_weight_gradients() -> None:
    full, lora = defaults(Recipe), defaults(Recipe, {"trainable": 0.0})
    work = training_work(decoder(48, 6144, 64), full, number(S, "seq"))
    assert float(model_flop(work, lora, causal=True)) == pytest.approx(2 / 3 * float(model_flop(work, full, causal=True)))


def test_optimizer__bytes_per_parameter() -> None:
    sums = {name: float(one.weight + one.gradient + one.states) for name in ("adam", "adam-bf16-grad", "adam-no-master", "muon")
            for one in (optimizer(name),)}  # fmt: skip
    assert sums == {"adam": 18, "adam-bf16-grad": 16, "adam-no-master": 10, "muon": 14}
