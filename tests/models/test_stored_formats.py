"""Bytes of weights and caches by format: published sizes of GGUF files, groups of integers, side files of a config."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from headway.core.errors import UnsupportedModel
from headway.models import totals
from headway.models.config import from_data, model
from headway.models.precision import WEIGHTS, formats
from headway.models.stored import gguf_bytes, is_gguf, stored_formats
from headway.models.totals import stored_bytes
from headway.models.work import work_of
from support.command import Cli
from support.paths import DATA, SOURCE

FILES = list(csv.DictReader((DATA / "gguf_sizes.csv").read_text().splitlines()))


@pytest.mark.parametrize("row", FILES, ids=[f"{row['model']}-{row['file']}" for row in FILES])
def test_gguf__published_size_of_the_file(row: dict[str, str]) -> None:
    """Within 0.5 % of what the repository states; the file also holds its vocabulary, some 10 MB."""
    assert float(stored_bytes(model(row["model"]), row["file"])) / 1e9 == pytest.approx(float(row["gigabytes"]), rel=0.005)


def test_gguf__ten_files_of_five_models_are_compared() -> None:
    assert len(FILES) >= 10 and len({row["model"] for row in FILES}) >= 5 and all(row["source"] for row in FILES)


def test_gguf__rows_that_a_block_does_not_divide_fall_back() -> None:
    """Rows of 896 numbers are no multiple of 256: Qwen2.5-0.5B in q4_k_m is q5_0 and q8_0 in the main.

    398 MB as published, of which some 6 MB are the vocabulary; without falling back they were 320.
    """
    assert float(stored_bytes(model("qwen2.5-0.5b"), "q4_k_m")) / 1e6 == pytest.approx(398 - 6, rel=0.005)


def test_gguf__every_name_lies_between_its_narrowest_and_widest_type() -> None:
    for name in (name for name in WEIGHTS if is_gguf(name)):
        found = gguf_bytes(work_of(model("llama-3.1-8b")), name)
        for size in (*found.blocks[0][:2], found.embedding, found.head):
            assert 50 / 256 <= size <= 34 / 32, name
        assert stored_formats(work_of(model("llama-3.1-8b")), name).head.peak == formats()[name].peak


@pytest.mark.parametrize(("name", "low", "high"), [("llama-3.1-8b", 4.90e9, 4.95e9), ("llama-3.1-70b", 42.3e9, 42.8e9)])
def test_gguf__verbs_count_embedding_and_head_as_the_file_holds_them(cli: Cli, name: str, low: float, high: float) -> None:
    (capacity,) = cli.rows(f"capacity {name} --on 8xb200-sxm --context 8k --weights q4_k_m")
    (serve,) = cli.rows(f"serve {name} --on b200-sxm --context 8k --batch 1 --weights q4_k_m")
    assert low <= capacity["weights_bytes"] <= high and low <= serve["weights_bytes_chip"] <= high


def test_gguf__embedding_by_hand_stays(cli: Cli) -> None:
    (plain,) = cli.rows("serve llama-3.1-8b --on b200-sxm --context 8k --batch 1 --weights q4_k_m")
    (wide,) = cli.rows("serve llama-3.1-8b --on b200-sxm --context 8k --batch 1 --weights q4_k_m --embedding bf16")
    more = 128256 * 4096 * ((2 - 144 / 256) + (2 - 210 / 256))
    assert wide["weights_bytes_chip"] - plain["weights_bytes_chip"] == pytest.approx(more, rel=1e-9)


# -- groups, scales, side files -------------------------------------------------------------------------------------------------

LLAMA = json.loads((SOURCE / "data" / "models" / "meta-llama--Meta-Llama-3.1-8B.json").read_text())


def compressed(**weights: Any) -> dict[str, Any]:
    return {"quant_method": "compressed-tensors", "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}}}


@pytest.mark.parametrize(("scheme", "bits"), [
    (compressed(num_bits=4, type="float", group_size=32, scale_dtype="torch.uint8"), 4 + 8 / 32),
    (compressed(num_bits=4, type="float", group_size=16, scale_dtype="torch.float8_e4m3fn"), 4 + 8 / 16),
    (compressed(num_bits=4, type="int", group_size=128, symmetric=True), 4 + 16 / 128),
    (compressed(num_bits=4, type="int", group_size=64, symmetric=True), 4 + 16 / 64),
    (compressed(num_bits=4, type="int", group_size=32, symmetric=True), 4 + 16 / 32),
    (compressed(num_bits=4, type="int", group_size=32, symmetric=False), 4 + (16 + 4) / 32),
    (compressed(num_bits=8, type="int", strategy="channel", symmetric=True), 8),
    (compressed(num_bits=8, type="float", strategy="block", block_structure=[128, 128]), 8),
    (compressed(num_bits=8, type="float", group_size=32, scale_dtype="torch.uint8"), 8 + 8 / 32),
    ({"quant_method": "gptq", "bits": 3, "group_size": 128}, 3 + (16 + 3) / 128),
    ({"quant_method": "awq", "bits": 4, "group_size": 64}, 4 + (16 + 4) / 64),
    ({"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}, 4 + 32 / 64),
    ({"quant_method": "fp8", "weight_block_size": [128, 128]}, 8),
])  # fmt: skip
def test_scheme__bits_with_scales_and_zero_points(scheme: dict[str, Any], bits: float) -> None:
    """Weights of projections by bits, group and type of scale; embedding, head and norms in 16 bits."""
    found = from_data(LLAMA | {"quantization_config": scheme}, "x", "x")
    ends = 2 * 128256 * 4096 + 65 * 4096
    assert float(stored_bytes(found)) == pytest.approx((8030261248 - ends) * bits / 8 + 2 * ends, rel=1e-9)


def test_scheme__groups_with_targets_have_formats_of_their_own() -> None:
    scheme = {"quant_method": "compressed-tensors", "config_groups": {
        "a": {"targets": ["re:.*self_attn.*"], "weights": {"num_bits": 8, "type": "float"}},
        "b": {"targets": ["re:.*mlp.*"], "weights": {"num_bits": 4, "type": "float", "group_size": 16}},
    }}  # fmt: skip
    found = from_data(LLAMA | {"quantization_config": scheme}, "x", "x").precision
    assert (found.mixer, found.ffn, found.embedding) == ("fp8", "nvfp4", "bf16")
    layers = {f"model.layers.{layer}.{name}": {"quant_algo": kind} for layer in range(32)
              for name, kind in (("self_attn.q_proj", "FP8"), ("mlp.up_proj", "NVFP4"))}  # fmt: skip
    mixed = {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "quantized_layers": layers}
    found = from_data(LLAMA | {"quantization_config": mixed}, "x", "x").precision
    assert (found.mixer, found.ffn) == ("fp8", "nvfp4")


def test_scheme__unknown_names_what_reads_it() -> None:
    with pytest.raises(UnsupportedModel, match="quantization_config=null") as caught:
        from_data(LLAMA | {"quantization_config": {"quant_method": "unheard-of"}}, "x", "x")
    assert "src/" not in str(caught.value)


SIDE: dict[str, tuple[dict[str, Any], str]] = {
    "hf_quant_config.json": (
        {"quantization": {"quant_algo": "NVFP4", "exclude_modules": ["lm_head"], "kv_cache_quant_algo": "FP8"}}, "nvfp4",
    ),
    "quantize_config.json": ({"bits": 4, "group_size": 128, "desc_act": False}, "int4_g128"),
    "quant_config.json": ({"zero_point": True, "q_group_size": 64, "w_bit": 4, "version": "GEMM"}, "int4_g64"),
}


@pytest.mark.parametrize("name", SIDE)
def test_side_file__its_format_is_that_of_the_weights(tmp_path: Path, name: str) -> None:
    scheme, stored = SIDE[name]
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    (tmp_path / name).write_text(json.dumps(scheme))
    for path in (tmp_path, tmp_path / "config.json"):
        found = model(path)
        assert (found.precision.mixer, found.precision.ffn, found.precision.embedding) == (stored, stored, "bf16")
        assert any(name in note for note in found.notes)
    assert any("KV cache in FP8" in note for note in model(tmp_path).notes) == ("kv_cache" in json.dumps(scheme))
    own = {"quantization_config": {"quant_method": "fp8"}}
    (tmp_path / "config.json").write_text(json.dumps(LLAMA | own))
    assert model(tmp_path).precision.mixer == "fp8"


@pytest.mark.parametrize(("name", "flag"), [
    ("Llama-3.1-8B-FP8", "fp8"), ("llama-3.1-8b-nvfp4", "nvfp4"), ("Llama_AWQ", "int4_g128"), ("llama-GPTQ-Int8", "int8"),
    ("llama-8b.Q4_K_M", "q4_k_m"), ("my-int4-model", "int4_g128"),
])  # fmt: skip
def test_name__a_format_that_no_file_states_is_told(tmp_path: Path, cli: Cli, name: str, flag: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(LLAMA))
    told = [note for note in model(folder).notes if "no file states" in note]
    assert len(told) == 1 and f"--weights {flag}" in told[0]
    for verb in ("serve", "capacity", "plan", "cache"):
        load = {"plan": "--prompt 1k --output 100", "cache": "--hold 5min"}.get(verb, "--context 1k")
        assert any("no file states" in note for note in cli.json(f"{verb} {folder} --on b200-sxm {load}")["notes"]), verb
    (folder / "config.json").write_text(json.dumps(LLAMA | {"quantization_config": {"quant_method": "fp8"}}))
    assert not any("no file states" in note for note in model(folder).notes)


@pytest.mark.parametrize("name", ["llama-3.1-8b", "mint4ever", "gpt-4-bitter"])
def test_name__without_a_format_says_nothing(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(LLAMA))
    assert not any("the name says" in note for note in model(folder).notes)


def test_index__bytes_of_a_quantised_checkpoint_are_compared(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA | {"quantization_config": {"quant_method": "fp8"}}))
    right = float(stored_bytes(model(tmp_path)))
    for factor, word in ((1.001, "agree"), (1.8, "differ")):
        (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"metadata": {"total_size": int(right * factor)}}))
        assert any(f"weights {word}" in note for note in model(tmp_path).notes)


# -- caches in fewer than 16 bits -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "layer_bytes", "index_bytes"), [
    ("deepseek-v3.2", 512 + 16 + 2 * 64, 128 + 4),  # what vLLM and SGLang keep of a token and layer: latents, scales, rotary key; index key
    ("deepseek-v3", 576, 0),  # kernels of dense latent attention have one scale for the tensor
])  # fmt: skip
def test_fp8_cache__bytes_of_a_token_and_layer(cli: Cli, name: str, layer_bytes: int, index_bytes: int) -> None:
    found = model(name)
    one = formats()["fp8"].bytes
    layers = int(totals.layers(found))
    assert float(totals.kv_bytes_per_token(found, one)) == pytest.approx(layers * layer_bytes)
    assert float(totals.index_bytes_per_token(found, one)) == pytest.approx(layers * index_bytes)
    (row,) = cli.rows(f"serve {name} --on 8xh200 --dp 8 --ep 8 --kv fp8 --batch 8 --context 10000")
    assert row["kv_bytes_chip"] == pytest.approx(10_000 * layers * (layer_bytes + index_bytes))
    (split,) = cli.rows(f"capacity {name} --on 8xh200 --kv fp8 --context 10000")
    assert split["sequence_bytes"] == pytest.approx(10_000 * layers * (layer_bytes + index_bytes))


def test_fp8_cache__entries_of_deepseek_v4() -> None:
    """448 + 128 + 8 bytes for an entry of 512 numbers: 584, of which a token adds a 4th or 128th."""
    found = model("deepseek-v4-flash")
    plain, narrow = (float(totals.kv_bytes_per_token(found, formats()[name].bytes)) for name in ("bf16", "fp8"))
    assert narrow / plain == pytest.approx(584 / 1024)


def test_fp8_cache__16_bits_and_other_attention_are_as_before() -> None:
    for name in ("deepseek-v3.2", "deepseek-v4-flash"):
        found = model(name)
        assert float(totals.kv_bytes_per_token(found, formats()["fp16"].bytes)) == float(totals.kv_bytes_per_token(found))
    llama = model("llama-3.1-8b")
    assert float(totals.kv_bytes_per_token(llama, formats()["fp8"].bytes)) == float(totals.kv_bytes_per_token(llama)) / 2
