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
    found = re.match(r"v?(\d{1,3})\.(\d{1,3})(?!\d)", text.strip().lower())
    return (int(found[1]), int(found[2])) if found else None


GRAPHS_SINCE = (0, 3)  # vLLM: CUDA graphs, its release notes of v0.2.6 (December 2023) and on


@functools.cache
def eager(engine: str, text: str) -> bool:
    """Whether a version of an engine family launches its kernels one by one.

    >>> eager("vLLM", "0.2.1"), eager("vLLM", "2023-10"), eager("vLLM", "0.6.3"), eager("TensorRT-LLM", "0.5.0")
    (True, True, False, False)
    """
    if engine != "vLLM":
        return False
    known, year = version(text), re.match(r"20(\d\d)-", text.strip())
    return known < GRAPHS_SINCE if known else bool(year and int(year[1]) < 24)
