"""Operator classes of the kernel fit, with rows, law and parameters of each, collectives among them; robust fit of a law to measured times.

Collectives are timed by the cost lines to which a layout's collectives compile.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from headway.core.quantity import known
from headway.evidence.fit.result import FittedNumbers
from headway.evidence.fit.statistics import least_squares
from headway.evidence.kernels import rows
from headway.evidence.kernels.rows import Column, KernelRows, KernelTable, family, fastest, per_chip, shape_codes, table
from headway.laws.collectives.cost import collective_term_s
from headway.laws.step.parts import SCAN_CHUNK, decode_attention_s, matmul_s, prefill_attention_s, scan_s
from headway.performance.collectives import Fabric, LinkCosts, RoutedLayer, all_reduce_term, exchange_term, group
from headway.performance.expert_kernels import BACKENDS
from headway.performance.layout import Layout

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
    predict: Predict, rows: KernelRows, keys: tuple[KernelKey, ...], fixed: tuple[float | None, ...], weights: Column | None = None
) -> KernelEstimate:
    """Fit of the parameters that are not fixed: least squares of log time with a soft-L1 loss.

    Standard errors are those of the log parameters: sandwich estimator of White (1980), clustered by shape, for a soft-L1 loss.
    """
    free = [index for index, value in enumerate(fixed) if value is None]
    parameters = np.array([keys[index].start if value is None else value for index, value in enumerate(fixed)])
    shares = rows.seconds / (rows.seconds + SHORT)
    root = np.sqrt(shares if weights is None else weights * shares)
    target = np.log(rows.seconds)

    def misses(point: Column) -> Any:
        trial = parameters.copy()
        trial[free] = np.exp(point)
        return root * (np.log(predict(trial, rows.work)) - target)

    bounds = (np.log([keys[index].low for index in free]), np.log([keys[index].high for index in free]))
    solution = least_squares()(misses, np.log(parameters[free]), bounds=bounds, loss="soft_l1", f_scale=SCALE, max_nfev=200)
    jacobian, rest = solution.jac, misses(solution.x)  # SciPy scales the first by (1 + z)^(-3/4), z the squared miss over SCALE squared
    scores = jacobian * (rest * (1 + (rest / SCALE) ** 2) ** 0.25)[:, None]
    codes = np.unique(rows.shape, return_inverse=True)[1]
    sums = np.stack([np.bincount(codes, weights=column) for column in scores.T], axis=1)
    inverse = np.linalg.pinv(jacobian.T @ jacobian)
    errors = np.zeros(len(parameters))
    parameters[free] = np.exp(solution.x)
    errors[free] = parameters[free] * np.sqrt(np.maximum(np.diag(inverse @ (sums.T @ sums) @ inverse), 0))
    return KernelEstimate(
        values=tuple(map(float, parameters)), errors=tuple(map(float, errors)), free=tuple(value is None for value in fixed), rows=len(rows)
    )


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


def _matmul(p: Column, work: tuple[Column, ...]) -> Any:
    compute, weights, activations = work
    return p[0] + matmul_s(compute, weights, activations, p[1], p[2], p[3], p[4])


def _decode(p: Column, work: tuple[Column, ...]) -> Any:
    compute, kv, blocks = work
    return p[0] + decode_attention_s(compute, kv, blocks, kv / blocks / p[4], p[1], p[2], p[3])


def _prefill(p: Column, work: tuple[Column, ...]) -> Any:
    return p[0] + prefill_attention_s(work[0], work[1] * p[2], p[1]) * work[2] ** p[3]


def _mla_prefill(p: Column, work: tuple[Column, ...]) -> Any:
    return p[0] + prefill_attention_s(work[0], work[1] * p[2], p[1])


def _scan(p: Column, work: tuple[Column, ...]) -> Any:
    chunks, head_chunks = work
    return p[0] + scan_s(chunks * SCAN_CHUNK, head_chunks * SCAN_CHUNK, 1, p[1], p[2])


def _elementwise(p: Column, work: tuple[Column, ...]) -> Any:
    return p[0] + work[0] / p[1]


COMPUTE_MEANING = "share of the dense peak; experts reach what dense matmuls do, but for activations"
MEMORY_MEANING = "share of HBM bandwidth, weights streamed"
ACTIVATION_MEANING = "share of HBM bandwidth, 16-bit activations in and out (quantising them included)"
NORM = KernelKey(name="norm", unit="", start=2.0, low=1.0, high=20.0, meaning="how compute and weights meet: 1 a sum, inf a hard maximum")
BLOCK = KernelKey(name="block_bytes", unit="byte", start=4e4, low=1e2, high=1e7,
            meaning="cost of a pair of sequence and KV head, as bytes the HBM would move meanwhile")  # fmt: skip
PAD = KernelKey(name="pad_tokens", unit="token", start=400.0, low=1.0, high=1e4,
            meaning="tokens attended to in vain by each query of a prompt")  # fmt: skip
NARROW = KernelKey(name="narrow", unit="", start=0.3, low=0.01, high=2.0,
             meaning="heads of d < 128 take (128/d)^narrow times the time per FLOP")  # fmt: skip
STREAM = KernelKey(name="stream_bandwidth", unit="byte/s", start=1e13, low=1e11, high=1e16,
            meaning="bandwidth at which the cache of one KV head of one sequence is read, beside what all share")  # fmt: skip
CHUNK = KernelKey(name="chunk_s", unit="s", start=3e-6, low=1e-7, high=1e-4,
            meaning="one chunk of 64 tokens, which waits for the one before")  # fmt: skip
HEADS = KernelKey(name="heads", unit="", start=64.0, low=1.0, high=1e3, meaning="heads of all sequences that are scanned at once")
ATTENTION_MEANING = "share of the bf16 peak, whatever the KV's format"


def _matmul_keys(start: float, of: str) -> tuple[KernelKey, ...]:
    return (_t0(start, of), _share("compute", 0.7, COMPUTE_MEANING), _share("memory", 0.8, MEMORY_MEANING),
            _share("activation", 0.5, ACTIVATION_MEANING), NORM)  # fmt: skip


def _decode_keys(meaning: str) -> tuple[KernelKey, ...]:
    shares = (_share("compute", 0.1, ATTENTION_MEANING), _share("memory", 0.8, meaning))
    return (_t0(1e-5, "attention of new tokens, a layer"), *shares, BLOCK, STREAM)


EXPERT_FORMS = ("bf16", "fp8", "fp8_tensor", "nvfp4", "weight_only", "mxfp4", "mxfp4_a8")
UNMEASURED = (("weight_only", "trtllm"), ("fp8_tensor", "sglang"))
EXPERT_DTYPES = (
    EXPERT_FORMS
    + tuple(f"{form}.{backend}" for form in EXPERT_FORMS for backend in BACKENDS if (form, backend) not in UNMEASURED)
    + ("fp8.deepep",)
)  # every backend's own
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
        shared=("compute", "stream_bandwidth"), dtypes=("bf16", "fp8"), table="attention_decode", differs=0.04,
        range="heads of 64..256, context from 128, 1..64 heads a KV head, KV larger than the cache",
    ),
    KernelClass(
        name="mla_decode", read=rows.mla_decode, predict=_decode, keys=_decode_keys("share of HBM bandwidth, latents streamed"),
        shared=("compute", "block_bytes", "stream_bandwidth"), dtypes=("bf16", "fp8"), table="mla_decode", differs=0.1,
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


DOMAIN = 8  # chips in the scale-up domain of every measured machine
SUMS = ("hopper", "blackwell")  # families whose switches reduce (in-switch all-reduce)
PAIRED, SHORT_MESSAGE = "pairwise_nvlink_4per_node", 128 << 10  # chips whose pairs reach each other over PCIe; bytes
EAGER = ("eager", "eager_1us_resolution")
DISPATCHED, COMBINED = 1 + 4 / 128, 2.0  # bytes per element: FP8 with a scale for each tile of 128, and BF16
FEW_TOKENS = 512  # largest tokens per chip for which an engine uses the low-latency kernels
MOST_SMS = 24  # SMs that DeepEP's high-throughput kernels used


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkRows:
    """Rows that share fabric, group and model, so one CollectiveTerm."""

    fabric: Fabric
    members: int
    routed: RoutedLayer | None
    message: float  # bytes per token of a chip
    rows: Column
    tokens: Column


def all_reduces(folder: Path) -> tuple[KernelRows, tuple[LinkRows, ...]]:
    """Fastest all-reduce of each size inside a machine, launched from a CUDA graph; a token counts as one byte."""
    rows = table(folder, "collectives")
    rows = fastest(
        rows.where((rows.op == "all_reduce") & ~np.isin(rows.columns["mode"], EAGER) & (rows.n_nodes == 1) & (rows.bytes >= 1024)),
        ("chip", "n_chips", "bytes"),
    )
    places = _places(rows, ("chip", "n_chips"), rows.bytes.astype(float), lambda row: (None, 1.0))
    return _link_kernels(rows, shape_codes(rows.chip, rows.n_chips, np.log2(rows.bytes) // 4)), places


def exchanges(folder: Path) -> tuple[KernelRows, tuple[LinkRows, ...]]:
    """Dispatch plus combine of each case that has both, by the faster of the low-latency and high-throughput kernels."""
    rows = table(folder, "moe_all_to_all")
    few = rows.tokens_per_rank <= FEW_TOKENS
    rows = rows.where(((rows.sms == 0) | ((rows.sms == MOST_SMS) & ~few)) & (rows.tokens_per_rank >= 2))
    keys = ("chip", "n_chips", "hidden", "n_experts", "topk", "tokens_per_rank")
    dispatch, combine = (fastest(rows.where(rows.phase == phase), (*keys, "impl")) for phase in ("dispatch", "combine"))
    codes = shape_codes(*(np.concatenate([dispatch.columns[key], combine.columns[key]]) for key in (*keys, "impl")))
    dispatched = len(dispatch.latency_s)
    _, first, second = np.intersect1d(codes[:dispatched], codes[dispatched:], return_indices=True)
    dispatch, combine = dispatch.where(first), combine.where(second)
    both = fastest(KernelTable({**dispatch.columns, "latency_s": dispatch.latency_s + combine.latency_s}), keys)

    def routed(row: KernelTable) -> tuple[RoutedLayer, float]:
        hidden, experts, active = (float(row.columns[key][0]) for key in ("hidden", "n_experts", "topk"))
        return RoutedLayer(layers=1, experts=experts, active=active, dispatch=DISPATCHED * hidden), hidden * (DISPATCHED + COMBINED) / 2

    places = _places(both, keys[:5], both.tokens_per_rank.astype(float), routed)
    return _link_kernels(both, shape_codes(*(both.columns[key] for key in keys[:5]))), places


def _link_kernels(rows: KernelTable, shape: Column) -> KernelRows:
    return KernelRows(chip=rows.chip, shape=shape, seconds=rows.latency_s, work=(np.arange(len(rows.latency_s)),))


def _places(
    rows: KernelTable, keys: tuple[str, ...], tokens: Column, read: Callable[[KernelTable], tuple[RoutedLayer | None, float]]
) -> tuple[LinkRows, ...]:
    codes, places = shape_codes(*(rows.columns[key] for key in keys)), []
    for code in np.unique(codes):
        indices = np.flatnonzero(codes == code)
        names = rows.chip[indices[:1]]
        routed, message = read(rows.where(indices[:1]))
        up, out = (float(per_chip(names, fact)[0]) for fact in ("scale_up_bw", "scale_out_bw"))
        fabric = Fabric(kind="switch", domain=DOMAIN, up=up, exchange=up, out=out, in_switch=family(str(names[0])) in SUMS)
        members = int(rows.n_chips[indices[0]])
        places.append(LinkRows(fabric=fabric, members=members, routed=routed, message=message, rows=indices, tokens=tokens[indices]))
    return tuple(places)


def place_s(place: LinkRows, costs: LinkCosts) -> Any:
    """Time of the collectives of `place`, in seconds."""
    if place.routed is None:
        term = all_reduce_term(place.fabric, group(place.fabric, place.members, 1), place.message, costs)
    else:
        degree = known(place.members, "ep", "", "input", "measured")
        term = exchange_term(place.fabric, Layout(dp=degree, ep=degree), place.routed, place.message, costs)
    return collective_term_s(term, place.tokens)


def predicted(places: tuple[LinkRows, ...], costs: LinkCosts, rows: int) -> Any:
    """Predicted time of each row, in seconds."""
    seconds = np.ones(rows)
    for place in places:
        seconds[place.rows] = place_s(place, costs)
    return seconds


def host_round(folder: Path) -> FittedNumbers:
    """Time of a short all-reduce of four chips that are joined in pairs and otherwise by their host's PCIe, launch included."""
    rows = table(folder, "collectives")
    rows = rows.where((rows.op == "all_reduce") & (rows.topology == PAIRED) & (rows.bytes <= SHORT_MESSAGE))
    logs = np.array([np.log(np.median(rows.latency_s[rows.chip == chip])) for chip in np.unique(rows.chip)])
    chips = ", ".join(sorted({str(chip).partition("_")[0] for chip in rows.chip}))
    where = f"{chips}; all-reduces of up to {SHORT_MESSAGE >> 10} KB of 4 chips, in pairs"
    return FittedNumbers(
        section="collective.other.bf16", key="alpha_host", value=float(np.exp(logs.mean())), unit="s", rows=len(rows.chip), range=where,
        error=float(np.exp(logs.mean()) * logs.std()), source="collectives.parquet: Microsoft Vidur 7d47513 (MIT)",
        meaning="reduction of four chips over a host's PCIe, its launch included: short messages wait for the host, not for its links",
    )  # fmt: skip


