"""Engine families: what a public table calls an engine, as one of five."""

from __future__ import annotations

import functools
import re

_SPELLINGS = (
    ("TensorRT-LLM", r"tensorrt|trt|\bnim\b|triton"),
    ("SGLang", r"sglang|sgl\b"),
    ("llama.cpp", r"llama\.?-?_?cpp|ollama|lm-?studio|llama-?bench|gguf|koboldcpp|llamafile|ggml"),
    ("vLLM", r"vllm|atom\b|dynamo.*vllm"),
)


@functools.cache
def family(engine: str) -> str:
    """The family of an engine.

    >>> family("TRT-LLM v1.0"), family("ollama"), family("vllm-rocm 0.6"), family("MLX")
    ('TensorRT-LLM', 'llama.cpp', 'vLLM', 'other')
    """
    text = engine.lower()
    inner = re.search(r"dynamo[\s\-_(+/]*(trt\w*|tensorrt\S*|vllm|sglang)", text)
    text = inner[1] if inner else text
    return next((name for name, pattern in _SPELLINGS if re.search(pattern, text)), "other")


@functools.cache
def version(text: str) -> tuple[int, int] | None:
    """Major and minor, where a version starts with them.

    >>> version("1.0.0rc3"), version("v0.17"), version("commit 3f2")
    ((1, 0), (0, 17), None)
    """
    match = re.match(r"v?(\d{1,3})\.(\d{1,3})(?!\d)", text.strip().lower())
    return (int(match[1]), int(match[2])) if match else None


GRAPHS_SINCE = (0, 3)  # vLLM: CUDA graphs, its release notes of v0.2.6 (December 2023) and on
AHEAD_SINCE = (0, 14)  # vLLM: the host prepares a step while the one before runs, by default; its release notes of v0.14.0 (January 2026)


@functools.cache
def older(engine: str, text: str, date: str = "") -> tuple[str, ...]:
    """What a version of an engine family did before it learnt better; by its date where the version is not stated, else none.

    "eager": it launches its kernels one by one; "waiting": a step is prepared when the one before is done.

    >>> older("vLLM", "2023-10"), older("vLLM", "0.6.3"), older("vLLM", "", "2025-10-29"), older("vLLM", "0.19.0")
    (('eager', 'waiting'), ('waiting',), ('waiting',), ())
    """
    if engine != "vLLM":
        return ()
    release = version(text)
    return tuple(
        name
        for name, since, month in (("eager", GRAPHS_SINCE, "2024-01"), ("waiting", AHEAD_SINCE, "2026-01"))
        if (release < since if release else _before(text.strip() or date.strip(), month))
    )


def _before(date: str, month: str) -> bool:
    """Whether a date, year first, is before a month."""
    return bool(re.match(r"20\d\d(-|$)", date)) and date[:7] < month
