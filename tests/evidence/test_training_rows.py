"""Training rows as tables state them: what is read, what is taken where they are silent, and how each source counts FLOPs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from headway.core.errors import BadFile
from headway.evidence.training.predict import row_spread
from headway.evidence.training.row import MEASURED, TrainingRow, read_training_rows
from headway.evidence.training.setup import TrainingSetup, flop_per_token, measured_speed, setup
from headway.training.achieved import training_efficiencies
from headway.training.pipeline import placement
from headway.training.step_time import step_work
from support.paths import DATA

ROWS = DATA / "training_rows.csv"
TERA = 1e12


def rows(source: str = "") -> list[TrainingRow]:
    found, bad = read_training_rows(ROWS)
    assert not bad
    return [row for row in found if source in row.source]


def made(row: TrainingRow) -> TrainingSetup:
    found = setup(row)
    assert isinstance(found, TrainingSetup), found
    return found


def asked(**said: object) -> TrainingSetup:
    base = TrainingRow(line=2, id="x", model="Llama-3.1-8B", hardware="H100", seq_len=8192, chips=8, global_batch=32)
    return made(replace(base, **said))  # type: ignore[arg-type]


# -- reading ----------------------------------------------------------------------------------------------------------------------------


def test_training_rows__bad_lines_are_listed_and_skipped(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("id,model,hardware,n_chips,tp\na,m,H100,-8,1\nb,m,H100,8,1.5\nc,,H100,8,1\nd,m,H100,8,2\ne,m,H100,8,1,9\n")
    found, bad = read_training_rows(path)
    assert [row.id for row in found] == ["d"] and found[0].tp == 2
    assert [(one.id, one.line) for one in bad] == [("a", 2), ("b", 3), ("c", 4), ("e", 6)]
    assert "n_chips: got '-8'" in bad[0].why and "whole number" in bad[1].why and "model: missing" in bad[2].why


def test_training_rows__missing_columns_are_an_error(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("name,value\na,1\n")
    with pytest.raises(BadFile, match="has no column id, model, hardware"):
        read_training_rows(path)


def test_training_rows__measurements_only_on_request() -> None:
    hidden, _ = read_training_rows(ROWS, measured=False)
    assert all(getattr(row, name) is None for row in hidden for name in MEASURED)


def test_training_setup__independent_of_measurements() -> None:
    for row in rows():
        blind = setup(replace(row, **dict.fromkeys(MEASURED)))
        seen = setup(row)
        if isinstance(seen, TrainingSetup) and isinstance(blind, TrainingSetup):
            assert (blind.flags, blind.sequences, str(blind.layout)) == (seen.flags, seen.sequences, str(seen.layout)), row.id
        else:
            assert blind == seen


# -- conventions: what each source's TFLOP/s count, by the tokens that it prints beside them --------------------------------------------


def test_flop_per_token__llm_foundry_convention() -> None:
    found = rows("llm-foundry")
    assert len(found) > 10
    for row in found:
        assert row.tokens_per_s_per_chip and row.tflops_per_chip
        assert flop_per_token(made(row)) * row.tokens_per_s_per_chip / TERA == pytest.approx(row.tflops_per_chip, rel=0.009), row.id


def test_flop_per_token__nemo_convention() -> None:
    found = [row for row in rows("nemo-24.07") if row.layers and "pretrain" in row.notes]
    assert len(found) >= 2
    for row in found:
        assert row.tokens_per_s_per_chip and row.tflops_per_chip
        assert flop_per_token(made(row)) * row.tokens_per_s_per_chip / TERA == pytest.approx(row.tflops_per_chip, rel=0.015), row.id


def test_flop_per_token__narayanan_counts_recompute() -> None:
    for row in rows("narayanan"):
        twice, once = flop_per_token(made(row)), flop_per_token(made(replace(row, source="another")))
        assert 1.30 < twice / once <= 4 / 3  # of the layers; the head is computed once


def test_training_speed__from_step_time() -> None:
    row = next(row for row in rows("korthikanti") if row.step_time_s and row.global_batch)
    speed = measured_speed(made(row))
    assert row.global_batch and row.seq_len and row.step_time_s and row.chips
    assert speed == pytest.approx(row.global_batch * row.seq_len / row.step_time_s / row.chips)


# -- what is taken where a row is silent ------------------------------------------------------------------------------------------------


def test_tpu_slice__cores_or_chips_by_generation() -> None:
    base = {"model": "Llama-2-7B", "chips": None, "global_batch": None}
    chips = {name: int(asked(hardware=f"TPU-{name}", **base).case.system.chips) for name in ("v4-128", "v5p-128", "v5e-256", "v6e-256")}
    assert chips == {"v4-128": 64, "v5p-128": 64, "v5e-256": 256, "v6e-256": 256}


def test_training_setup__stated_layout_is_kept() -> None:
    found = asked(model="Llama-3.1-70B", chips=64, tp=8, cp=1, pp=4, vpp=5, dp=2, micro_batch=1, recompute="full", sharding="ZeRO-1")
    names = ("tp", "cp", "pp", "vpp", "dp", "micro_batch", "zero")
    assert [int(getattr(found.layout, name)) for name in names] == [8, 1, 4, 5, 2, 1, 1]
    assert found.case.recipe.recompute == "full" and found.case.recipe.schedule == "interleaved"
    assert not found.open and found.flags == ()


def test_training_setup__open_layout_uses_every_chip_and_is_flagged() -> None:
    found = asked(model="Llama-3.1-70B", chips=64, global_batch=48)
    layout = found.layout
    assert layout.tp * layout.cp * layout.pp * layout.dp == 64
    assert 48 % (layout.dp * layout.micro_batch) == 0
    assert found.open and any(flag.startswith("layout not stated: tp") for flag in found.flags)


def test_training_setup__tensor_parallelism_crosses_nodes_without_cp() -> None:
    """Eight sequences of half a million tokens on 512 chips: tensor parallelism has to cross nodes (NeMo without CP: 104 TFLOP/s)."""
    row = next(row for row in rows() if row.id == "NLS-026")
    found = made(row)
    assert int(found.layout.cp) == 1 and int(found.layout.tp) > 8 and int(found.layout.dp) <= 8


def test_training_setup__context_parallelism_for_long_sequences() -> None:
    short, long = (asked(model="Llama-3.1-70B", chips=64, seq_len=seq, global_batch=16) for seq in (4096, 131072))
    assert int(short.layout.cp) == 1 and int(long.layout.cp) > 1


@pytest.mark.parametrize(
    ("hardware", "precision", "dtype", "told"),
    [
        ("H100", "fp8-linear", "fp8", ""),
        ("H100", "amp_bf16", "bf16", ""),
        ("A100-80GB", "FP8", "bf16", "format FP8: predicted as bf16"),
        ("GB300", "NVFP4", "nvfp4", ""),
        ("GB200", "MXFP8", "mxfp8", ""),
        ("H100", "MXFP8", "fp8", "format MXFP8: predicted as fp8"),
        ("H100", "fp32", "bf16", "format fp32: predicted as bf16"),
    ],
)
def test_training_setup__unsupported_format_is_flagged(hardware: str, precision: str, dtype: str, told: str) -> None:
    found = asked(hardware=hardware, precision=precision)
    assert found.case.recipe.dtype == dtype
    assert [flag for flag in found.flags if flag.startswith("format")] == ([told] if told else [])


def test_fsdp__gathers_once_a_step_in_a_pipeline() -> None:
    """Llama-3.1-405B, tp 8, pp 16, FSDP: as the paper keeps its weights gathered; 16 micro-batches do not gather sixteen times."""
    said = {"model": "Llama-3.1-405B", "chips": 16384, "tp": 8, "cp": 1, "pp": 16, "dp": 128, "micro_batch": 1, "global_batch": 2048}
    often, once = (asked(**said, sharding=sharding, recompute="none").case for sharding in ("FSDP", "ZeRO-1"))
    layouts = [asked(**said, sharding=sharding, recompute="none").layout for sharding in ("FSDP", "ZeRO-1")]
    sent = [float(step_work(placement(case, layout)).exchanges.parameters) for case, layout in zip((often, once), layouts, strict=True)]
    assert sent[0] == pytest.approx(sent[1], rel=0.01)


def test_training_setup__few_micro_batches_are_interleaved() -> None:
    """Llama-3.1-405B over 16 stages with 16 micro-batches: a plain 1F1B would idle half of the time, and 400 TFLOP/s are published."""
    said = {"model": "Llama-3.1-405B", "chips": 16384, "tp": 8, "cp": 1, "pp": 16, "dp": 128, "micro_batch": 1, "sharding": "FSDP"}
    few, many, told = asked(**said, global_batch=2048), asked(**said, global_batch=16384), asked(**said, global_batch=2048, notes="1F1B")
    assert int(few.layout.vpp) == 4 and few.case.recipe.schedule == "interleaved"
    assert any(flag.startswith("interleaving not stated: 4") for flag in few.flags)
    assert [int(one.layout.vpp) for one in (many, told)] == [1, 1]


def test_fused_attention__by_hardware_and_notes() -> None:
    def fused(**said: object) -> int:
        return int(asked(model="GPT-2", params=1.5e9, layers=48, hidden=1600, heads=25, seq_len=1024, **said).case.recipe.fused_attention)

    assert [fused(hardware=name) for name in ("V100", "TPU-v3", "A100-80GB", "TPU-v4")] == [0, 0, 1, 1]
    assert fused(hardware="A100-80GB", precision="fp16 mixed") == 0  # Megatron before 2022
    assert fused(hardware="A100-80GB", notes="no FlashAttention") == 0


def test_training_setup__whole_layers_are_recomputed_only_if_the_row_says_so() -> None:
    small, large = (asked(chips=8, sharding="FSDP", seq_len=seq, micro_batch=1, global_batch=8) for seq in (2048, 131072))
    assert small.case.recipe.recompute == "none" and large.case.recipe.recompute in ("none", "selective")
    stated = asked(chips=8, sharding="FSDP", seq_len=131072, micro_batch=1, global_batch=8, recompute="full")
    assert stated.case.recipe.recompute == "full"


def test_training_model__brackets_qualify_the_run_and_layers_cut_the_model() -> None:
    """DeepSeek-V3 has 3 dense layers of 583 M and 58 routed ones of 11.5 G parameters, 1.85 G in embedding and head."""
    whole, cut = asked(model="DeepSeek V3 (w/o MTP)", chips=64).model, asked(model="DeepSeek-V3-12layers (w/o MTP)", chips=64).model
    assert [int(block.count) for block in whole.blocks] == [3, 58]
    assert [int(block.count) for block in cut.blocks] == [3, 9]
    routed = asked(model="DeepSeek-V3-12layers", params=12 * 11.507e9 + 1.853e9, chips=64).model
    assert [int(block.count) for block in routed.blocks] == [12]


def test_training_model__unread_name_is_flagged_and_wide() -> None:
    said = {"params": 56e9, "layers": 64, "hidden": 8192, "chips": 64, "tp": 8, "pp": 1}
    known, unread = asked(model="GPT-56B", **said), asked(model="Omega-H 56B", **said)
    assert not any("plain decoder" in flag for flag in known.flags)
    assert any(flag.startswith("read as a plain decoder") for flag in unread.flags)
    table = training_efficiencies()
    assert float(row_spread(unread, table)) > float(row_spread(known, table)) > 1


def test_training_setup__software_decides_the_kernels() -> None:
    """Megatron's own FSDP has Megatron's fused kernels; PyTorch's has not."""
    fused, eager = (asked(sharding="Megatron-FSDP (group 8)", kernels=kernels) for kernels in ("megatron_fsdp", "pytorch_fsdp"))
    assert (fused.case.recipe.kernels, eager.case.recipe.kernels) == ("fused", "eager")
    assert int(fused.layout.zero) == int(eager.layout.zero) == 3


