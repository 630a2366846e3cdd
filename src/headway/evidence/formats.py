"""Number formats as public tables name them, and what an engine takes where a row is silent: tables of rules, each flagged when used."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from headway.errors import UnknownName
from headway.evidence.benchmarks import Benchmark, benchmark
from headway.precision import Precision

# Spellings, folded and tried in this order: (pattern, format, arithmetic where it is not the format's own, note).
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
    (r"int8.*|w8a8(-int8)?|smoothquant|sq|w8a8-sq", "int8", "", ""),
    (r"(w8a8-)?fp8.*|e4m3.*|float8.*|mxfp8|w8a8-fp8.*|f8", "fp8", "", ""),
    (r".*q4f16(-1)?\)?|int4-g32|mlx.*4.*|q4f16.*|int4-g-\(q4f16\)", "int4_g32", "", ""),
    (r"(gguf-|ggml-)?(i?q)(\d.*)", "gguf", "", ""),
    (r"w4a16.*|(gptq|awq|hqq|exl2|bnb|marlin|autoround|uint4|int4).*|4-?bit|nf4|u4|woq-?int4|.*(awq|gptq)", "int4_g128", "", ""),
)  # fmt: skip
GGUF = {
    "q2-k": "q2_k", "q3-k": "q3_k_m", "q3-k-m": "q3_k_m", "q3-k-l": "q3_k_m", "q3-k-s": "q3_k_m", "q4-0": "q4_0", "q4-1": "q4_1",
    "q4-k": "q4_k_m", "q4-k-m": "q4_k_m", "q4-k-s": "q4_k_s", "q4": "q4_k_m", "q5-0": "q5_0", "q5-1": "q5_0", "q5-k": "q5_k_m",
    "q5-k-m": "q5_k_m", "q5-k-s": "q5_k_m", "q5": "q5_k_m", "q6": "q6_k", "q6-k": "q6_k", "q8": "q8_0", "q8-0": "q8_0",
    "iq4-xs": "iq4_xs", "iq4-nl": "q4_0", "q4-k-xl": "q4_k_m",
}  # fmt: skip
GGUF_EXACT = ("q2-k", "q3-k-m", "q4-0", "q4-1", "q4-k-m", "q4-k-s", "q5-0", "q5-k-m", "q6-k", "q8-0", "iq4-xs")
# What the head (the matrix that is read with the embedding's shape) is stored in: llama.cpp quantises it to q6_k beside the k-quants and
# the 4- and 5-bit types, q8_0 beside itself; MLC quantises it too. AWQ, GPTQ, FP8 and FP4 checkpoints leave it as it was trained.
HEAD = {"q8_0": "q8_0", "int4_g32": "int4_g32"} | dict.fromkeys(
    ("q2_k", "q3_k_m", "q4_0", "q4_1", "q4_k_s", "q4_k_m", "q5_0", "q5_k_m", "q6_k", "iq4_xs"), "q6_k"
)
IN_A_NAME = re.compile(
    r"(nvfp4|mxfp4|fp8|fp4|awq|gptq-?int8|gptq|int8|int4|w4a16|w8a8|w4a8|bnb-4bit|4bit|8bit|i?q\d[-_](?:k(?:[-_](?:s|m|l))?|0|1|xs|nl))"
    r"(?=$|[-_.:/])",
    re.IGNORECASE,
)
# The KV cache where a row does not say, by engine family and weights; the first that applies.
#   Engines' "auto" follows the checkpoint's kv_cache_quant_algo (TensorRT-LLM KvCacheConfig.dtype, vLLM resolve_kv_cache_dtype_string),
#   which ModelOpt's NVFP4 checkpoints, and the FP8 ones that TensorRT-LLM runs, set to FP8. Others keep the model's own 16 bits.
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
    """A precision read from a row: the formats, what the head is stored in ("" as in the checkpoint), and what was inferred."""

    precision: Precision
    head: str = ""
    flags: tuple[str, ...] = ()


@functools.cache
def precision(weights: str, kv: str, model: str, engine: str, vendor: str, stored: str, source: str = "") -> StatedFormats:
    """The formats that a row means; `stored`: what most of the catalogue's own checkpoint is in; `source`: the row's key.

    >>> found = precision("gguf_q4_k_m", "", "llama-3-8b", "llama.cpp", "NVIDIA", "bf16")
    >>> found.precision.weights, found.precision.kv, found.head
    ('q4_k_m', 'fp16', 'q6_k')
    """
    flags: list[str] = []
    text = _plain(weights)
    if text in ("", "auto", "unknown"):
        matches = IN_A_NAME.findall(model.rpartition("/")[2])
        text = _plain(matches[-1]) if matches else ""
        flags.append(f"weights not stated: {text + ' as the name says' if text else 'as the checkpoint stores them'}")
    name, compute, note = _weights(text, vendor) if text else ("", "", "")
    flags += [note] if note else []
    checkpoint = name or stored
    if name == stored or {name, stored} == {"fp16", "bf16"}:  # as it is, with the parts that the checkpoint keeps in another format
        name = ""
    cache = _cache(kv, checkpoint, model, engine, benchmark(source), flags)
    if engine == "llama.cpp" and not compute:
        compute = "fp16acc"  # ggml's CUDA matmuls keep sums in 16 bits unless GGML_CUDA_FORCE_CUBLAS_COMPUTE_32F is set
    return StatedFormats(Precision(weights=name, kv=cache, compute=compute), HEAD.get(name, ""), tuple(flags))


def _plain(text: str) -> str:
    return re.sub(r"[\s_]+", "-", text.strip().lower())


def _weights(text: str, vendor: str) -> tuple[str, str, str]:
    """A format, the arithmetic where it is not the format's own, and a note."""
    for pattern, name, compute, note in SPELLINGS:
        if re.fullmatch(pattern, text):
            if name == "gguf":
                return _gguf(text)
            if name == "fp4":
                name = "nvfp4" if vendor == "NVIDIA" else "mxfp4"
                return name, compute, f"fp4 on {vendor or 'this chip'} taken as {name}"
            return name, compute, note
    raise UnknownName("format of weights", text, (), "such as bf16, fp8, nvfp4, mxfp4, int8, awq_int4, gguf_q4_k_m")


def _gguf(text: str) -> tuple[str, str, str]:
    kind = re.sub(r"^(gguf|ggml)-", "", text)
    if kind not in GGUF:
        raise UnknownName("GGUF type", text, GGUF, "such as q4_k_m, q8_0, q4_0, q6_k")
    return GGUF[kind], "", "" if kind in GGUF_EXACT else f"{text} taken as {GGUF[kind]}"


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
