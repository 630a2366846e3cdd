"""What recipes decide: copies sent to experts, parts of a layer made again or offloaded, scores that are kept, gradients of 16 bits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import headway as hw
from headway.core.errors import MissingFact
from headway.evidence.training.row import TrainingRow, read_training_rows
from headway.evidence.training.setup import TrainingSetup, setup
from support.paths import DATA

QWEN: dict[str, Any] = {"seq": 4096, "global_batch": 512 * 4096, "tp": 1, "cp": 1, "pp": 1, "ep": 8, "dp": 8, "zero": 1, "micro_batch": 1}
TOKENS, LAYERS, HIDDEN, CHOSEN, WIDTH = 4096, 48, 2048, 8, 768  # of a micro-batch; of Qwen3-30B-A3B


def row(name: str = "qwen3-30b-a3b", machine: str = "8xgb200", **more: Any) -> Any:
    return next(iter(hw.train(name, machine, **{**QWEN, "recompute": "none", **more})))


def ran(**values: Any) -> TrainingSetup:
    base = TrainingRow(
        line=2, id="x", model="Qwen3-30B-A3B", hardware="H100", seq_len=4096, chips=8, kernels="megatron_te", sharding="dist-opt"
    )
    found = setup(replace(base, **values))
    assert isinstance(found, TrainingSetup), found
    return found


# -- activations of routed layers -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dtype", "read"), [("bf16", 2), ("mxfp8", 1)])
def test_experts__keep_what_they_read_and_make(dtype: str, read: int) -> None:
    """By hand, of each of 8 experts: its input, gate and up in 16 bits, and their product, which the last matmul reads."""
    experts = CHOSEN * ((HIDDEN + WIDTH) * read + 2 * WIDTH * 2)
    mixer = (HIDDEN * (32 + 4 + 4 + 32) * 128 / HIDDEN) * 2 + 32 * 4  # queries, keys, values, outputs, and a log-sum-exp a head
    layer = experts + mixer + HIDDEN * (2 * 2 + 2 * read)  # two norms and what the blocks read
    found = row(dtype=dtype)["activations_bytes_chip"]
    assert found == pytest.approx(TOKENS * LAYERS * layer, rel=0.02)


def test_recomputation__each_mode_keeps_less_and_computes_more() -> None:
    rows = [row(recompute=mode) for mode in ("none", "selective", "ffn", "full")]
    kept = [one["activations_bytes_chip"] for one in rows]
    assert kept == sorted(kept, reverse=True) and kept[2] < 0.5 * kept[1]
    extra = [one["hfu"] / one["mfu_full"] for one in rows]  # FLOP that the hardware runs over those of the model
    assert extra[0] == pytest.approx(1) and extra[1] == pytest.approx(1) and 1 < extra[2] < extra[3]
    assert rows[2]["ep_s"] > rows[1]["ep_s"]  # tokens go to their experts again


def test_ffn_again__repeats_the_parameters_of_the_ffn() -> None:
    """Llama-3.1-8B: three matrices of 4096 x 14336 a layer run forward once more, 2 FLOP a parameter and token."""
    none, again = (row("llama-3.1-8b", "8xh100-sxm", ep=1, recompute=mode) for mode in ("none", "ffn"))
    ratio = again["hfu"] / none["hfu"] * (none["mfu_full"] / again["mfu_full"])
    layers = 32 * 3 * 4096 * 14336
    whole = 3 * (2 * (7_504_924_672 - 2 * 32 * 4096 - 4096) + 32 * 4 * 4096 * 4096)  # norms multiply nothing
    assert ratio == pytest.approx(1 + 2 * layers / whole, rel=1e-3)


def test_offloaded_layers__leave_the_chip_and_cost_what_the_link_does_not_hide() -> None:
    plain, half, everything = (row(offload_layers=layers) for layers in (0, 24, 48))
    assert half["activations_bytes_chip"] == pytest.approx(plain["activations_bytes_chip"] / 2)
    assert everything["activations_bytes_chip"] == 0
    slow = row(offload_layers=48, set="chip.host_link_bw=5GB/s")
    sent = 64 * 2 * plain["activations_bytes_chip"] / 5e9
    work = sum(plain[part] for part in ("compute_s", "attention_s", "traffic_s"))
    assert slow["traffic_s"] - plain["traffic_s"] == pytest.approx(sent - work, rel=1e-6)


def test_offloaded_layers__want_a_link_to_the_host() -> None:
    with pytest.raises(MissingFact, match="host_link_bw"):
        hw.train("llama-3.1-8b", "16xtrainium2", **{**QWEN, "ep": 1, "dp": 16}, offload_layers=8)


# -- tokens on their way to experts -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ep", [8, 64])
def test_hybrid_ep__has_two_thirds_of_a_domain_of_72(ep: int) -> None:
    """One copy for each chip with a chosen expert, there and back, forward and backward, at 0.67 of 900 GB/s; nothing hidden."""
    run: dict[str, Any] = {"ep": ep, "dp": 64, "hidden_ep": 0, "global_batch": 8 * 64 * TOKENS, "micro_batch": 8, "dispatcher": "hybridep"}
    chips = ep * (1 - (1 - 1 / ep) ** CHOSEN)  # that hold one of the chosen experts, drawn evenly
    sent = 8 * TOKENS * LAYERS * chips * (ep - 1) / ep * HIDDEN * 2 * 4
    assert row(machine="64xgb200", **run)["ep_s"] == pytest.approx(sent / (0.67 * 900e9), rel=0.15)


def test_all_to_all__sends_a_copy_to_every_expert() -> None:
    run: dict[str, Any] = {"hidden_ep": 0, "global_batch": 8 * 8 * TOKENS, "micro_batch": 8}
    copied, packed = (row(**run, dispatcher=name)["ep_s"] for name in ("alltoall", "hybridep"))
    chips = 8 * (1 - (1 - 1 / 8) ** CHOSEN)
    assert copied / packed == pytest.approx(CHOSEN / chips * 0.67 / 0.64, rel=0.15)


# -- attention without a fused kernel ---------------------------------------------------------------------------------------------------


def test_scores__are_kept_on_chips_older_than_fused_attention() -> None:
    """GPT-2 large on V100: 5 a s bytes a token and layer with dropout, which does not fit; the answer says so."""
    run = {"seq": 1024, "global_batch": 4096, "dtype": "fp16", "dropout": 1, "recompute": "none", "micro_batch": 4}
    found = hw.train("gpt2-large", "v100-sxm2-32", **run)
    first = next(iter(found))
    assert first["kind"] == "does not fit" and any("keeps its scores" in note for note in found.notes)
    assert first["activations_bytes_chip"] == pytest.approx(4096 * 36 * 1280 * (34 + 5 * 20 * 1024 / 1280), rel=0.01)
    fused = next(iter(hw.train("gpt2-large", "v100-sxm2-32", **run, fused_attention=1)))
    assert fused["kind"] == "best" and fused["step_s"] < first["step_s"]


def test_one_node__does_not_hold_qwen3_30b_with_32_bit_gradients() -> None:
    """NVIDIA/Megatron-LM issue 2762: 8 H100, ep 8, one sequence, distributed optimiser: out of memory."""
    for mode in ("none", "selective", "ffn", "full"):
        assert row(machine="8xh100-sxm", recompute=mode)["kind"] == "does not fit"


# -- rows of measured runs --------------------------------------------------------------------------------------------------------------


def test_gradients__in_16_bits_only_by_recipe() -> None:
    def gradient(**values: Any) -> tuple[float, float]:
        found = ran(**values).case
        return float(found.optimizer.gradient), float(found.recipe.bytes_gradient_wire)

    assert gradient(date="2026-08") == (4, 4)  # Megatron's default, whatever the date
    assert gradient(date="2024-01", notes="grad_reduce_in_fp32=False") == gradient(source="megatron-bridge") == (2, 2)


def test_dispatcher__by_notes_else_by_software_and_date() -> None:
    def sent(**values: Any) -> str | None:
        return ran(**values).case.recipe.dispatcher

    assert sent(notes="CUDA graphs not set, dispatcher deepep; dp derived", date="2024-01") == "deepep"
    assert sent(notes="dispatcher not set", date="2026-08") == "alltoall"
    assert [sent(date=date, hardware="GB200") for date in ("2025-06", "2025-11")] == ["alltoall", "hybridep"]
    assert [sent(date=date, hardware="H100") for date in ("2025-11", "2026-04")] == ["alltoall", "hybridep"]
    assert sent(date="2026-08", kernels="maxtext") == "alltoall"


def test_recomputation__by_the_modules_that_a_row_names() -> None:
    texts = ("selective (moe, mlp)", "selective (layernorm, moe_act)", "full", "none")
    assert [ran(recompute=text).case.recipe.recompute for text in texts] == ["ffn", "selective", "full", "none"]


@pytest.mark.parametrize(("hardware", "sequences"), [("GB300", 8), ("B300", 8), ("GB200", 4), ("B200", 4)])
def test_a_run_that_took_place__fits(hardware: str, sequences: int) -> None:
    """Megatron-Bridge's published runs of Qwen3-30B-A3B in MXFP8, without recomputation, on eight chips."""
    recipe = {"source": "megatron-bridge", "date": "2026-06", "precision": "MXFP8", "recompute": "none", "micro_batch": sequences, "ep": 8}
    assert not any("more memory" in flag for flag in ran(hardware=hardware, tp=1, pp=1, global_batch=512, **recipe).flags)


def test_llm_foundry__fits_with_a_loss_of_one_kernel() -> None:
    rows = [one for one in read_training_rows(DATA / "training_rows.csv")[0] if one.source == "llm-foundry"]
    setups = [found for found in map(setup, rows) if isinstance(found, TrainingSetup)]
    assert len(setups) > 10 and not any("more memory" in flag for one in setups for flag in one.flags)