def test_training_setup__adapters_by_task_or_where_nothing_else_fits() -> None:
    stated = asked(task="lora", tp=1, pp=1)
    assert int(stated.case.recipe.trainable) == 0
    small = {
        "model": "Llama-3.1-70B",
        "hardware": "GB300",
        "chips": 8,
        "tp": 1,
        "pp": 2,
        "micro_batch": 1,
        "global_batch": 32,
        "seq_len": 4096,
    }
    guessed = asked(**small)
    assert int(guessed.case.recipe.trainable) == 0 and any("LoRA" in flag for flag in guessed.flags)
    assert int(asked(**small, task="sft").case.recipe.trainable) == 1


def test_captured_step__by_notes_date_and_format() -> None:
    said = {"model": "Qwen3_30B_a3B", "hardware": "GB200", "tp": 1, "pp": 1, "kernels": "megatron_te"}

    def whole(**more: object) -> int:
        return int(asked(**said, **more).case.recipe.captured)

    assert whole(precision="MXFP8", date="2026-06") == 1 and whole(precision="BF16", date="2026-06") == 0
    assert whole(precision="MXFP8", date="2026-04") == 0
    assert whole(precision="MXFP8", date="2026-06", notes="CUDA graphs transformer_engine (attn)") == 0


def test_flop_per_token__by_the_convention_of_the_row() -> None:
    """Llama-3.1-8B at 8,192 tokens: 6 N with N = 7.5 G without the input embedding; attention adds 12 L h s, or half of it."""
    matmul, half, full = (
        flop_per_token(asked(flop_convention=name, tp=1, pp=1, sharding="FSDP")) for name in ("6nd", "causal_half", "full")
    )
    attention = 12 * 32 * 4096 * 8192
    assert full - matmul == pytest.approx(attention, rel=1e-3) and half - matmul == pytest.approx(attention / 2, rel=1e-3)
    assert matmul == pytest.approx(6 * (8.03e9 - 0.525e9), rel=1e-3)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"model": "GPT-22B one layer"}, "one layer"),
        ({"model": "Nonsense"}, "states neither its parameters nor its layers"),
        ({"hardware": "Quantum9000"}, "no chip named"),
        ({"tp": 3, "pp": 1}, "does not divide 8 chips"),
    ],
)
def test_training_setup__reasons_without_a_prediction(said: dict[str, object], why: str) -> None:
    base = TrainingRow(line=2, id="x", model="Llama-3.1-8B", hardware="H100", seq_len=8192, chips=8)
    found = setup(replace(base, **said))  # type: ignore[arg-type]
    assert isinstance(found, str) and why in found