NEVER = 1.0  # s per round: so slow that the lines without measurements are never the fastest


def _alpha(name: str, start: float, meaning: str) -> KernelKey:
    return KernelKey(name=name, unit="s", start=start, low=1e-7, high=2e-4, meaning=meaning)


REDUCTION_KEYS = (_alpha("alpha", 4e-6, "round of a reduction over scale-up links, launched from a graph"),
           _share("eff_network", 0.65, "share of scale-up bandwidth that reductions and gathers reach", low=0.02),
           _share("eff_in_switch", 0.5, "the same where the switch does the adding", low=0.02))  # fmt: skip
EXCHANGE_KEYS = (_alpha("alpha_exchange", 12e-6, "round of an exchange of experts over scale-up links"),
             _share("eff_exchange", 0.5, "share of scale-up bandwidth that exchanges of experts reach", low=0.02))  # fmt: skip
EXCHANGE_OUT_KEYS = (EXCHANGE_KEYS[0], _alpha("alpha_exchange_out", 24e-6, "round of an exchange of experts over scale-out links"),
        _share("eff_out", 0.9, "share of scale-out bandwidth that exchanges of experts reach", low=0.02))  # fmt: skip


def _costs(**values: Any) -> LinkCosts:
    """Costs of links with these parameters; the lines without measurements are never the fastest."""
    costs: dict[str, Any] = dict.fromkeys(("up", "out", "exchange_up", "exchange_out"), NEVER)
    costs |= dict.fromkeys(("efficiency", "in_switch", "exchange", "beyond"), 1.0)
    return LinkCosts(**costs | values)


