"""Operator classes of the kernel fit (rows, law and parameters of each), and the robust fit of a law to measured times."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from headway.evidence.fit.robust import least_squares
from headway.evidence.kernels import rows
from headway.evidence.kernels.rows import KernelRows
from headway.laws.step.parts import SCAN_CHUNK, decode_attention_s, matmul_s, prefill_attention_s, scan_s

SHORT = 10e-6  # s; kernels well below it weigh little in the fit
SCALE = 0.1  # |ln(predicted/measured)| beyond which the soft-L1 loss reduces the weight of a row
Predict = Callable[..., Any]  # (parameters in order, work) -> seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelKey:
    """One parameter of a law: name, unit, start of the fit and bounds."""

    name: str
    unit: str
    start: float
    low: float
    high: float
    meaning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelEstimate:
    """Parameters of one fit in the order of their keys; `free` marks the parameters fitted here."""

    values: tuple[float, ...]
    errors: tuple[float, ...]
    free: tuple[bool, ...]
    rows: int


def fit(
    predict: Predict, rows: KernelRows, keys: tuple[KernelKey, ...], fixed: tuple[float | None, ...], weights: Any = None
) -> KernelEstimate:
    """Fit of the parameters that are not fixed: least squares of log time with a soft-L1 loss."""
    free = [index for index, value in enumerate(fixed) if value is None]
    parameters = np.array([keys[index].start if value is None else value for index, value in enumerate(fixed)])
    root = np.sqrt(_weights(rows) if weights is None else weights * _weights(rows))
    target = np.log(rows.seconds)

    def misses(point: Any) -> Any:
        trial = parameters.copy()
        trial[free] = np.exp(point)
        return root * (np.log(predict(trial, rows.work)) - target)

    bounds = (np.log([keys[index].low for index in free]), np.log([keys[index].high for index in free]))
    solution = least_squares()(misses, np.log(parameters[free]), bounds=bounds, loss="soft_l1", f_scale=SCALE, max_nfev=200)
    parameters[free] = np.exp(solution.x)
    errors = np.zeros(len(parameters))
    errors[free] = parameters[free] * _log_errors(solution.jac, misses(solution.x), rows.shape)
    return KernelEstimate(
        values=tuple(map(float, parameters)), errors=tuple(map(float, errors)), free=tuple(value is None for value in fixed), rows=len(rows)
    )


def _weights(rows: KernelRows) -> Any:
    return rows.seconds / (rows.seconds + SHORT)


def _log_errors(jacobian: Any, misses: Any, shape: Any) -> Any:
    """Standard errors of the log parameters: sandwich estimator of White (1980), clustered by shape, for a soft-L1 loss.

    `jacobian` is the one that SciPy returns, scaled by (1 + z)^(-3/4) with z the squared miss over SCALE squared.
    """
    z = (misses / SCALE) ** 2
    scores = jacobian * (misses * (1 + z) ** 0.25)[:, None]
    codes = np.unique(shape, return_inverse=True)[1]
    sums = np.stack([np.bincount(codes, weights=column) for column in scores.T], axis=1)
    inverse = np.linalg.pinv(jacobian.T @ jacobian)
    return np.sqrt(np.maximum(np.diag(inverse @ (sums.T @ sums) @ inverse), 0))


def log_misses(predict: Predict, rows: KernelRows, values: tuple[float, ...]) -> Any:
    """ln(predicted/measured) of each row."""
    return np.log(predict(np.array(values), rows.work) / rows.seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelClass:
    """An operator class of the fit: its rows, its law and its parameters."""

    name: str
    read: Callable[[Path, str], KernelRows]
    predict: Callable[[Any, Any], Any]
    keys: tuple[KernelKey, ...]
    shared: tuple[str, ...]  # parameters that all families share
    dtypes: tuple[str, ...]
    range: str
    table: str
    differs: float  # least difference in ln for a family value; smaller for classes that take more of a step
    like: str = ""  # class, fitted earlier, that lends the `borrowed` parameters
    borrowed: tuple[str, ...] = ()  # parameters taken from the class `like`
    borrowing: tuple[str, ...] = ("bf16",)  # dtypes that borrow, because their rows cannot determine these parameters
    label: str = ""  # name in the table of errors, if a class has several fits
    eager: tuple[str, ...] = ()  # dtypes timed with their launch: t0 is fitted but not written
    pooled: tuple[str, ...] = ()  # dtypes with one fit for all families


def _share(name: str, start: float, meaning: str, low: float = 0.01) -> KernelKey:
    return KernelKey(name=name, unit="", start=start, low=low, high=1.0, meaning=meaning)


def _t0(start: float, of: str) -> KernelKey:
    return KernelKey(name="t0_s", unit="s", start=start, low=1e-7, high=2e-4, meaning=f"fixed cost of {of}, replayed from a graph")


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


def _scan(p: Any, work: Any) -> Any:
    chunks, head_chunks = work
    return p[0] + scan_s(chunks * SCAN_CHUNK, head_chunks * SCAN_CHUNK, 1, p[1], p[2])


def _elementwise(p: Any, work: Any) -> Any:
    return p[0] + work[0] / p[1]


COMPUTE_MEANING = "share of the dense peak; experts reach what dense matmuls do, but for activations"
MEMORY_MEANING = "share of HBM bandwidth, weights streamed"
ACTIVATION_MEANING = "share of HBM bandwidth, 16-bit activations in and out (quantising them included)"
BLOCK = KernelKey(name="block_bytes", unit="byte", start=4e4, low=1e2, high=1e7,
            meaning="cost of a pair of sequence and KV head, as bytes the HBM would move meanwhile")  # fmt: skip
PAD = KernelKey(name="pad_tokens", unit="token", start=400.0, low=1.0, high=1e4,
            meaning="tokens attended to in vain by each query of a prompt")  # fmt: skip
NARROW = KernelKey(name="narrow", unit="", start=0.3, low=0.01, high=2.0,
             meaning="heads of d < 128 take (128/d)^narrow times the time per FLOP")  # fmt: skip
CHUNK = KernelKey(name="chunk_s", unit="s", start=3e-6, low=1e-7, high=1e-4,
            meaning="one chunk of 64 tokens, which waits for the one before")  # fmt: skip
HEADS = KernelKey(name="heads", unit="", start=64.0, low=1.0, high=1e3, meaning="heads of all sequences that are scanned at once")
ATTENTION_MEANING = "share of the bf16 peak, whatever the KV's format"


def _matmul_keys(start: float, of: str) -> tuple[KernelKey, ...]:
    return (_t0(start, of), _share("compute", 0.7, COMPUTE_MEANING), _share("memory", 0.8, MEMORY_MEANING),
            _share("activation", 0.5, ACTIVATION_MEANING), _norm())  # fmt: skip


def _decode_keys(meaning: str) -> tuple[KernelKey, ...]:
    return (_t0(1e-5, "attention of new tokens, a layer"), _share("compute", 0.1, ATTENTION_MEANING), _share("memory", 0.8, meaning), BLOCK)


BACKENDS = ("trtllm", "vllm", "sglang")
EXPERT_FORMS = ("bf16", "fp8", "nvfp4", "weight_only", "mxfp4", "mxfp4_a8")
EXPERT_DTYPES = (
    EXPERT_FORMS
    + tuple(f"{form}.{backend}" for form in EXPERT_FORMS for backend in BACKENDS if (form, backend) != ("weight_only", "trtllm"))
    + ("fp8.deepep",)
)  # every backend's own; no int4 experts of TensorRT-LLM were measured
CLASSES = (
    KernelClass(
        name="gemm", read=rows.gemm, predict=_matmul, keys=_matmul_keys(5e-6, "a matmul"), shared=("norm",),
        dtypes=("bf16", "fp8", "nvfp4", "weight_only"), range="m 1..16384, n and k from 1024", table="gemm", differs=0.04,
        eager=("weight_only",),
    ),
    KernelClass(
        name="moe", read=rows.moe, predict=_matmul, keys=_matmul_keys(2e-5, "routing, permuting and finalising a layer"),
        shared=("norm",), dtypes=EXPERT_DTYPES, range="gated, 256 and more columns of an expert a rank",
        table="moe", differs=0.15, like="gemm", borrowed=("compute",), borrowing=("bf16", "nvfp4", "weight_only"),
    ),
    KernelClass(
        name="decode", read=rows.decode, predict=_decode, keys=_decode_keys("share of HBM bandwidth, KV streamed"),
        shared=("compute",), dtypes=("bf16", "fp8"), table="attention_decode", differs=0.04,
        range="heads of 64..256, context from 128, 1..64 heads a KV head, KV larger than the cache",
    ),
    KernelClass(
        name="mla_decode", read=rows.mla_decode, predict=_decode, keys=_decode_keys("share of HBM bandwidth, latents streamed"),
        shared=("compute", "block_bytes"), dtypes=("bf16", "fp8"), table="mla_decode", differs=0.1,
        range="DeepSeek's latents of 576, context from 128, latents larger than the cache",
    ),
    KernelClass(
        name="prefill", read=rows.prefill, predict=_prefill,
        keys=(_t0(1e-5, "attention of prompts, a layer"), _share("compute", 0.6, ATTENTION_MEANING), PAD, NARROW),
        shared=("t0_s", "narrow"), dtypes=("bf16",), table="attention_prefill", differs=0.05,
        range="heads of 64..256, prompts from 64, 16384 and more tokens times heads",
    ),
    KernelClass(
        name="mla_prefill", read=rows.mla_prefill, predict=_mla_prefill,
        keys=(_t0(1e-5, "attention of prompts, a layer"), _share("compute", 0.6, ATTENTION_MEANING), PAD), shared=(), dtypes=("bf16",),
        table="mla_prefill", differs=0.25, range="DeepSeek's heads of 192 and 128, prompts from 64, 16384 and more tokens times heads",
    ),
    KernelClass(
        name="scan", read=rows.scan, predict=_scan, keys=(_t0(2e-5, "the scan of prompts, a layer"), CHUNK, HEADS),
        shared=("t0_s", "chunk_s", "heads"), dtypes=("bf16", *(f"bf16.{backend}" for backend in BACKENDS)), table="linear_attention",
        differs=0.1, like="prefill", borrowed=("t0_s",), range="gated delta rule, heads of 128, 2..64 of them, sequences from 64",
    ),
    KernelClass(
        name="elementwise", read=rows.elementwise, predict=_elementwise,
        keys=(_t0(2e-6, "an elementwise kernel"), _share("memory", 0.7, "share of HBM bandwidth, norms, activations, casts")),
        shared=("t0_s", "memory"), dtypes=("bf16",), range="activations, rotary, residuals, casts to fp8", table="elementwise", differs=0.1,
    ),
)  # fmt: skip
