"""Reader of what vLLM and SGLang log at their start: the room for KV cache, the most sequences, and the layout that it is of.

Formats (read 2026-11-26): vllm-project/vllm, vllm/v1/core/kv_cache_utils.py ("GPU KV cache size", "Maximum concurrency"; one line in later
versions), v1/engine/core.py ("Initializing a V1 LLM engine"), entrypoints/utils.py ("non-default args"); a public log is issue #295 of
noonghunna/club-3090. sgl-project/sglang, python/sglang/srt/managers/scheduler.py ("max_total_num_tokens="), mem_cache/memory_pool.py
("KV Cache is allocated"), entrypoints/engine.py ("server_args="); a public log is issue #29575. A line that speaks of the cache in
another way is told, and nothing is taken from it. The log names no chip.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headway.core import user_file
from headway.core.errors import BadFile, clip, printable
from headway.core.measured import DEGREE, LENGTH, USERS, BadCell, cell
from headway.core.schema import Field

SHARE = Field("", "share of the card", high=1)
HALF_A_DIGIT = 0.0051  # of a ratio that is logged to two places
MOST_TOLD, MOST_LINE = 3, 120  # lines that are not understood and have a note of their own; letters of one
ABOUT_ROOM = re.compile(r"kv[ _-]?cache|num_gpu_blocks|max_total_num_tokens|gpu blocks", re.IGNORECASE)
# Lines about the cache that say nothing of its size, or what another line says better.
KNOWN_BESIDE = re.compile(
    r"Available KV cache memory|Using KV cache dtype|Using \S+ data type to store kv cache|kv_cache_utils.*(reserv|hash)|"
    r"Multiplying the GPU KV cache size|KV cache (pool|event)|enable_prefix_caching|Memory pool end|cudagraph|Overriding num_gpu_blocks",
    re.IGNORECASE,
)
RANK = re.compile(r"EngineCore_?(?:DP)?(\d+)|\bDP(\d+)\b")
DATE = re.compile(r"\[?(20\d\d)-(0[1-9]|1[0-2])-\d\d")
CONFIG = re.compile(r"Initializing an? (?:V\d )?LLM engine \(v([^)]+)\) with config: (.*)")
VERSION = re.compile(r"(?:vLLM API server|vLLM|█) version v?(\d\S*)")
ARGUMENTS = re.compile(r"non-default args: \{(.*)\}")
ROOM = re.compile(r"GPU KV cache size: ([\d,]+) tokens")
CONCURRENCY = re.compile(r"Maximum concurrency for ([\d,]+) tokens per request: ([\d.]+)x")
SERVER = re.compile(r"server_args=ServerArgs\((.*)\)")
POOL = re.compile(r"max_total_num_tokens=(\d+), .*max_running_requests=(\d+), .*context_len=(\d+)")
ALLOCATED = re.compile(r"KV Cache is allocated\..*#tokens: (\d+)")
FORMATS = {"fp8": "fp8", "fbgemm_fp8": "fp8", "ptpc_fp8": "fp8", "mxfp4": "mxfp4", "gpt_oss_mxfp4": "mxfp4", "modelopt_fp4": "nvfp4"}
CACHES = {"fp8": "fp8", "fp8_e4m3": "fp8", "fp8_e5m2": "fp8", "bfloat16": "bf16", "bf16": "bf16", "float16": "fp16"}


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineLog:
    """A start as its log tells it; "" and None for what it does not say. What is of a rank of attention is of the fullest one."""

    name: str  # of the file
    engine: str  # vLLM or SGLang
    context: float  # tokens of a sequence of which so many fit
    fitting: float  # sequences of that length that fit on a rank
    version: str = ""
    month: str = ""
    model: str = ""
    weights: str = ""
    kv: str = ""
    tp: int | None = None
    pp: int | None = None
    dp: int | None = None
    ep: int | None = None
    eager: bool = False
    utilization: float | None = None
    sequences: int | None = None  # most that a rank serves at once
    notes: tuple[str, ...] = ()


def read(path: str | Path) -> EngineLog:
    """The last start that a log tells; BadFile where it is none of vLLM or SGLang, or says nothing of the cache."""
    lines = user_file.text_of(path, user_file.BENCHMARK).splitlines()
    text = "\n".join(lines)
    try:
        log = _sglang(lines, path) if POOL.search(text) or SERVER.search(text) or ALLOCATED.search(text) else _vllm(lines, path)
    except BadCell as error:
        raise BadFile(path, str(error)) from None
    return log


def _vllm(lines: Sequence[str], path: str | Path) -> EngineLog:
    configs, arguments = _last(CONFIG, lines), _last(ARGUMENTS, lines)
    version, config = configs.groups() if configs else ("", "")
    flags = arguments[1] if arguments else ""
    banner = _last(VERSION, lines)
    tokens, most = _of_ranks(ROOM, lines), _of_ranks(CONCURRENCY, lines)
    if not most:
        raise BadFile(path, 'has no line "Maximum concurrency for N tokens per request" of vLLM and no "max_total_num_tokens=" of SGLang: '
                            "wants the log of their start")  # fmt: skip
    length = _number(most[0][0], LENGTH, "Maximum concurrency for")
    ratios = [_number(ratio, USERS, "Maximum concurrency") for _, ratio in most]
    exact = [_number(room, LENGTH, "GPU KV cache size") / length for room, in tokens]  # to more digits, where it is of the same count
    fitting = [next((count for count in exact if abs(count - ratio) <= HALF_A_DIGIT), ratio) for ratio in ratios]
    tp, dp = (_degree(config, flags, key) for key in ("tensor_parallel_size", "data_parallel_size"))
    weights, cache = _value(config, "quantization"), _value(flags, "kv_cache_dtype") or _value(config, "kv_cache_dtype")
    experts = "True" in (_value(flags, "enable_expert_parallel"), _value(config, "enable_expert_parallel"))
    return EngineLog(
        name=printable(Path(path).name), engine="vLLM", version=printable(version or (banner[1] if banner else "")), month=_month(lines),
        model=_model(_value(flags, "model") or _value(config, "model")), weights=FORMATS.get(weights, ""), kv=CACHES.get(cache, ""),
        tp=tp, dp=dp,
        pp=_degree(config, flags, "pipeline_parallel_size"), ep=(tp or 1) * (dp or 1) if experts else 1 if arguments else None,
        eager="True" in (_value(config, "enforce_eager"), _value(flags, "enforce_eager")), context=length, fitting=min(fitting),
        utilization=_optional(_value(flags, "gpu_memory_utilization"), SHARE, "gpu_memory_utilization"),
        sequences=_count(_value(flags, "max_num_seqs")), 
        notes=(*_formats(weights, cache), *_notes(lines, fitting, (ROOM, CONCURRENCY, CONFIG, ARGUMENTS))),
    )  # fmt: skip


def _sglang(lines: Sequence[str], path: str | Path) -> EngineLog:
    server, pools = _last(SERVER, lines), _of_ranks(POOL, lines)
    flags = server[1] if server else ""
    if not pools:
        raise BadFile(path, 'has no line "max_total_num_tokens=N, ..., max_running_requests=N, context_len=N" of SGLang: '
                            "wants the log of its whole start")  # fmt: skip
    length = _number(pools[0][2], LENGTH, "context_len")
    fitting = [_number(tokens, LENGTH, "max_total_num_tokens") / length for tokens, *_ in pools]
    tp, dp = (_count(_value(flags, key)) for key in ("tp_size", "dp_size"))
    weights, cache = (_value(flags, key) for key in ("quantization", "kv_cache_dtype"))
    ranks = dp if dp and _value(flags, "enable_dp_attention") == "True" else 1  # which share the tensor-parallel chips
    return EngineLog(
        name=printable(Path(path).name), engine="SGLang", month=_month(lines), model=_model(_value(flags, "model_path")),
        weights=FORMATS.get(weights, ""), kv=CACHES.get(cache, ""),
        tp=tp // ranks if tp else tp, pp=_count(_value(flags, "pp_size")), dp=dp, ep=_count(_value(flags, "ep_size")),
        eager=_value(flags, "disable_cuda_graph") == "True", context=length, fitting=min(fitting),
        utilization=_optional(_value(flags, "mem_fraction_static"), SHARE, "mem_fraction_static"),
        sequences=min(int(most) for _, most, _ in pools) or None,
        notes=(*_formats(weights, cache), *_notes(lines, fitting, (POOL, ALLOCATED, SERVER))),
    )  # fmt: skip


def _formats(weights: str, cache: str) -> list[str]:
    """Notes on formats of other names, from which nothing is taken."""
    notes = [f"quantization {weights} is not understood: --weights says it"] if weights and weights not in FORMATS else []
    return [*notes, f"kv_cache_dtype {cache} is not understood: --kv says it"] if cache and cache not in CACHES else notes


def _last(pattern: re.Pattern[str], lines: Sequence[str]) -> re.Match[str] | None:
    """The last match: a log that is appended to has several starts."""
    return next((match for line in reversed(lines) if (match := pattern.search(line))), None)


def _of_ranks(pattern: re.Pattern[str], lines: Sequence[str]) -> list[tuple[str, ...]]:
    """What each rank of attention says last."""
    by_rank = {}
    for line in lines:
        if match := pattern.search(line):
            rank = RANK.search(line)
            by_rank[rank[0] if rank else ""] = match.groups()
    return list(by_rank.values())


def _value(text: str, key: str) -> str:
    """Value of a key in a list of arguments as Python prints it, without quotes; "" where it has none.

    >>> _value("model='Qwen/Qwen3-8B', quantization=None, tensor_parallel_size=2", "tensor_parallel_size")
    '2'
    """
    match = re.search(rf"(?<!\w)'?{key}'?\s*[=:]\s*('[^']*'|[^,\s)}}]+)", text)
    value = match[1].strip("'") if match else ""
    return "" if value in ("None", "auto") else value


def _degree(config: str, flags: str, key: str) -> int | None:
    return _count(_value(config, key) or _value(flags, key))


def _count(text: str) -> int | None:
    return int(cell(text, DEGREE, "a count")) if text and not text.startswith("-") else None


def _number(text: str, q: Field, name: str) -> float:
    return cell(text.replace(",", ""), q, name)


def _optional(text: str, q: Field, name: str) -> float | None:
    return cell(text, q, name) if text else None


def _model(text: str) -> str:
    """Name of a model from a path in a cache of Hugging Face or a folder.

    >>> _model("/data/models--meta-llama--Llama-3.1-8B-Instruct/snapshots/8c22"), _model("/mnt/Qwen3-8B"), _model("Qwen/Qwen3-8B")
    ('meta-llama/Llama-3.1-8B-Instruct', 'Qwen3-8B', 'Qwen/Qwen3-8B')
    """
    cached = re.search(r"models--([^/]+)", text)
    if cached:
        return printable(cached[1].replace("--", "/"))
    return printable(Path(text).name if text.startswith(("/", "~", ".")) else text)


def _month(lines: Sequence[str]) -> str:
    """Month of the log; vLLM's lines have no year."""
    match = next((date for line in reversed(lines) if (date := DATE.match(line.strip()))), None)
    return f"{match[1]}-{match[2]}" if match else ""


def _notes(lines: Sequence[str], fitting: Sequence[Any], read_here: Sequence[re.Pattern[str]]) -> tuple[str, ...]:
    """Notes on ranks that differ, and on lines about the cache that are not understood."""
    notes = [f"{len(fitting)} ranks, of which the fullest counts"] if max(fitting) > 1.02 * min(fitting) else []
    patterns = (*read_here, KNOWN_BESIDE)
    strange = [
        (number, line) for number, line in enumerate(lines, 1)
        if ABOUT_ROOM.search(line) and not any(pattern.search(line) for pattern in patterns)
    ]  # fmt: skip
    begin = "is not understood, and nothing is taken from it"
    notes += [f"line {number} {begin}: {clip(printable(line), MOST_LINE)!r}" for number, line in strange[:MOST_TOLD]]
    return (*notes, *([f"{len(strange) - MOST_TOLD:,} more lines about the cache are not understood"] if len(strange) > MOST_TOLD else []))
