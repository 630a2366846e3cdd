"""TensorRT-LLM: `trtllm-serve` and an options file. Attention is all tensor parallel or all data parallel; its tp counts both."""

from __future__ import annotations

from headway.launch.ask import Ask, copies_why, expert_why, heads_why, kv_why, port, weights_why

PORT = 8000
OPTIONS = "trtllm.yaml"
CACHE = {"bf16": "auto", "fp8": "fp8", "fp4": "nvfp4"}
DTYPES = {"bf16": "bfloat16", "fp16": "float16"}
FRACTION = 0.9  # of the memory that weights leave free; the server's own default


def layout_why(asked: Ask) -> str:
    """Why TensorRT-LLM cannot express a layout, or ""."""
    if asked.cp > 1:  # Helix: https://nvidia.github.io/TensorRT-LLM/1.3.0rc26/features/helix.html
        return f"context parallelism (cp={asked.cp}) is for generation servers of a disaggregated deployment only"
    if asked.dp > 1 and not asked.needs.shape.experts:
        return f"one server of a dense model holds one copy; dp={asked.dp} is {asked.dp} replicas"
    if asked.dp > 1 and asked.tp > 1:
        return f"attention is tensor parallel or data parallel over all {asked.ways} chips, not tp={asked.tp} and dp={asked.dp} together"
    return heads_why(asked, asked.tp) or expert_why(asked) or copies_why(asked, "TensorRT-LLM")


def format_why(asked: Ask) -> str:
    """Why TensorRT-LLM cannot make these formats, or ""."""
    return weights_why(asked, tuple(DTYPES)) or kv_why(asked, CACHE)


def write(asked: Ask) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Lines and notes."""
    words = ["trtllm-serve", asked.model, f"--tp_size {asked.ways}"]
    if asked.hosts > 1:
        words = ["trtllm-llmapi-launch", *words, f"--gpus_per_node {asked.chips // asked.hosts}"]
    if asked.pp > 1:
        words.append(f"--pp_size {asked.pp}")
    if asked.ep > 1:
        words.append(f"--ep_size {asked.ep}")
    words += _limits(asked)
    options = _options(asked)
    if not options:
        return (" ".join(words),), _notes(asked)
    text = "\\n".join(options)
    return (f"printf '{text}\\n' > {OPTIONS}", " ".join([*words, f"--extra_llm_api_options {OPTIONS}"])), _notes(asked)


def _limits(asked: Ask) -> list[str]:
    words = []
    if asked.per_rank:
        words.append(f"--max_batch_size {-(-asked.per_rank // asked.pp)}")
    if asked.length:
        words.append(f"--max_seq_len {asked.length}")
    if asked.memory:
        words.append(f"--kv_cache_free_gpu_memory_fraction {asked.memory:g}")
    if asked.replicas > 1:
        words.append(f"--port {port(asked, PORT)}")
    return words


def _options(asked: Ask) -> list[str]:
    """Lines of the options file, for what has no flag."""
    lines = []
    if asked.weights:
        lines.append(f"dtype: {DTYPES[asked.weights]}")
    if asked.dp > 1:
        lines.append("enable_attention_dp: true")
    if asked.spare:
        slots = asked.needs.shape.experts + asked.spare
        lines += ["moe_config:", "  load_balancer:", f"    num_slots: {slots}", "    layer_updates_per_iter: 1"]
    if CACHE.get(asked.kv, "auto") != "auto":
        # the file's kv_cache_config may replace the whole of the command line's, so its share stands here too
        lines += ["kv_cache_config:", f"  dtype: {CACHE[asked.kv]}", f"  free_gpu_memory_fraction: {asked.memory or FRACTION:g}"]
    return lines


def _notes(asked: Ask) -> tuple[str, ...]:
    notes = []
    if asked.hosts > 1:
        notes.append(f"{asked.hosts} hosts: start it under srun or mpirun with {asked.chips} tasks, {asked.chips // asked.hosts} a host")
    if asked.dp > 1:
        notes.append(f"--tp_size is dp = {asked.dp}: with enable_attention_dp each of those chips runs attention for its own requests")
    if asked.batch and (asked.dp > 1 or asked.pp > 1):
        notes.append("--max_batch_size counts for each attention rank and pipeline micro-batch")
    if asked.memory:
        notes.append("--kv_cache_free_gpu_memory_fraction is of what the weights leave free: a little less KV cache than counted")
    if asked.spare:
        notes.append(f"TensorRT-LLM holds as many experts on every chip: {asked.spare} copies fill the last ones, moved by load as it runs")
    if asked.kv == "fp4":
        notes.append("an nvfp4 KV cache needs a checkpoint calibrated for it")
    return tuple(notes)
