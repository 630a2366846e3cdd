"""Defaults for what a row leaves out: number formats, placement on chips, conditions of a benchmark; each use is flagged."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass

from headway.core.errors import UnknownName
from headway.models.precision import Precision
from headway.models.stored import is_gguf
from headway.performance.layout import Layout


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """A benchmark with documented conditions; its rows have a source_key that starts with `key`."""

    key: str
    mean_length_ratio: float  # mean length of its requests over the nominal length
    spread: float  # standard deviation of their lengths over the mean
    how: str
    cache: str  # KV cache format that its launch scripts set
    of: tuple[str, ...]  # formats of weights for which the scripts set `cache`
    source: str


BENCHMARKS = (
    Benchmark(
        key="inferencex",
        mean_length_ratio=0.9,
        spread=0.064,
        how="request lengths uniform from 0.8 to 1 of the nominal ones",
        cache="fp8",
        of=("fp8", "nvfp4", "mxfp4"),
        source="SemiAnalysisAI/InferenceX: README (RANDOM_RANGE_RATIO 0.8); benchmarks/*.sh (kv-cache-dtype fp8, kv_cache_config)",
    ),
    Benchmark(
        key="nvidia_dynamo",
        mean_length_ratio=1.0,
        spread=0.0,
        how="requests of one length, as NVIDIA's GenAI-Perf sends them unless told; the source does not say",
        cache="",
        of=(),
        source="GenAI-Perf: --synthetic-input-tokens-stddev and --output-tokens-stddev are 0 by default (unverified for these runs)",
    ),
)


@functools.cache
def benchmark(source: str) -> Benchmark | None:
    """Benchmark that a row's source_key names, if its conditions are documented; else None.

    >>> benchmark("inferencex_aic").mean_length_ratio, benchmark("a blog")
    (0.9, None)
    """
    return next((entry for entry in BENCHMARKS if source.lower().startswith(entry.key)), None)


# Spellings of formats, normalised and tried in this order: (pattern, format, arithmetic if it differs from the format's, note).
SPELLINGS = (
    (r"bf16|bfloat16|w16a16", "bf16", "", ""),
    (r"fp16|float16|half|f16|gguf-f16|gguf-fp16|gguf-bf16", "fp16", "", ""),
    (r"fp32|float32|f32", "bf16", "", "fp32 weights taken as bf16"),
    (r"w4a8.*|int4.*(fp8|a8)|qserve.*", "int4_g128", "fp8", ""),
    (r"nvfp4.*|w4a4-nvfp4|fp4-nv", "nvfp4", "", ""),
    (r"mxfp4.*|w4a4-mx.*|mxfp4-.*", "mxfp4", "", ""),
    (r"fp4|w4a4|e2m1", "fp4", "", ""),
    (r"(int8-weight-only|(wo|weight-only)-int8|int8-wo|w8a16)|(gptq|awq|bnb|hqq|mlx|exl2).*-?(int8|8bit|8)|8-?bit", "int8", "bf16",
     "int8 weights, bf16 arithmetic"),
    (r"int8.*|w8a8(-int8)?|smoothquant(-int8)?|sq|w8a8-sq", "int8", "", ""),
    (r"(w8a8-)?fp8.*|e4m3.*|float8.*|mxfp8|w8a8-fp8.*|f8", "fp8", "", ""),
    (r".*q4f16(-1)?\)?|int4-g32|mlx.*4.*|q4f16.*|int4-g-\(q4f16\)", "int4_g32", "", ""),
    (r"(gguf-|ggml-)?(ud-)?(i?q)(\d.*)", "gguf", "", ""),
    (r"w4a16.*|(gptq|awq|hqq|exl2|bnb|marlin|autoround|uint4|int4).*|4-?bit|nf4|u4|woq-?int4|.*(awq|gptq)", "int4_g128", "", ""),
)  # fmt: skip
# GGUF files under names that are not llama.cpp's own: the file whose types come nearest.
GGUF = {
    "q3-k": "q3_k_m", "q4-k": "q4_k_m", "q4": "q4_k_m", "q5-k": "q5_k_m", "q5": "q5_k_m", "q6": "q6_k", "q8": "q8_0",
    "q2-k-l": "q2_k", "q4-k-l": "q4_k_m", "q5-k-l": "q5_k_m", "q6-k-l": "q6_k",
    "q2-k-xl": "q2_k", "q3-k-xl": "q3_k_m", "q4-k-xl": "q4_k_m", "q5-k-xl": "q5_k_m", "q6-k-xl": "q6_k", "q8-k-xl": "q8_0",
}  # fmt: skip
# Format of the output head (a matrix of the embedding's shape): MLC quantises the head too, GGUF files have theirs (models/stored.py),
# AWQ, GPTQ, FP8 and FP4 checkpoints leave it as it was trained.
HEAD = {"int4_g32": "int4_g32"}
IN_A_NAME = re.compile(
    r"(nvfp4|mxfp4|fp8|fp4|awq|gptq-?int8|gptq|int8|int4|w4a16|w8a8|w4a8|bnb-4bit|4bit|8bit|q\d[-_](?:k(?:[-_](?:s|m|l|xl))?|0|1)|"
    r"iq\d[-_](?:xxs|xs|nl|s|m))"
    r"(?=$|[-_.:/])",
    re.IGNORECASE,
)
# Default format of the KV cache, by engine family and weights; the first match applies.
#   Engines' "auto" follows the checkpoint's kv_cache_quant_algo (TensorRT-LLM KvCacheConfig.dtype, vLLM resolve_kv_cache_dtype_string),
#   which is FP8 in ModelOpt's NVFP4 checkpoints and in FP8 checkpoints for TensorRT-LLM. Other checkpoints use the model's 16 bits.
KV_RULES = (
    ("TensorRT-LLM", ("fp8", "nvfp4"), "fp8"),
    ("", ("nvfp4",), "fp8"),
    ("llama.cpp", (), "fp16"),
    ("", (), "bf16"),
)
CACHES = {
    "bf16": "bf16", "bfloat16": "bf16", "fp16": "fp16", "float16": "fp16", "f16": "fp16", "half": "fp16", "fp8": "fp8", "fp8-e4m3": "fp8",
    "fp8-e5m2": "fp8", "e4m3": "fp8", "e5m2": "fp8", "int8": "int8", "q8-0": "int8", "int4": "int4", "q4-0": "int4", "fp4": "fp4",
    "nvfp4": "fp4", "fp8-ds-mla": "fp8",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class StatedFormats:
    """Number formats read from a row: precision, format of the head ("": as in the checkpoint), and what was inferred."""

    precision: Precision
    head: str = ""
    flags: tuple[str, ...] = ()


@functools.cache
def precision(weights: str, kv: str, model: str, engine: str, vendor: str, stored: str, source: str = "") -> StatedFormats:
    """Number formats that a row means; `stored`: main format of the catalogue's checkpoint; `source`: the row's source_key.

    >>> found = precision("gguf_q4_k_m", "", "llama-3-8b", "llama.cpp", "NVIDIA", "bf16")
    >>> found.precision.weights, found.precision.kv, found.head
    ('q4_k_m', 'fp16', '')
    """
    flags: list[str] = []
    text = _plain(weights)
    if text in ("", "auto", "unknown"):
        matches = IN_A_NAME.findall(model.rpartition("/")[2])
        text = _plain(matches[-1]) if matches else ""
        flags.append(f"weights not stated: {text + ' as the name says' if text else 'as the checkpoint stores them'}")
    name, compute, note = _weights(text, vendor, stored) if text else ("", "", "")
    flags += [note] if note else []
    checkpoint = name or stored
    if name == stored or {name, stored} == {"fp16", "bf16"}:  # the checkpoint as published, with its parts in other formats
        name = ""
    cache = _cache(kv, checkpoint, model, engine, benchmark(source), flags)
    if engine == "llama.cpp" and not compute:
        compute = "fp16acc"  # ggml's CUDA matmuls accumulate in 16 bits unless GGML_CUDA_FORCE_CUBLAS_COMPUTE_32F is set
    return StatedFormats(Precision(weights=name, kv=cache, compute=compute), HEAD.get(name, ""), tuple(flags))


def _plain(text: str) -> str:
    return re.sub(r"[\s_]+", "-", text.strip().lower())


def _weights(text: str, vendor: str, stored: str) -> tuple[str, str, str]:
    """Format of the weights, arithmetic if it differs from the format's, and a note; "fp4" is that of the checkpoint, else the vendor's."""
    for pattern, name, compute, note in SPELLINGS:
        if re.fullmatch(pattern, text):
            if name == "gguf":
                return _gguf(text)
            if name == "fp4":
                stays = stored in ("mxfp4", "nvfp4", "fp4")
                name = stored if stays else "nvfp4" if vendor.lower() == "nvidia" else "mxfp4"
                return name, compute, f"fp4 taken as {name}, as {'its checkpoint' if stays else f'chips of {vendor}'} has it"
            return name, compute, note
    raise UnknownName("format of weights", text, (), "such as bf16, fp8, nvfp4, mxfp4, int8, awq_int4, gguf_q4_k_m")


def _gguf(text: str) -> tuple[str, str, str]:
    kind = re.sub(r"^((gguf|ggml)-)?(ud-)?", "", text)
    name = kind.replace("-", "_")
    if is_gguf(name) and "ud-" not in text:  # Unsloth's dynamic files mix types by tensor
        return name, "", ""
    if not is_gguf(name) and kind not in GGUF:
        raise UnknownName("GGUF type", text, GGUF, "such as q4_k_m, q8_0, q4_0, q6_k")
    nearest = GGUF.get(kind, name)
    return nearest, "", f"{text} taken as {nearest}"


def _cache(kv: str, weights: str, model: str, engine: str, run: Benchmark | None, flags: list[str]) -> str:
    text = _plain(kv)
    if text not in ("", "auto", "unknown"):
        if text not in CACHES:
            raise UnknownName("format of a KV cache", text, CACHES, "such as bf16, fp8, int8")
        return CACHES[text]
    if re.search(r"fp8[-_]kv$", model, re.IGNORECASE):
        flags.append("KV cache not stated: fp8 as the name says")
        return "fp8"
    if run is not None and weights in run.of:
        flags.append(f"KV cache not stated: {run.cache}, as the benchmark's launch scripts set it for {weights} weights")
        return run.cache
    default_cache = next(cache for family, of, cache in KV_RULES if family in ("", engine) and (not of or weights in of))
    flags.append(f"KV cache not stated: {default_cache}, {engine}'s default with {weights} weights")
    return default_cache


ROOM = 2 / 3  # largest share of usable memory for weights; the rest holds a KV cache large enough to batch
ATTENTION_DP_SINCE = (0, 20)  # TensorRT-LLM version from which MoE throughput recipes use attention data parallelism (its docs)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedLayout:
    """Layout as a row states it, and the facts that the placement rules use."""

    chips: int | None
    tp: int | None
    ep: int | None
    pp: int | None
    dp: int | None
    engine: str
    version: tuple[int, int] | None
    load: str  # "saturated": the server runs full; else the row gives batch or users
    moe: bool
    split: bool  # disaggregated: the layout is that of a decode worker, the chips are of prefill and decode
    attention_dp: bool = False  # dp is attention data parallelism, whatever ep is


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedLayout:
    """Layout of one engine instance, number of instances, number of chips, and what was inferred."""

    layout: Layout
    replicas: int
    chips: int
    flags: tuple[str, ...]


def place(row: StatedLayout, holds: Callable[[int, int], bool], divides: Callable[[int], bool], domain: int) -> PlacedLayout | str:
    """Layout of a row, or the reason why it has none.

    `holds(tp, pp)`: weights leave room for a KV cache; `divides(tp)`: tp divides the heads; `domain`: chips on fast links.
    """
    flags: list[str] = []
    worker = (row.tp or 1) * (row.pp or 1) * (row.dp or 1)
    chips = row.chips or (2 * worker if row.split else worker)
    if not row.chips:
        why = "a decode worker and as many for prefill" if row.split else "what the layout needs"
        flags.append(f"chips not stated: {chips}, {why}")
    room = max(1, chips // 2) if row.split else chips  # a decode worker leaves chips for prefill
    pp = row.pp or 1
    if not row.pp and row.engine == "llama.cpp" and room > 1 and row.tp in (None, 1) and not row.dp:
        pp = room
        flags.append(f"layout not stated: llama.cpp splits the layers over {room} chips")
    tp, dp, ep = row.tp or _tp_degree(row, room // pp, pp, holds, divides, domain, flags), row.dp or 1, row.ep or 1
    if row.engine == "llama.cpp" and not divides(tp):
        tp, pp = 1, pp * tp
        flags.append(f"llama.cpp's split of rows over {pp} chips taken as one of layers: heads do not divide")
    if row.tp is None and row.pp is None and not holds(tp, pp):
        pp = next((pp << power for power in range(1, 8) if tp * (pp << power) * dp <= room and holds(tp, pp << power)), pp)
        flags += [f"pp not stated: {pp}, as the weights need more than {tp} chips"] if pp > 1 and row.engine != "llama.cpp" else []
    if not row.moe and ep > 1:
        flags.append(f"ep {ep} left out: the model has no experts")
        ep = 1
    inside = dp > 1 and (row.moe or row.attention_dp)  # ranks meet in the experts; without these they are copies, as in `serve`
    if inside and tp * dp * pp > chips >= tp * pp and tp % dp == 0:
        tp //= dp
        flags.append(f"tp counted the data parallel ranks too: tp {tp} within each of {dp}")
    if _attention_dp(row, tp):
        tp, dp, ep, inside = 1, tp, tp, True
        flags.append("ep and dp not stated: attention data parallel and experts over all ranks, as TensorRT-LLM's throughput recipes")
    elif row.moe and row.ep is None and tp > 1:
        flags.append("ep not stated: experts are split as everything else, by tp")
    replica_chips = tp * pp * (dp if inside else 1)
    if replica_chips > chips:
        return f"the layout needs {replica_chips} chips, the row has {chips}"
    if replica_chips > chips - row.split:
        return "a decode worker takes every chip of the row: none is left for prefill"
    replicas = 1 if row.split else chips // replica_chips
    if row.split:
        flags.append("chips of prefill and of decode are not told apart: tp, ep and dp are one decode worker's")
    elif not inside and dp > 1 and dp != replicas:
        flags.append(f"dp {dp} of {chips} chips with tp {tp}, pp {pp}: taken as {replicas} replicas")
    elif replicas * replica_chips != chips:
        flags.append(f"{chips - replicas * replica_chips} of {chips} chips idle")
    return PlacedLayout(layout=Layout(tp=tp, ep=ep, dp=dp if inside else 1, pp=pp), replicas=replicas, chips=chips, flags=tuple(flags))


def _tp_degree(
    row: StatedLayout, chips: int, pp: int, holds: Callable[[int, int], bool], divides: Callable[[int], bool], domain: int, flags: list[str]
) -> int:
    """Tensor parallel degree of a row that states none: a power of two that divides the heads, inside a domain.

    A saturated server runs copies on the fewest chips that hold the weights with room for a cache; a server with a given load
    spreads one instance over all chips.
    """
    most = max(1, min(chips // (row.dp or 1), domain))
    degrees = [1 << power for power in range(most.bit_length()) if 1 << power <= most and divides(1 << power)] or [1]
    if row.load == "saturated":
        degree = next((tp for tp in degrees if holds(tp, pp)), degrees[-1])
        why = "the fewest chips that hold the weights with room for a cache"
    else:
        degree, why = degrees[-1], "one instance over the chips of a domain"
    if chips > 1 or degree > 1:
        flags.append(f"tp not stated: {degree}, {why}")
    return degree


def _attention_dp(row: StatedLayout, tp: int) -> bool:
    """Whether attention runs data parallel: TensorRT-LLM's offline throughput of MoE models, where the row states no ep and no dp."""
    is_open = row.ep is None and row.dp is None and tp > 1
    recent = row.version is not None and row.version >= ATTENTION_DP_SINCE
    return row.moe and is_open and row.load == "saturated" and row.engine == "TensorRT-LLM" and recent
