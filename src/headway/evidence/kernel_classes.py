"""The classes of operators that are fitted: which rows, which law, which parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headway.evidence import kernel_work
from headway.evidence.kernel_fit import KernelKey
from headway.evidence.kernel_rows import KernelRows
from headway.laws.kernels import decode_attention_s, matmul_s, prefill_attention_s


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelClass:
    """One class of operators."""

    name: str
    read: Callable[[Path, str], KernelRows]
    predict: Callable[[Any, Any], Any]
    keys: tuple[KernelKey, ...]
    shared: tuple[str, ...]  # what all families share
    dtypes: tuple[str, ...]
    range: str
    table: str
    differs: float  # of a logarithm, below which a family keeps the number that all share: finer where more of a step's time goes
    like: str = ""  # a class fitted before it,
    borrowed: tuple[str, ...] = ()  # what it takes from there,
    borrowing: tuple[str, ...] = ("bf16",)  # and in which dtypes: those in which its own rows do not tell it apart
    label: str = ""  # in the table of errors, where a name has several fits
    eager: tuple[str, ...] = ()  # dtypes measured with their launch: their t0 is fitted, and not stated
    pooled: tuple[str, ...] = ()  # dtypes in which families are not told apart


def _share(name: str, start: float, meaning: str, low: float = 0.01) -> KernelKey:
    return KernelKey(name=name, unit="", start=start, low=low, high=1.0, meaning=meaning)


def _t0(start: float, of: str) -> KernelKey:
    return KernelKey(name="t0", unit="s", start=start, low=1e-7, high=2e-4, meaning=f"fixed cost of {of}, replayed from a graph")


def _norm() -> KernelKey:
    return KernelKey(
        name="norm", unit="", start=2.0, low=1.0, high=20.0, meaning="how compute and weights meet: 1 a sum, inf a hard maximum"
    )


def _matmul(p: Any, work: Any) -> Any:
    compute, weights, activations = work
    return p[0] + matmul_s(compute, weights, activations, p[1], p[2], p[3], p[4])


def _decode(p: Any, work: Any) -> Any:
    compute, kv, blocks = work
    return p[0] + decode_attention_s(compute, kv, blocks, p[1], p[2], p[3])


def _prefill(p: Any, work: Any) -> Any:
    return p[0] + prefill_attention_s(work[0], work[1] * p[2], p[1]) * work[2] ** p[3]


def _mla_prefill(p: Any, work: Any) -> Any:
    return p[0] + prefill_attention_s(work[0], work[1] * p[2], p[1])


def _elementwise(p: Any, work: Any) -> Any:
    return p[0] + work[0] / p[1]


COMPUTE_MEANING = "share of the dense peak; experts reach what dense matmuls do, but for activations"
MEMORY_MEANING = "share of HBM bandwidth, weights streamed"
ACTIVATION_MEANING = "share of HBM bandwidth, 16-bit activations in and out (quantising them included)"
BLOCK = KernelKey(name="block", unit="byte", start=4e4, low=1e2, high=1e7,
            meaning="cost of a pair of sequence and KV head, as bytes the HBM would move meanwhile")  # fmt: skip
PAD = KernelKey(name="pad", unit="token", start=400.0, low=1.0, high=1e4, meaning="tokens attended to in vain by each query of a prompt")
NARROW = KernelKey(name="narrow", unit="", start=0.3, low=0.01, high=2.0,
             meaning="heads of d < 128 take (128/d)^narrow times the time per FLOP")  # fmt: skip
ATTENTION_MEANING = "share of the bf16 peak, whatever the KV's format"


def _matmul_keys(start: float, of: str) -> tuple[KernelKey, ...]:
    return (_t0(start, of), _share("compute", 0.7, COMPUTE_MEANING), _share("memory", 0.8, MEMORY_MEANING),
            _share("activation", 0.5, ACTIVATION_MEANING), _norm())  # fmt: skip


def _decode_keys(meaning: str) -> tuple[KernelKey, ...]:
    return (_t0(1e-5, "attention of new tokens, a layer"), _share("compute", 0.1, ATTENTION_MEANING), _share("memory", 0.8, meaning), BLOCK)


CLASSES = (
    KernelClass(
        name="gemm", read=kernel_work.gemm, predict=_matmul, keys=_matmul_keys(5e-6, "a matmul"), shared=("norm",),
        dtypes=("bf16", "fp8", "nvfp4", "weight_only"), range="m 1..16384, n and k from 1024", table="gemm", differs=0.04,
        eager=("weight_only",),
    ),
    KernelClass(
        name="moe", read=kernel_work.moe, predict=_matmul, keys=_matmul_keys(2e-5, "routing, permuting and finalising a layer"),
        shared=("norm",), dtypes=("bf16", "fp8", "nvfp4", "weight_only"), range="gated, 256 and more columns of an expert a rank",
        table="moe", differs=0.15, like="gemm", borrowed=("compute",),
        borrowing=("bf16", "nvfp4", "weight_only"), pooled=("weight_only",),
    ),
    KernelClass(
        name="decode", read=kernel_work.decode, predict=_decode, keys=_decode_keys("share of HBM bandwidth, KV streamed"),
        shared=("compute",), dtypes=("bf16", "fp8"), table="attention_decode", differs=0.04,
        range="heads of 64..256, context from 128, 1..64 heads a KV head, KV larger than the cache",
    ),
    KernelClass(
        name="mla_decode", read=kernel_work.mla_decode, predict=_decode, keys=_decode_keys("share of HBM bandwidth, latents streamed"),
        shared=("compute", "block"), dtypes=("bf16", "fp8"), table="mla_decode", differs=0.1,
        range="DeepSeek's latents of 576, context from 128, latents larger than the cache",
    ),
    KernelClass(
        name="prefill", read=kernel_work.prefill, predict=_prefill,
        keys=(_t0(1e-5, "attention of prompts, a layer"), _share("compute", 0.6, ATTENTION_MEANING), PAD, NARROW), shared=("t0", "narrow"),
        dtypes=("bf16",), table="attention_prefill", differs=0.05,
        range="heads of 64..256, prompts from 64, 16384 and more tokens times heads",
    ),
    KernelClass(
        name="mla_prefill", read=kernel_work.mla_prefill, predict=_mla_prefill,
        keys=(_t0(1e-5, "attention of prompts, a layer"), _share("compute", 0.6, ATTENTION_MEANING), PAD), shared=(), dtypes=("bf16",),
        table="mla_prefill", differs=0.25, range="DeepSeek's heads of 192 and 128, prompts from 64, 16384 and more tokens times heads",
    ),
    KernelClass(
        name="elementwise", read=kernel_work.elementwise, predict=_elementwise,
        keys=(_t0(2e-6, "an elementwise kernel"), _share("memory", 0.7, "share of HBM bandwidth, norms, activations, casts")),
        shared=("t0", "memory"), dtypes=("bf16",), range="activations, rotary, residuals, casts to fp8", table="elementwise", differs=0.1,
    ),
)  # fmt: skip
