"""Measured tables as work at peak: counted by hand on a few rows, and what is left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headway.core.errors import BadFile
from headway.evidence.kernels import rows as kernel_work
from headway.evidence.kernels.classes import all_reduces, exchanges
from headway.evidence.kernels.efficiency import fit_kernels
from headway.evidence.kernels.rows import family, per_chip

pytest.importorskip("pyarrow")
PEAK, PEAK_FP8, BANDWIDTH = 989.4e12, 1978.9e12, 3350e9  # of an H100 SXM


def written(folder: Path, name: str, rows: list[dict[str, Any]], **common: Any) -> Path:
    import pyarrow
    from pyarrow import parquet

    parquet.write_table(
        pyarrow.Table.from_pylist([{"chip": "h100_sxm", "flag": 0} | common | row for row in rows]), folder / f"{name}.parquet"
    )
    return folder


def test_matmul_work__by_hand(tmp_path: Path) -> None:
    case = {"backend": "trtllm", "dtype": "bfloat16", "m": 16, "n": 4096, "k": 8192, "latency_s": 3e-5}
    rows = [
        case,
        case | {"backend": "sglang", "latency_s": 2.5e-5},  # faster: this one is kept
        case | {"backend": "vidur", "latency_s": 1e-5},  # eager
        case | {"m": 32, "flag": 4},  # above the bandwidth
        case | {"m": 64, "n": 512},  # narrower than a served model's
        case | {"m": 128, "dtype": "fp8"},
    ]
    found = kernel_work.gemm(written(tmp_path, "gemm", rows), "bf16")
    assert found.seconds.tolist() == [2.5e-5]
    assert found.work[0][0] == pytest.approx(2 * 16 * 4096 * 8192 / PEAK)
    assert found.work[1][0] == pytest.approx(2 * 4096 * 8192 / BANDWIDTH)
    assert found.work[2][0] == pytest.approx(2 * 16 * (8192 + 4096) / BANDWIDTH)
    fp8 = kernel_work.gemm(tmp_path, "fp8")
    assert fp8.work[0][0] == pytest.approx(2 * 128 * 4096 * 8192 / PEAK_FP8)
    assert fp8.work[1][0] == pytest.approx(4096 * 8192 / BANDWIDTH)


def test_expert_work__by_hand(tmp_path: Path) -> None:
    case = {
        "backend": "trtllm", "kernel": "x", "dtype": "fp8_block", "level": "fused_moe", "distribution": "balanced", "hidden": 7168,
        "inter": 2048, "n_experts": 256, "topk": 8, "tp": 2, "ep": 8, "tokens": 16, "n_mats": 3, "latency_s": 1e-4,
    }  # fmt: skip
    rows = [case, case | {"tokens": 32, "tp": 16}, case | {"tokens": 64, "level": "module"}, case | {"tokens": 128, "n_mats": 2}]
    found = kernel_work.moe(written(tmp_path, "moe", rows), "fp8")
    assert len(found) == 1
    matrices, pairs = 3 * 7168 * 1024, 16 * 8 / 8
    assert found.work[0][0] == pytest.approx(2 * pairs * matrices / PEAK_FP8)
    assert found.work[1][0] == pytest.approx(16 * matrices / BANDWIDTH)  # 16 pairs touch 16 of the 32 experts held
    assert found.work[2][0] == pytest.approx((pairs * (2 * 7168 + 3 * 1024) + 2 * 16 * 7168) * 2 / BANDWIDTH)


def test_decode_attention_work__leaves_out_rows_within_on_chip_cache(tmp_path: Path) -> None:
    case = {
        "backend": "vllm", "dtype": "bfloat16", "kv_dtype": "bfloat16", "n_heads": 8, "n_kv_heads": 1, "head_dim": 128, "window": 0,
        "kv_len": 4096, "batch": 256, "latency_s": 2e-4,
    }  # fmt: skip
    rows = [case, case | {"batch": 16}, case | {"batch": 1, "kv_len": 256}, case | {"batch": 512, "window": 128}]
    found = kernel_work.decode(written(tmp_path, "attention_decode", rows), "bf16")
    assert sorted(np.round(found.work[2] * BANDWIDTH)) == [1, 256]  # 537 MB and 0.1 MB; not 34 MB, which the cache of 50 MB holds
    large = np.argmax(found.work[1])
    assert found.work[0][large] == pytest.approx(4 * 256 * 4096 * 8 * 128 / PEAK)
    assert found.work[1][large] == pytest.approx(2 * 256 * 4096 * 128 * 2 / BANDWIDTH)


def test_prefill_attention_work__by_hand(tmp_path: Path) -> None:
    case = {
        "backend": "vllm", "dtype": "bfloat16", "kv_dtype": "bfloat16", "n_heads": 8, "n_kv_heads": 1, "head_dim": 64, "window": 0,
        "isl": 4096, "batch": 2, "latency_s": 2e-4,
    }  # fmt: skip
    found = kernel_work.prefill(written(tmp_path, "attention_prefill", [case, case | {"isl": 64}]), "bf16")
    assert found.work[0].tolist() == [pytest.approx(4 * 2 * 8 * 64 * 4096 * 4097 / 2 / PEAK)]  # 64 tokens leave most of the chip idle
    assert found.work[1].tolist() == [pytest.approx(4 * 2 * 8 * 64 * 4096 / PEAK)]
    assert found.work[2].tolist() == [2.0]


def test_moe_exchange__dispatch_plus_combine_of_one_kernel(tmp_path: Path) -> None:
    case = {
        "backend": "sglang", "impl": "deepep_low_latency", "phase": "dispatch", "n_chips": 8, "n_nodes": 1, "sms": 0, "hidden": 7168,
        "n_experts": 256, "topk": 8, "tokens_per_rank": 64, "latency_s": 2e-5,
    }  # fmt: skip
    many = case | {"impl": "deepep_normal", "sms": 24, "tokens_per_rank": 4096, "latency_s": 5e-4}
    rows = [case, case | {"phase": "combine", "latency_s": 3e-5}, many, many | {"phase": "combine", "latency_s": 9e-4}]
    rows += [case | {"tokens_per_rank": 128}]  # never combined
    rows += [many | {"tokens_per_rank": 64, "phase": phase, "latency_s": 1e-6} for phase in ("dispatch", "combine")]
    found, places = exchanges(written(tmp_path, "moe_all_to_all", rows))
    assert sorted(found.seconds) == [pytest.approx(5e-5), pytest.approx(1.4e-3)]
    assert [place.members for place in places] == [8]
    assert places[0].message == pytest.approx(7168 * (1.03125 + 2) / 2)


def test_all_reduce__only_rows_launched_from_a_graph(tmp_path: Path) -> None:
    case = {"backend": "nccl", "mode": "nccl_tests", "op": "all_reduce", "n_chips": 8, "n_nodes": 1, "bytes": 65536, "latency_s": 2e-5}
    rows = [case, case | {"mode": "cuda_graph", "latency_s": 5e-6}, case | {"mode": "eager", "latency_s": 1e-6}]
    found, places = all_reduces(written(tmp_path, "collectives", rows))
    assert found.seconds.tolist() == [5e-6]
    assert places[0].fabric.up == 450e9
    assert places[0].fabric.in_switch


def test_chip_family__by_name_with_catalogue_facts() -> None:
    assert [family(name) for name in ("a100_sxm_80", "h200_sxm", "b200_sxm", "mi300x")] == ["ampere", "hopper", "blackwell", "other"]
    assert per_chip(np.array(["h100_sxm", "h100_sxm"]), "hbm_bw").tolist() == [BANDWIDTH, BANDWIDTH]


def test_fit_kernels__folder_without_tables_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="No such file"):
        fit_kernels(tmp_path)


def test_expert_rows__are_of_kernels_that_the_engine_selects(tmp_path: Path) -> None:
    """SGLang runs OpenAI's Triton kernels for gpt-oss on Hopper (server_args.py): its fused kernel, a fifth as fast, counts for nobody."""
    case = {
        "backend": "vllm", "kernel": "vllm_gptossmxfp4moe_triton", "dtype": "w4a16_mxfp4", "level": "fused_moe", "distribution": "balanced",
        "hidden": 2880, "inter": 2880, "n_experts": 128, "topk": 4, "tp": 1, "ep": 1, "tokens": 16, "n_mats": 3, "latency_s": 3.7e-4,
    }  # fmt: skip
    marlin, fused = case | {"kernel": "vllm_marlin", "latency_s": 1e-4}, case | {"backend": "sglang", "kernel": "sglang_fused_moe_triton"}
    folder = written(tmp_path, "moe", [case, marlin, fused | {"latency_s": 1e-4}, case | {"ep": 8, "latency_s": 9e-5}])
    assert kernel_work.moe(folder, "mxfp4.vllm").seconds.tolist() == [3.7e-4]
    assert kernel_work.moe(folder, "mxfp4").seconds.tolist() == [3.7e-4]