def collectives(folder: Path) -> tuple[tuple[KernelClass, KernelRows], ...]:
    """Collective classes with their rows: all-reduce, exchange of experts inside a machine, and across machines."""
    reduced, exchanged = all_reduces(folder), exchanges(folder)
    members = np.zeros(len(exchanged[0]), int)
    for place in exchanged[1]:
        members[place.rows] = place.members
    inside = members <= DOMAIN

    def kind(
        keys: tuple[KernelKey, ...], read: tuple[KernelRows, tuple[LinkRows, ...]], costs: Callable[[Column], LinkCosts], where: str,
        table: str, label: str,
    ) -> KernelClass:  # fmt: skip
        rows, places = read
        return KernelClass(
            name="collective", read=lambda folder, dtype: rows, predict=lambda p, work: predicted(places, costs(p), len(rows))[work[0]],
            keys=keys, shared=(), dtypes=("bf16",), range=where, table=table, differs=0.05, like="collective", label=label,
            borrowed=("alpha_exchange",) if keys is EXCHANGE_OUT_KEYS else (),
        )  # fmt: skip

    reduction = kind(
        REDUCTION_KEYS, reduced, lambda p: _costs(up=p[0], efficiency=p[1], in_switch=p[2]),
        "all-reduces of 1 KB..1 GB in a machine of 8", "collectives", "all-reduce",
    )  # fmt: skip
    exchange = kind(
        EXCHANGE_KEYS, exchanged, lambda p: _costs(exchange_up=p[0], exchange=p[1]),
        "DeepEP in a machine of 8, 2..131072 tokens a chip", "moe_all_to_all", "exchange",
    )  # fmt: skip
    across = kind(
        EXCHANGE_OUT_KEYS, exchanged, lambda p: _costs(exchange_up=p[0], exchange_out=p[1], exchange=p[2], beyond=p[2]),
        "DeepEP over 2, 4 and 8 machines of 8", "moe_all_to_all", "exchange out",
    )  # fmt: skip
    return (reduction, reduced[0]), (exchange, exchanged[0].where(inside)), (across, exchanged[0].where(~inside))


